//! Compares a record with its rerun, and finds their first difference.

use serde::Serialize;
use serde_json::{Value, json};
use turnstone_domain::checkpoint::NormBody;
use turnstone_domain::message::{Message, Role, StoredMessage};
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::{Checkpoint, Phase};

/// The result of a rerun.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Rerun {
    /// Complete turns that ran.
    pub turns: i64,
    /// Phases that ran and were compared.
    pub phases: i64,
    /// The first difference of the record and the run; `None` when they are the same.
    pub difference: Option<Difference>,
}

/// A difference of a record and its run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// The turn.
    pub turn: i64,
    /// The phase; `None` for a difference in messages or in the result.
    pub phase: Option<Phase>,
    /// The part that differs.
    pub what: String,
    /// The recorded value; of a long text the part around the first difference.
    pub recorded: Option<String>,
    /// The value of the run, in the same way.
    pub rerun: Option<String>,
}

impl Difference {
    pub(super) fn of(turn: i64, phase: Option<Phase>, what: &str) -> Self {
        Self { turn, phase, what: what.to_owned(), recorded: None, rerun: None }
    }

    pub(super) fn result(turn: i64, recorded: &str, rerun: &str) -> Self {
        Self::of(turn, None, "the result").apart(Some(recorded), Some(rerun))
    }

    /// Adds the values of both sides.
    fn apart(self, recorded: Option<&str>, rerun: Option<&str>) -> Self {
        let (a, b) = (recorded.unwrap_or_default().chars(), rerun.unwrap_or_default().chars());
        let same = a.zip(b).take_while(|(a, b)| a == b).count();
        let shown = |text: Option<&str>| text.map(|text| part(text, same));
        Self { recorded: shown(recorded), rerun: shown(rerun), ..self }
    }
}

/// The most characters of a text that are shown.
const SHOWN: usize = 200;

/// Returns the part of a text around the first difference, as short as a line.
fn part(text: &str, differs_at: usize) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let from = differs_at.saturating_sub(SHOWN / 4);
    let shown: String = text.chars().skip(from).take(SHOWN).collect();
    let (before, after) =
        (if from > 0 { "…" } else { "" }, text.chars().nth(from + SHOWN).map_or("", |_| "…"));
    format!("{before}{shown}{after}")
}

/// The record, by turns.
pub(super) struct Recorded<'a> {
    record: &'a EngagementRecord,
}

impl<'a> Recorded<'a> {
    pub(super) fn of(record: &'a EngagementRecord) -> Self {
        Self { record }
    }

    /// Returns the last turn with a checkpoint.
    pub(super) fn last_turn(&self) -> i64 {
        self.record.checkpoints.iter().map(|done| done.turn).max().unwrap_or(0)
    }

    /// Returns the checkpoints of a turn, in order.
    pub(super) fn phases(&self, turn: i64) -> Vec<Checkpoint> {
        self.record.checkpoints.iter().filter(|done| done.turn == turn).cloned().collect()
    }

    fn messages(&self, turn: i64) -> impl Iterator<Item = &'a StoredMessage> {
        self.record.messages.iter().filter(move |stored| stored.turn == turn)
    }

    /// Returns the messages between the inputs and the answer of a turn, from neither model nor agent.
    pub(super) fn said_from_outside(&self, turn: i64) -> Vec<Message> {
        let norm = self.phases(turn).iter().find_map(Checkpoint::read::<NormBody>);
        self.messages(turn)
            .skip(norm.map_or(0, |norm| norm.messages))
            .take_while(|stored| stored.message.role != Role::Assistant)
            .filter(|stored| stored.message.summary.is_none())
            .map(|stored| stored.message.clone())
            .collect()
    }

    /// Compares the messages of a turn, except the time at which an input was taken in.
    pub(super) fn messages_differ(&self, turn: i64, said: &[Message]) -> Result<(), Difference> {
        let recorded: Vec<&Message> = self.messages(turn).map(|stored| &stored.message).collect();
        let same = recorded.iter().zip(said).take_while(|(a, b)| spoken(a) == spoken(b)).count();
        if same == recorded.len() && same == said.len() {
            return Ok(());
        }
        let (recorded, rerun) = (recorded.get(same).copied(), said.get(same));
        let what = format!("message {} of the turn", same + 1);
        // Usually the words differ; if they are the same, another field of the message does.
        let words = recorded.map(|message| &message.content) != rerun.map(|message| &message.content);
        let shown = |message: &Message| if words { in_words(message) } else { spoken(message).to_string() };
        let (recorded, rerun) = (recorded.map(shown), rerun.map(shown));
        Err(Difference::of(turn, None, &what).apart(recorded.as_deref(), rerun.as_deref()))
    }
}

/// Returns a message with its speaker.
fn in_words(message: &Message) -> String {
    let who = match message.role {
        Role::User => "the user",
        Role::System => "the system",
        Role::Assistant => "the model",
        Role::Tool => "the tool",
    };
    format!("{who} says {:?}", message.content)
}

fn spoken(message: &Message) -> Value {
    json!([
        message.role,
        message.content,
        message.parts,
        message.tool_calls,
        message.call_id,
        message.summary,
        message.recalled_from
    ])
}

/// The fields of INIT that name the owner of a turn. In a turn that a fork shares, they name the other
/// engagement.
const WHOSE: [&str; 5] = ["span", "session_id", "request_id", "trace_context", "baggage"];

/// Compares the checkpoints of a phase: version and body, bit for bit. `inherited` means that another
/// engagement ran it first.
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
    if recorded.version != left.version {
        let (was, is) = (recorded.version.to_string(), left.version.to_string());
        return Err(at("the version of its checkpoint").apart(Some(&was), Some(&is)));
    }
    let name = first_member(&recorded.body, &body);
    let of = |body: &Value| name.map_or(Some(body), |name| body.get(name)).map(Value::to_string);
    let what = name.map_or_else(|| "its checkpoint".to_owned(), |name| format!("`{name}` of its checkpoint"));
    Err(at(&what).apart(of(&recorded.body).as_deref(), of(&body).as_deref()))
}

/// Returns the first member that differs in two objects.
fn first_member<'v>(a: &'v Value, b: &'v Value) -> Option<&'v str> {
    let (a, b) = (a.as_object()?, b.as_object()?);
    a.keys().chain(b.keys()).find(|name| a.get(*name) != b.get(*name)).map(String::as_str)
}

/// Returns a body with the values that only the first run could know. They are its tracing span, the times of
/// state changes, the lack of a provider's count, and a budget that capped the answer.
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

/// Copies these members from the record, and removes those that it lacks.
fn take_over(body: &mut Value, recorded: &Checkpoint, names: &[&str]) {
    let Some(members) = body.as_object_mut() else { return };
    for name in names {
        match recorded.body.get(*name) {
            Some(known) => drop(members.insert((*name).to_owned(), known.clone())),
            None => drop(members.remove(*name)),
        }
    }
}
