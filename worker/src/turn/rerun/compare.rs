//! What was recorded, what was left when it was run again, and where they differ first.

use serde::Serialize;
use serde_json::{Value, json};
use turnstone_domain::message::{Message, Role, StoredMessage};
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::{Checkpoint, Phase, digest};

/// What came of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Rerun {
    /// Complete turns that were run.
    pub turns: i64,
    /// Phases that were run and compared.
    pub phases: i64,
    /// Where the record and the run differ first; `None` when they are the same.
    pub difference: Option<Difference>,
}

/// Where a record and its run differ.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// The turn.
    pub turn: i64,
    /// The phase; `None` when it is what was said, or the result.
    pub phase: Option<Phase>,
    /// What differs.
    pub what: String,
    /// The digest of what is on record, or itself when it is short.
    pub recorded: Option<String>,
    /// The same of what was left.
    pub rerun: Option<String>,
}

impl Difference {
    pub(super) fn of(turn: i64, phase: Option<Phase>, what: &str) -> Self {
        Self { turn, phase, what: what.to_owned(), recorded: None, rerun: None }
    }

    pub(super) fn result(turn: i64, recorded: &str, rerun: &str) -> Self {
        let (recorded, rerun) = (Some(recorded.to_owned()), Some(rerun.to_owned()));
        Self { turn, phase: None, what: "the result".to_owned(), recorded, rerun }
    }
}

/// The record, by turns.
pub(super) struct Recorded<'a> {
    record: &'a EngagementRecord,
}

impl<'a> Recorded<'a> {
    pub(super) fn of(record: &'a EngagementRecord) -> Self {
        Self { record }
    }

    /// The last turn that anything is known of.
    pub(super) fn last_turn(&self) -> i64 {
        self.record.checkpoints.iter().map(|done| done.turn).max().unwrap_or(0)
    }

    /// The checkpoints of a turn, in order.
    pub(super) fn phases(&self, turn: i64) -> Vec<Checkpoint> {
        self.record.checkpoints.iter().filter(|done| done.turn == turn).cloned().collect()
    }

    fn messages(&self, turn: i64) -> impl Iterator<Item = &'a StoredMessage> {
        self.record.messages.iter().filter(move |stored| stored.turn == turn)
    }

    /// Messages that came between the inputs and the answer of a turn, and from neither model nor agent.
    pub(super) fn said_from_outside(&self, turn: i64) -> Vec<Message> {
        let norm = self.phases(turn).into_iter().find(|done| done.phase == Phase::Norm);
        let inputs = norm.and_then(|done| done.body.get("messages")?.as_u64()).unwrap_or(0);
        self.messages(turn)
            .skip(usize::try_from(inputs).unwrap_or(usize::MAX))
            .take_while(|stored| stored.message.role != Role::Assistant)
            .filter(|stored| stored.message.summary.is_none())
            .map(|stored| stored.message.clone())
            .collect()
    }

    /// Compares what was said in a turn, without the time at which an input was taken in.
    pub(super) fn messages_differ(&self, turn: i64, said: &[Message]) -> Result<(), Difference> {
        let recorded: Vec<Value> = self.messages(turn).map(|stored| spoken(&stored.message)).collect();
        let rerun: Vec<Value> = said.iter().map(spoken).collect();
        let same = recorded.iter().zip(&rerun).take_while(|(a, b)| a == b).count();
        if same == recorded.len() && same == rerun.len() {
            return Ok(());
        }
        let of = |list: &[Value]| list.get(same).map(digest::of_json);
        let what = format!("message {} of the turn", same + 1);
        Err(Difference { recorded: of(&recorded), rerun: of(&rerun), ..Difference::of(turn, None, &what) })
    }
}

fn spoken(message: &Message) -> Value {
    json!([
        message.role,
        message.content,
        message.parts,
        message.tool_calls,
        message.call_id,
        message.summary
    ])
}

/// What INIT says of whom a turn belongs to: of a turn that a fork has from another engagement, that is the other one.
const WHOSE: [&str; 5] = ["span", "session_id", "request_id", "trace_context", "baggage"];

/// Compares what a phase left: version and body, bit for bit. `inherited` says that another engagement ran it first.
pub(super) fn checkpoints_differ(
    recorded: &Checkpoint,
    left: Option<&Checkpoint>,
    inherited: bool,
) -> Result<(), Difference> {
    let at = |what: &str| Difference::of(recorded.turn, Some(recorded.phase), what);
    let Some(left) = left else { return Err(at("it left no checkpoint")) };
    let body = as_the_world_said(recorded, left.body.clone(), inherited);
    if recorded.version == left.version && recorded.body == body {
        return Ok(());
    }
    let (was, is) = (digest::of_json(&recorded.body), digest::of_json(&body));
    let what = if recorded.version == left.version {
        "the body of its checkpoint".to_owned()
    } else {
        format!("its version: {} is on record, this worker writes {}", recorded.version, left.version)
    };
    Err(Difference { recorded: Some(was), rerun: Some(is), ..at(&what) })
}

/// A body with what only the first run could know: the span that it was traced by, when a key of the state was changed
/// within the turn, whether a provider said what it used, and whether a budget had room for less than the answer might have
/// had.
fn as_the_world_said(recorded: &Checkpoint, mut body: Value, inherited: bool) -> Value {
    match recorded.phase {
        Phase::Persist => {
            let times = recorded.body.get("changes").and_then(Value::as_array).cloned().unwrap_or_default();
            let changes = body.get_mut("changes").and_then(Value::as_array_mut);
            for (change, was) in changes.into_iter().flatten().zip(times) {
                change["timestamp"] = was["timestamp"].clone();
            }
        }
        Phase::Init => take_over(&mut body, recorded, if inherited { &WHOSE } else { &WHOSE[..1] }),
        Phase::Infer => take_over(&mut body, recorded, &["estimated", "capped", "shortage"]),
        _ => {}
    }
    body
}

/// Takes these members from the record, also that they are not there.
fn take_over(body: &mut Value, recorded: &Checkpoint, names: &[&str]) {
    let Some(members) = body.as_object_mut() else { return };
    for name in names {
        match recorded.body.get(*name) {
            Some(known) => drop(members.insert((*name).to_owned(), known.clone())),
            None => drop(members.remove(*name)),
        }
    }
}
