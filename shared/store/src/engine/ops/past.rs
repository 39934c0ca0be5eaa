//! The past that a new engagement takes over. It reads complete turns where they are, through `inheritances`. Copied are
//! only the first phases of a turn that it ends itself, turns that get another number, and an imported record.

use super::{admission, push};
use crate::engine::journal::{self, Journal};
use crate::engine::limit_name;
use crate::engine::rows::{self, NewToolCall, StubRow, ToolCallStep};
use crate::engine::session::{Args, Session, limit};
use crate::engine::statement::{Writes, as_json, read, read_by};
use crate::engine::unit::Unit;
use crate::{StoreError, sql};
use turnstone_domain::checkpoint::EmitBody;
use turnstone_domain::engagement::NewEngagement;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::principal::SUBMITTED_BY;
use turnstone_domain::record::{NewIds, add_new_id, rename_calls};
use turnstone_domain::terms::RateLimit;
use turnstone_domain::tool_call::{ToolCall, ToolCallState};
use turnstone_domain::turn_write::Position;
use turnstone_domain::{
    Checkpoint, EngagementId, Ids, JobId, NewJob, Phase, RawJson, Spent, Terms, Timestamp,
};

/// Messages that are read at once.
const MESSAGES: usize = 500;
/// Turns that are read and written at once.
const TURNS: i64 = 64;

/// A job that is to begin like another one.
#[derive(Clone, Copy)]
pub(super) struct Twin<'a> {
    /// The job whose envelope, agent and limits it has.
    pub like: i64,
    /// The id of the new job.
    pub job: &'a JobId,
    /// The id of its engagement.
    pub engagement: &'a EngagementId,
    /// The identity of the principal that submits it; without one, it is that of the other job.
    pub by: Option<&'a str>,
    /// Now.
    pub at: Timestamp,
}

/// The size of turns that an engagement takes over.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    /// Messages.
    pub messages: i64,
    /// Tokens that were paid for.
    pub tokens: i64,
}

impl Twin<'_> {
    /// Returns the new job, as it would be enqueued.
    ///
    /// # Errors
    /// [`StoreError::NotRegistered`] for an import that may not run here.
    pub(super) async fn job(&self, session: &mut Session, unit: &Unit) -> Result<NewJob, StoreError> {
        let missing = |column| StoreError::Inconsistent {
            table: "jobs",
            column,
            row: self.like.to_string(),
            message: "the row that it points to is missing".to_owned(),
        };
        let keys = vec![self.like];
        let (action, text) = ("read envelopes", &sql::SELECT_ENVELOPES_BY_JOB);
        let mut sent = read_by(session, action, text, keys, rows::envelope).await?;
        let (_, retry, mut envelope) = sent.pop().ok_or_else(|| missing("seq"))?;
        let job = unit.job(self.like).ok_or_else(|| missing("seq"))?;
        let engagement = match unit.engagement_of(self.like) {
            Some(row) => {
                let agent = admission::by_digest(session, &row.digest).await?;
                let agent = admission::admit(
                    session,
                    agent.ok_or_else(|| missing("engagement_seq"))?,
                    job.tenant.as_deref(),
                )
                .await?;
                let user = row.engagement.user.clone();
                Some(NewEngagement { id: self.engagement.clone(), agent, user, depth: 0 })
            }
            None => None,
        };
        if let Some(by) = self.by.filter(|_| engagement.is_some()) {
            envelope.meta.insert(SUBMITTED_BY, by);
        }
        Ok(NewJob {
            id: self.job.clone(),
            job_type: job.job_type.clone(),
            queue: job.queue.clone(),
            priority: job.priority,
            run_at: self.at,
            expires_at: job.expires_at.filter(|at| *at > self.at),
            timeout_ms: job.timeout_ms,
            retry,
            envelope,
            engagement,
            terms: Terms {
                tenant: job.tenant.clone(),
                visibility_ms: job.visibility_ms,
                // It uses what the other one uses, so it waits for the same limit. It is like the other one on purpose, so
                // it need not be unique.
                rate_limit: job.limit_key.as_deref().map(|stored| RateLimit {
                    key: Some(limit_name::parted(stored).1.to_owned()),
                    ..RateLimit::default()
                }),
                runtime_tags: job.runtime_tags.clone(),
                ..Terms::default()
            },
            created_at: self.at,
        })
    }

    /// Enqueues the new job, whose engagement reads the turns of the other one before `until`. Returns its number and
    /// the size of these turns.
    pub(super) async fn share(
        &self,
        session: &mut Session,
        unit: &mut Unit,
        job: &NewJob,
        until: i64,
    ) -> Result<(i64, Sums), StoreError> {
        let seq = push::one(session, unit, job).await?;
        let values = [seq.into(), self.like.into(), until.into()];
        session.execute("share a past", &sql::INSERT_INHERITANCES, Args::Values(&values)).await?;
        let sums = read(session, "add up a past", &sql::SELECT_INHERITED_SUMS, &values[..1], |row| {
            Ok(Sums { messages: rows::get(row, "messages")?, tokens: rows::get(row, "tokens")? })
        });
        Ok((seq, sums.await?.pop().unwrap_or_default()))
    }

    /// Returns the position of the new job, which begins with `turn` and has taken over the turns before.
    pub(super) async fn position(
        &self,
        session: &mut Session,
        unit: &Unit,
        turn: i64,
    ) -> Result<Position, StoreError> {
        let stands = unit.job(self.like).and_then(|job| job.position.clone()).unwrap_or_default();
        if stands.turn == turn {
            // The question of the other job, and the time that it has waited, stay with the other job.
            return Ok(Position { asks: None, raise_until: None, kept_answer: None, outages: 0, ..stands });
        }
        let reported = of_phase(session, self.engagement, Phase::Emit).await?;
        let before: Vec<EmitBody> =
            reported.iter().filter(|done| done.turn < turn).filter_map(Checkpoint::read).collect();
        let tool_turns = before.iter().filter(|emit| emit.tool_calls > 0).count();
        let is_reasked = before.iter().any(|emit| emit.tool_calls == 0 && !emit.released);
        Ok(Position {
            turn,
            tool_turns: u32::try_from(tool_turns).unwrap_or(u32::MAX),
            reasks: u32::from(is_reasked),
            granted: stands.granted,
            model_used: stands.model_used,
            ..Position::default()
        })
    }
}

