//! The journal: what was said, done and reported in a stream, in rows of one turn and one write each.
//!
//! A stream is an engagement, a plain job, a workflow, or one event about something else. A row holds checkpoints and events
//! in `body` and messages in `said`, each a list that is encoded and sealed once. Its plain columns say what is in it:
//!
//! | column | value |
//! |---|---|
//! | `last_event`, `events` | the number of its last event, and how many it has; without one, the last event before it |
//! | `last_message`, `messages` | the same of messages; 0 without any |
//! | `names` | the names of its events, in order, with commas between |
//! | `phase`, `phases` | the first of its checkpoints, which follow one another, and how many; -1 without any |
//! | `tokens_*`, `cost`, `model`, `paid_at` | of the one checkpoint that paid for something |
//! | `at` | when the last of it happened |
//!
//! `phase.completed` is no entry of its own: the entry of its checkpoint says what the event adds, and the event keeps its
//! number. Only this module knows the texts.

mod entries;
mod gather;

pub(super) use entries::{JournalEvent, checkpoints, events, messages};
pub(super) use gather::Journal;
