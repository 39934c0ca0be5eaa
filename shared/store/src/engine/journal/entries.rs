//! The texts of a row: written once, and read as checkpoints, as events, or as messages.

use super::super::rows::{Fields, Inconsistency, JournalRow, Stored, get, wrong};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnstone_domain::message::{Message, StoredMessage};
use turnstone_domain::{Checkpoint, EventName, Phase, Spent, Timestamp};

/// A part of a row's body. `B` is the body of a checkpoint, `D` the data of an event; a reader of one skips the
/// other.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalEntry<B, D> {
    /// A checkpoint, and its event if it has one.
    Phase(Done<B, D>),
    /// Any other event; its name is stored in the row's `names`.
    Event(Happened<D>),
}

/// A checkpoint.
#[derive(Serialize, Deserialize)]
pub(super) struct Done<B, D> {
    pub phase: i64,
    pub version: i64,
    pub body: B,
    pub duration_ms: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens_in: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens_out: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens_cached: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost: i64,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When it was done; the row's time where it is not said.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The data of `phase.completed` beside phase and duration; `None` when no event was written.
    #[serde(rename = "told", default = "none", skip_serializing_if = "Option::is_none")]
    pub event: Option<D>,
    /// When that event happened, where it was not at the same time.
    #[serde(rename = "told_at", default = "none", skip_serializing_if = "Option::is_none")]
    pub event_at: Option<i64>,
}

impl<B, D> Done<B, D> {
    /// Returns true when the phase paid for something.
    pub(super) fn has_paid(&self) -> bool {
        let amounts = [self.tokens_in, self.tokens_out, self.tokens_cached, self.cost];
        self.model.is_some() || amounts.iter().any(|amount| *amount != 0)
    }
}

/// An event that is about no checkpoint.
#[derive(Serialize, Deserialize)]
pub(super) struct Happened<D> {
    pub data: D,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}

/// A message.
#[derive(Serialize, Deserialize)]
pub(super) struct Said<M> {
    pub message: M,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}

/// An event of a row.
pub(in super::super) struct JournalEvent {
    /// Its number in the stream.
    pub seq: i64,
    pub name: EventName,
    pub turn: i64,
    pub data: Value,
    pub at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn none<T>() -> Option<T> {
    None
}

/// A list of the row; an empty one where there is none.
fn list<T: DeserializeOwned>(row: &impl Fields, column: &'static str) -> Result<Vec<T>, Inconsistency> {
    let Some(text) = get::<Option<&str>>(row, column)? else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|error| damaged(row, column, error))
}

/// Names the row, and the turn that it belongs to.
fn damaged(row: &impl Fields, column: &str, why: impl ToString) -> Inconsistency {
    let turn = get::<i64>(row, "turn").unwrap_or_default();
    let wrong = wrong(column, format!("{} (turn {turn})", why.to_string()));
    wrong.of(JournalRow::table(), row)
}

fn phase(row: &impl Fields, index: i64) -> Result<Phase, Inconsistency> {
    Phase::from_index(index).ok_or_else(|| damaged(row, "body", format!("phase {index} is unknown")))
}

/// The checkpoints of a row, in order.
pub(in super::super) fn checkpoints(row: &impl Fields) -> Result<Vec<Checkpoint>, Inconsistency> {
    let (turn, at) = (get(row, "turn")?, get(row, "at")?);
    let mut found = Vec::new();
    for entry in list::<JournalEntry<Value, IgnoredAny>>(row, "body")? {
        let JournalEntry::Phase(done) = entry else { continue };
        found.push(Checkpoint {
            turn,
            phase: phase(row, done.phase)?,
            version: done.version,
            body: done.body,
            duration_ms: done.duration_ms,
            tokens_in: done.tokens_in,
            tokens_out: done.tokens_out,
            at: done.at.map_or(at, Timestamp),
            spent: Spent { tokens_cached: done.tokens_cached, cost: done.cost, model: done.model },
        });
    }
    Ok(found)
}

/// The events of a row, in order.
pub(in super::super) fn events(row: &impl Fields) -> Result<Vec<JournalEvent>, Inconsistency> {
    let (turn, row_at, last) = (get(row, "turn")?, get(row, "at")?, get::<i64>(row, "last_event")?);
    let count: i64 = get(row, "events")?;
    let mut names = get::<Option<&str>>(row, "names")?.into_iter().flat_map(|names| names.split(','));
    let mut found = Vec::new();
    let mut seq = last - count;
    for entry in list::<JournalEntry<IgnoredAny, Value>>(row, "body")? {
        let (data, at) = match entry {
            JournalEntry::Phase(Done { event: None, .. }) => continue,
            JournalEntry::Phase(Done {
                phase: index, duration_ms, event: Some(more), at, event_at, ..
            }) => {
                let mut data = Map::new();
                data.insert("phase".to_owned(), phase(row, index)?.as_str().into());
                data.insert("duration_ms".to_owned(), duration_ms.into());
                if let Value::Object(more) = more {
                    data.extend(more);
                }
                (Value::Object(data), event_at.or(at))
            }
            JournalEntry::Event(Happened { data, at }) => (data, at),
        };
        seq += 1;
        let word = names.next().unwrap_or_default();
        let name = EventName::parse(word)
            .ok_or_else(|| damaged(row, "names", format!("event {seq}: `{word}` is unknown")))?;
        found.push(JournalEvent { seq, name, turn, data, at: at.map_or(row_at, Timestamp) });
    }
    if seq != last {
        let missing = format!("events up to {last} are expected, and {seq} is the last one");
        return Err(damaged(row, "body", missing));
    }
    Ok(found)
}

/// The messages of a row, in order.
pub(in super::super) fn messages(row: &impl Fields) -> Result<Vec<StoredMessage>, Inconsistency> {
    let (turn, row_at) = (get(row, "turn")?, get(row, "at")?);
    let (last, count): (i64, i64) = (get(row, "last_message")?, get(row, "messages")?);
    let said: Vec<Said<Message>> = list(row, "said")?;
    let numbered = (last - count + 1..=last).zip(said);
    let stored = numbered.map(|(seq, Said { message, at })| StoredMessage {
        seq,
        turn,
        message,
        created_at: at.map_or(row_at, Timestamp),
    });
    Ok(stored.collect())
}
