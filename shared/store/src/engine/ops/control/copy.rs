//! Takes turns of engagements over into a new one: messages, the tool journal, checkpoints.
//!
//! Rows are read in pages and written in bulk. Calls get ids of their own, because an id names one call and is its
//! idempotency key; what the conversation says is the same.

use crate::engine::journal::{self, Journal};
use crate::engine::rows::{self, NewToolCall, StubRow, ToolCallStep};
use crate::engine::session::{Session, limit};
use crate::engine::statement::{Writes, as_json, read};
use crate::{StoreError, sql};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use turnstone_domain::message::{Message, StoredMessage};
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::tool_call::{ToolCall, ToolCallState};
use turnstone_domain::{CallId, Checkpoint, Ids, RawJson, Spent, digest};

/// Messages that are read and written at once.
const MESSAGES: usize = 500;
/// Turns whose calls and checkpoints are read and written at once.
const TURNS: i64 = 64;

/// An engagement and the job that it is made of.
#[derive(Clone, Copy)]
pub(in super::super) struct Past {
    pub job_seq: i64,
    pub engagement_seq: i64,
}

impl Past {
    /// Adds a message as it is.
    fn message(self, journal: &mut Journal, stored: &StoredMessage) -> Result<(), StoreError> {
        let (stream, place) = ((self.engagement_seq, 0), (self.job_seq, stored.turn));
        journal.message(stream, place, stored.seq, &stored.message, stored.created_at)
    }

    /// Adds a checkpoint as it is, without an event.
    fn checkpoint(self, journal: &mut Journal, done: Checkpoint) {
        let done = done.with(|body| RawJson::of(&body));
        journal.checkpoint((self.engagement_seq, 0), self.job_seq, &done);
    }
}

/// Returns the checkpoint of a phase that another job paid for.
fn unpaid(done: Checkpoint) -> Checkpoint {
    Checkpoint { tokens_in: 0, tokens_out: 0, spent: Spent::default(), ..done }
}

/// Turns of one engagement, in a row.
#[derive(Clone, Copy)]
pub(in super::super) struct Segment {
    pub past: Past,
    /// The first turn.
    pub from: i64,
    /// The turn after the last one.
    pub until: i64,
    /// The number to add to each turn's number.
    pub shift: i64,
}

/// The copied rows.
#[derive(Default)]
pub(super) struct Copied {
    /// Messages.
    pub messages: i64,
    /// Tokens that were paid for.
    pub tokens: i64,
    /// Turns that asked for tools.
    pub tool_turns: u32,
}

/// Takes all segments over.
pub(super) async fn copy(
    session: &mut Session,
    segments: &[Segment],
    into: Past,
    ids: &dyn Ids,
) -> Result<Copied, StoreError> {
    let mut copied = Copied::default();
    for segment in segments {
        let mut renamed = Renamed { ids: Some(ids), known: HashMap::new() };
        messages(session, segment, into, &mut renamed, &mut copied).await?;
        let mut from = segment.from;
        while from < segment.until {
            let until = segment.until.min(from + TURNS);
            let page = Segment { from, until, ..*segment };
            calls(session, &page, into, &mut renamed).await?;
            checkpoints(session, &page, into, &mut copied).await?;
            from = until;
        }
    }
    Ok(copied)
}

/// New ids for old ones; the old ones when there are none. A note stays beside its call.
struct Renamed<'a> {
    ids: Option<&'a dyn Ids>,
    known: HashMap<CallId, CallId>,
}

impl Renamed<'_> {
    fn of(&mut self, old: &CallId) -> CallId {
        let Some(ids) = self.ids else { return old.clone() };
        let (call, note) = ToolCall::parted_id(old.as_str());
        let call = self.known.entry(CallId(call.to_owned())).or_insert_with(|| CallId(ids.next()));
        CallId(format!("{call}{note}"))
    }

    fn message(&mut self, mut message: Message) -> Message {
        message.tool_calls.iter_mut().for_each(|call| call.call_id = self.of(&call.call_id));
        message.call_id = message.call_id.map(|id| self.of(&id));
        message
    }
}

/// The phases of one turn that a fork of it begins with.
pub(in super::super) struct Beginning {
    /// Their checkpoints.
    pub checkpoints: Vec<Checkpoint>,
    /// The messages of the copied turns.
    pub messages: Vec<StoredMessage>,
    /// The calls that were made in them.
    pub calls: Vec<ToolCall>,
    /// The last message before the turn.
    pub after: i64,
}

