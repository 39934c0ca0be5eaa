//! What was recorded, what was left when it was run again, and where they differ first.

use serde::Serialize;
use serde_json::{Value, json};
use turnstone_domain::message::{Message, Role, StoredMessage};
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::{Checkpoint, Phase};

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
    /// What is on record; of a long text the part in which they differ first.
    pub recorded: Option<String>,
    /// The same of what was left.
    pub rerun: Option<String>,
}

impl Difference {
    pub(super) fn of(turn: i64, phase: Option<Phase>, what: &str) -> Self {
        Self { turn, phase, what: what.to_owned(), recorded: None, rerun: None }
    }

    pub(super) fn result(turn: i64, recorded: &str, rerun: &str) -> Self {
        Self::of(turn, None, "the result").apart(Some(recorded), Some(rerun))
    }

    /// The same with what either side says there.
    fn apart(self, recorded: Option<&str>, rerun: Option<&str>) -> Self {
        let (a, b) = (recorded.unwrap_or_default().chars(), rerun.unwrap_or_default().chars());
        let same = a.zip(b).take_while(|(a, b)| a == b).count();
        let shown = |text: Option<&str>| text.map(|text| part(text, same));
        Self { recorded: shown(recorded), rerun: shown(rerun), ..self }
    }
}

/// Characters that are shown of a text.
const SHOWN: usize = 200;

/// The part of a text around the first character that differs, as short as a line.
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
        let recorded: Vec<&Message> = self.messages(turn).map(|stored| &stored.message).collect();
        let same = recorded.iter().zip(said).take_while(|(a, b)| spoken(a) == spoken(b)).count();
        if same == recorded.len() && same == said.len() {
            return Ok(());
        }
        let (recorded, rerun) = (recorded.get(same).copied(), said.get(same));
        let what = format!("message {} of the turn", same + 1);
        // Mostly it is the words; where they are the same, it is what stands beside them.
        let words = recorded.map(|message| &message.content) != rerun.map(|message| &message.content);
        let shown = |message: &Message| if words { in_words(message) } else { spoken(message).to_string() };
        let (recorded, rerun) = (recorded.map(shown), rerun.map(shown));
        Err(Difference::of(turn, None, &what).apart(recorded.as_deref(), rerun.as_deref()))
    }
}

/// Who says what.
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
    if recorded.version != left.version {
        let (was, is) = (recorded.version.to_string(), left.version.to_string());
        return Err(at("the version of its checkpoint").apart(Some(&was), Some(&is)));
    }
    let name = first_member(&recorded.body, &body);
    let of = |body: &Value| name.map_or(Some(body), |name| body.get(name)).map(Value::to_string);
    let what = name.map_or_else(|| "its checkpoint".to_owned(), |name| format!("`{name}` of its checkpoint"));
    Err(at(&what).apart(of(&recorded.body).as_deref(), of(&body).as_deref()))
}

/// The first member that two objects do not share.
fn first_member<'v>(a: &'v Value, b: &'v Value) -> Option<&'v str> {
    let (a, b) = (a.as_object()?, b.as_object()?);
    a.keys().chain(b.keys()).find(|name| a.get(*name) != b.get(*name)).map(String::as_str)
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
