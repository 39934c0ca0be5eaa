//! The state of a turn in progress. It knows neither the phases nor the driver, and both of them work on it.
//!
//! | part | file | who writes it |
//! |---|---|---|
//! | what the claim brought: job, agent, engagement | `claimed` | the driver, between phases |
//! | what has been said and done: conversation, journal, reviews | `past` | the phase that says or does it |
//! | what the phases of this turn have found | `bodies`, `tools` | the phase that completes |
//! | the claim's lease and what is not durable yet | `outbox`, `events`, `journal`, `pay` | every phase, by barriers |
//!
//! A function takes the parts that it needs: [`Outbox`] if it writes, [`Claimed`] if it only reads the claim, and [`Turn`] if
//! it needs all of them and the flow. `shown` says what of a text
//! may leave the worker, `trace` has the spans, and `stop` the reasons why a turn ends early.

pub mod bodies;
pub mod claimed;
pub mod conversation;
pub mod deadline;
mod events;
pub mod journal;
pub mod outbox;
pub mod past;
pub mod pay;
pub mod secured;
mod session_state;
pub mod shown;
pub mod signals;
pub mod slot;
pub mod stop;
pub mod tools;
pub mod trace;
mod turn;

pub use bodies::Bodies;
pub use claimed::Claimed;
pub use outbox::Outbox;
pub use past::TurnHistory;
pub use secured::Secured;
pub use session_state::shown as shown_changes;
pub use stop::Stop;
pub use turn::Turn;