/// Copies them. The fork paid for none of it and called nothing: the copied calls replace its own.
pub(in super::super) async fn copy_beginning(
    session: &mut Session,
    beginning: Beginning,
    into: Past,
    ids: &dyn Ids,
) -> Result<(), StoreError> {
    let mut renamed = Renamed { ids: Some(ids), known: HashMap::new() };
    let mut journal = Journal::default();
    for (seq, stored) in (beginning.after + 1..).zip(beginning.messages) {
        let message = renamed.message(stored.message);
        into.message(&mut journal, &StoredMessage { seq, message, ..stored })?;
    }
    let stubs: Vec<StubRow> = beginning
        .calls
        .iter()
        // No outcome of another call replaces a note.
        .filter(|call| !call.is_note())
        .map(|call| StubRow {
            job_seq: into.job_seq,
            call_id: renamed.of(&call.call_id),
            of_call: call.call_id.clone(),
        })
        .collect();
    journal_again(session, beginning.calls, into, 0, &mut renamed).await?;
    for checkpoint in beginning.checkpoints {
        let mut body = checkpoint.body.to_string();
        for (old, new) in &renamed.known {
            body = body.replace(old.as_str(), new.as_str());
        }
        let body = serde_json::from_str(&body)
            .map_err(|error| StoreError::Database { action: "rename calls", message: error.to_string() })?;
        into.checkpoint(&mut journal, Checkpoint { body, ..unpaid(checkpoint) });
    }
    let mut writes = Writes::default();
    journal.flush(&mut writes)?;
    writes.insert("write stubs", stubs);
    writes.run(session).await
}

/// The next messages of turns, those after `after`; none when there are no more.
pub(in super::super) async fn page(
    session: &mut Session,
    engagement_seq: i64,
    (from, until): (i64, i64),
    after: i64,
) -> Result<Vec<StoredMessage>, StoreError> {
    let values = [engagement_seq.into(), from.into(), until.into(), after.into(), limit(MESSAGES).into()];
    let (action, text) = ("read messages", &sql::SELECT_MESSAGES_OF_TURNS);
    let rows = read(session, action, text, &values, journal::messages).await?;
    Ok(rows.into_iter().flatten().filter(|stored| stored.seq > after).collect())
}

async fn messages(
    session: &mut Session,
    segment: &Segment,
    into: Past,
    renamed: &mut Renamed<'_>,
    copied: &mut Copied,
) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let turns = (segment.from, segment.until);
        let page = page(session, segment.past.engagement_seq, turns, after).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        let mut journal = Journal::default();
        for stored in page {
            copied.tool_turns += u32::from(!stored.message.tool_calls.is_empty());
            copied.messages += 1;
            let (seq, turn) = (copied.messages, stored.turn + segment.shift);
            let message = renamed.message(stored.message);
            into.message(&mut journal, &StoredMessage { seq, turn, message, ..stored })?;
        }
        let mut writes = Writes::default();
        journal.flush(&mut writes)?;
        writes.run(session).await?;
    }
}

async fn calls(
    session: &mut Session,
    segment: &Segment,
    into: Past,
    renamed: &mut Renamed<'_>,
) -> Result<(), StoreError> {
    let values = [segment.past.engagement_seq.into(), segment.from.into(), segment.until.into()];
    let (action, text) = ("read the tool journal", &sql::SELECT_TOOL_CALLS_OF_TURNS);
    let journal: Vec<ToolCall> = read(session, action, text, &values, rows::decode).await?;
    journal_again(session, journal, into, segment.shift, renamed).await
}

async fn journal_again(
    session: &mut Session,
    journal: Vec<ToolCall>,
    into: Past,
    shift: i64,
    renamed: &mut Renamed<'_>,
) -> Result<(), StoreError> {
    let (mut new, mut settled) = (Vec::new(), Vec::new());
    for call in journal {
        let id = renamed.of(&call.call_id);
        new.push(NewToolCall {
            call_id: id.clone(),
            job_seq: into.job_seq,
            engagement_seq: into.engagement_seq,
            turn: call.turn + shift,
            position: call.position,
            name: call.name,
            input: call.input.to_string(),
            idempotent: call.idempotent,
            state: ToolCallState::Planned,
            sends: call.sends,
            created_at: call.created_at,
            started_at: call.started_at,
        });
        let handled = call.handled.as_ref().map(as_json).transpose()?;
        let tried: Vec<String> = call.tried.iter().map(as_json).collect::<Result<_, _>>()?;
        if let Some(outcome) = &call.outcome {
            let at = call.completed_at.unwrap_or(call.created_at);
            settled.push(ToolCallStep {
                outcome: Some(as_json(outcome)?),
                duration_ms: call.duration_ms,
                withheld: call.withheld,
                retries: call.retries,
                tried: (!tried.is_empty()).then(|| tried.join(",")),
                handled,
                provider: call.provider,
                ..ToolCallStep::to(ToolCallState::Settled, &id, at)
            });
        }
    }
    let mut writes = Writes::default();
    writes.insert("write tool calls", new);
    writes.run(session).await?;
    // Apart, because none of the statements that run together sees what the others write.
    let mut writes = Writes::default();
    writes.all("write tool calls", &sql::UPDATE_TOOL_CALLS, settled);
    writes.run(session).await
}