/// Returns the last checkpoint of a record that ends with a complete turn; `None` for 0 turns.
pub(super) fn last_complete(turns: i64) -> Option<(i64, Phase)> {
    (turns > 0).then_some((turns, Phase::Emit))
}

/// Returns the checkpoints of one phase of an engagement, newest first.
pub(super) async fn of_phase(
    session: &mut Session,
    engagement: &EngagementId,
    phase: Phase,
) -> Result<Vec<Checkpoint>, StoreError> {
    let number = i64::try_from(phase.index()).unwrap_or(i64::MAX);
    let values = [engagement.as_str().into(), number.into(), i64::MAX.into()];
    let (action, text) = ("read checkpoints", &sql::SELECT_CHECKPOINTS_OF_PHASE);
    let found = read(session, action, text, &values, journal::checkpoints).await?;
    Ok(found.into_iter().flatten().filter(|done| done.phase == phase).collect())
}

/// Returns the next messages of turns, those after `after`; none when there are no more.
pub(super) async fn messages(
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

/// The record of some turns. An engagement with one input has the number of its job.
#[derive(Default)]
pub(super) struct Turns {
    /// Their messages, in order.
    pub messages: Vec<StoredMessage>,
    /// Their calls, in order.
    pub calls: Vec<ToolCall>,
    /// Their checkpoints, in order.
    pub checkpoints: Vec<Checkpoint>,
}

impl Turns {
    /// Reads turns of an engagement, with those that it reads of others.
    pub(super) async fn read(
        session: &mut Session,
        seq: i64,
        (from, until): (i64, i64),
    ) -> Result<Self, StoreError> {
        let values = [seq.into(), from.into(), until.into()];
        let (action, text) = ("read checkpoints", &sql::SELECT_CHECKPOINTS_OF_TURNS);
        let done = read(session, action, text, &values, journal::checkpoints).await?;
        let (action, text) = ("read the tool journal", &sql::SELECT_TOOL_CALLS_OF_TURNS);
        let calls = read(session, action, text, &values, rows::decode).await?;
        let mut turns = Self { calls, checkpoints: done.into_iter().flatten().collect(), ..Self::default() };
        loop {
            let after = turns.messages.last().map_or(0, |last| last.seq);
            let page = messages(session, seq, (from, until), after).await?;
            if page.is_empty() {
                return Ok(turns);
            }
            turns.messages.extend(page);
        }
    }

    /// Gives calls ids of their own: an id names one call, and is its idempotency key. What the conversation says is the
    /// same.
    pub(super) fn rename(&mut self, known: &mut NewIds, ids: &dyn Ids) {
        let messages = self.messages.iter().map(|stored| &stored.message);
        let said =
            messages.flat_map(|said| said.tool_calls.iter().map(|call| &call.call_id).chain(&said.call_id));
        said.chain(self.calls.iter().map(|call| &call.call_id)).for_each(|id| add_new_id(known, id, ids));
        rename_calls(known, &mut self.messages, &mut self.calls, &mut self.checkpoints);
    }

    /// Numbers the messages from the one after `after` on.
    pub(super) fn number(&mut self, after: i64) {
        (after + 1..).zip(&mut self.messages).for_each(|(seq, stored)| stored.seq = seq);
    }

    /// Writes them to an engagement, without events.
    pub(super) async fn write(self, session: &mut Session, seq: i64) -> Result<(), StoreError> {
        let mut journal = Journal::default();
        for stored in &self.messages {
            journal.message((seq, 0), (seq, stored.turn), stored.seq, &stored.message, stored.created_at)?;
        }
        for done in self.checkpoints {
            journal.checkpoint((seq, 0), seq, &done.with(|body| RawJson::of(&body)));
        }
        let (mut new, mut settled, mut stubs) = (Vec::new(), Vec::new(), Vec::new());
        for call in self.calls {
            let stub = |of_call| StubRow { job_seq: seq, call_id: call.call_id.clone(), of_call };
            stubs.extend(call.stub_of.clone().map(stub));
            settled.extend(settling(&call)?);
            new.push(NewToolCall {
                call_id: call.call_id,
                job_seq: seq,
                engagement_seq: seq,
                turn: call.turn,
                position: call.position,
                name: call.name,
                input: call.input.to_string(),
                idempotent: call.idempotent,
                state: ToolCallState::Planned,
                sends: call.sends,
                created_at: call.created_at,
                started_at: call.started_at,
            });
        }
        let mut writes = Writes::default();
        journal.flush(session, &mut writes)?;
        writes.insert("write stubs", stubs);
        writes.insert("write tool calls", new);
        writes.run(session).await?;
        // Apart, because none of the statements that run together sees what the others write.
        let mut writes = Writes::default();
        writes.all("write tool calls", &sql::UPDATE_TOOL_CALLS, settled);
        writes.run(session).await
    }
}

/// Returns the step that settles a copied call as it was; `None` when its outcome is not known.
fn settling(call: &ToolCall) -> Result<Option<ToolCallStep>, StoreError> {
    let Some(outcome) = &call.outcome else { return Ok(None) };
    let tried: Vec<String> = call.tried.iter().map(as_json).collect::<Result<_, _>>()?;
    let at = call.completed_at.unwrap_or(call.created_at);
    Ok(Some(ToolCallStep {
        outcome: Some(as_json(outcome)?),
        duration_ms: call.duration_ms,
        withheld: call.withheld,
        retries: call.retries,
        tried: (!tried.is_empty()).then(|| tried.join(",")),
        handled: call.handled.as_ref().map(as_json).transpose()?,
        provider: call.provider.clone(),
        ..ToolCallStep::to(ToolCallState::Settled, &call.call_id, at)
    }))
}

/// Returns the checkpoint of a phase that another job paid for; its budget counts the tokens.
pub(super) fn costless(done: Checkpoint) -> Checkpoint {
    Checkpoint { spent: Spent { cost: 0, model: None, ..done.spent }, ..done }
}

/// Returns the checkpoint of a phase that another job paid for, and whose tokens no budget counts.
pub(super) fn unpaid(done: Checkpoint) -> Checkpoint {
    Checkpoint { tokens_in: 0, tokens_out: 0, spent: Spent::default(), ..done }
}

/// Turns of one engagement, in a row.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// The engagement.
    pub seq: i64,
    /// The first turn.
    pub from: i64,
    /// The turn after the last one.
    pub until: i64,
}

/// Copies turns, of which the first one gets the number `turn`, behind those that `into` has so far.
pub(super) async fn append(
    session: &mut Session,
    segment: Segment,
    (into, turn): (i64, i64),
    sums: &mut Sums,
    ids: &dyn Ids,
) -> Result<(), StoreError> {
    let (mut known, shift) = (NewIds::new(), turn - segment.from);
    for from in (segment.from..segment.until).step_by(usize::try_from(TURNS).unwrap_or(1)) {
        let until = segment.until.min(from + TURNS);
        let mut turns = Turns::read(session, segment.seq, (from, until)).await?;
        turns.rename(&mut known, ids);
        turns.number(sums.messages);
        turns.messages.iter_mut().for_each(|stored| stored.turn += shift);
        turns.calls.iter_mut().for_each(|call| call.turn += shift);
        turns.checkpoints = turns.checkpoints.into_iter().map(costless).collect();
        for done in &mut turns.checkpoints {
            done.turn += shift;
            sums.tokens = sums.tokens.saturating_add(done.tokens_in).saturating_add(done.tokens_out);
        }
        sums.messages += i64::try_from(turns.messages.len()).unwrap_or(i64::MAX);
        turns.write(session, into).await?;
    }
    Ok(())
}