async fn checkpoints(
    session: &mut Session,
    segment: &Segment,
    into: Past,
    copied: &mut Copied,
) -> Result<(), StoreError> {
    let values = [segment.past.job_seq.into(), segment.from.into(), segment.until.into()];
    let text = &sql::SELECT_CHECKPOINTS_OF_TURNS;
    let done = read(session, "read checkpoints", text, &values, journal::checkpoints).await?;
    let mut journal = Journal::default();
    for done in done.into_iter().flatten() {
        copied.tokens = copied.tokens.saturating_add(done.tokens_in).saturating_add(done.tokens_out);
        // The branch has not paid for what it took over.
        let spent = Spent { cost: 0, model: None, ..done.spent };
        into.checkpoint(&mut journal, Checkpoint { turn: done.turn + segment.shift, spent, ..done });
    }
    let mut writes = Writes::default();
    journal.flush(&mut writes)?;
    writes.run(session).await
}

/// Writes everything that is on record of an engagement as it was.
pub(in super::super) async fn copy_record(
    session: &mut Session,
    record: &EngagementRecord,
    into: Past,
) -> Result<(), StoreError> {
    let mut kept = Renamed { ids: None, known: HashMap::new() };
    let mut journal = Journal::default();
    for stored in &record.messages {
        into.message(&mut journal, stored)?;
    }
    for done in &record.checkpoints {
        // What a fork shares was paid for by the engagement that it comes from.
        match done.turn < record.shared_until() {
            true => into.checkpoint(&mut journal, unpaid(done.clone())),
            false => into.checkpoint(&mut journal, done.clone()),
        }
    }
    let stub = |call: &ToolCall| {
        let of = call.stub_of.as_ref()?;
        Some(StubRow { job_seq: into.job_seq, call_id: call.call_id.clone(), of_call: of.clone() })
    };
    let stubs: Vec<StubRow> = record.calls.iter().filter_map(stub).collect();
    let mut writes = Writes::default();
    journal.flush(&mut writes)?;
    writes.insert("write stubs", stubs);
    writes.run(session).await?;
    journal_again(session, record.calls.clone(), into, 0, &mut kept).await
}

/// Returns the content of each turn: a digest without ids and times, so that equal turns of two branches are equal.
pub(super) async fn contents(
    session: &mut Session,
    past: Past,
    until: i64,
) -> Result<BTreeMap<i64, String>, StoreError> {
    let (mut after, mut turns) = (0, BTreeMap::new());
    let mut calls: HashMap<CallId, usize> = HashMap::new();
    loop {
        let page = page(session, past.engagement_seq, (0, until), after).await?;
        let Some(last) = page.last() else { return Ok(turns) };
        after = last.seq;
        for stored in page {
            let said = canonical(&stored.message, &mut calls);
            let turn: &mut String = turns.entry(stored.turn).or_default();
            *turn = digest::of_text(&format!("{turn}{}", digest::of_json(&said)));
        }
    }
}

/// A message without ids: calls are numbered in the order in which they were asked for.
fn canonical(message: &Message, calls: &mut HashMap<CallId, usize>) -> Value {
    let mut number = |id: &CallId| {
        let next = calls.len();
        *calls.entry(id.clone()).or_insert(next)
    };
    let requested: Vec<Value> = message
        .tool_calls
        .iter()
        .map(|call| json!({"call": number(&call.call_id), "name": call.name, "arguments": call.arguments}))
        .collect();
    let answers = message.call_id.as_ref().map(number);
    let mut said =
        json!({"role": message.role, "content": message.content, "tool_calls": requested, "call": answers});
    if !message.parts.is_empty() {
        said["parts"] = json!(message.parts);
    }
    said
}
