//! A unit of work: rows are read once, decided upon in memory, and everything that changed is written in bulk.
//!
//! All of it runs inside the writer's transaction, which holds the rows that it reads: SQLite by its one write lock,
//! PostgreSQL row by row. So what was read stays true until it is written.

mod budgets;

pub(super) use budgets::{Move, Shared};

use budgets::Counters;

use super::held::{KnownJob, Learnt};
use super::journal::Journal;
use super::ops::artifacts::Artifacts;
use super::ops::claim;
use super::ops::delegations::{self, Family, TreeEnd};
use super::ops::inputs::Freed;
use super::ops::remote_calls::Away;
use super::ops::reviews::between_breaks;
use super::ops::session_state::States;
use super::ops::workflows::Ended;
use super::rows::{
    BreakerWait, CheckRow, EngagementRow, JobRow, NewBreaker, NewError, NewMemory, NewResult, NewToolCall,
    ReadCounters, ReviewRow, StubRow, ToolCallStep,
};
use super::session::Session;
use super::statement::{Writes, as_json, read, read_by};
use crate::breakers::{BreakerKey, DETAIL};
use crate::{ClaimRequest, JobKind, Ring, StoreError, sql};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::take;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, Started};
use turnstone_domain::guardrail_check::GuardrailCheck;
use turnstone_domain::job::FailedAttempt;
use turnstone_domain::memory::Remember;
use turnstone_domain::message::Message;
use turnstone_domain::review::{NewReview, ReviewState};
use turnstone_domain::tool_call::{ToolCallMove, ToolCallState, ToolOutcome};
use turnstone_domain::{
    JobError, JobId, JobState, NewCheckpoint, NewChild, NewEvent, Phase, RawJson, RecordEnd, Timestamp,
};

/// Returns what a workflow needs to know of a job that has ended.
fn ended(job: &JobRow) -> Option<Ended> {
    let ((workflow_seq, step), at) = job.workflow.zip(job.ended_at)?;
    Some(Ended { workflow_seq, step, state: job.state, at })
}

/// Rows that were read, and what is to be written.
#[derive(Default)]
pub(super) struct Unit {
    jobs: BTreeMap<i64, Box<JobRow>>,
    by_id: HashMap<String, i64>,
    engagements: BTreeMap<i64, Box<EngagementRow>>,
    budgets: budgets::Budgets,
    changed_jobs: BTreeSet<i64>,
    changed_engagements: BTreeSet<i64>,
    journal: Journal,
    new_calls: Vec<NewToolCall>,
    moved_calls: Vec<ToolCallStep>,
    stubs: Vec<StubRow>,
    results: Vec<NewResult>,
    errors: Vec<NewError>,
    checks: Vec<CheckRow>,
    memories: Vec<NewMemory>,
    reviews: Vec<ReviewRow>,
    breaker_waits: Vec<BreakerWait>,
    breakers: Vec<NewBreaker>,
    /// The remote calls of its jobs.
    away: Away,
    /// Files that agents made.
    pub(super) artifacts: Artifacts,
    /// State of agents.
    pub(super) states: States,
    /// The hints to send once the transaction is committed.
    pub(super) rings: Vec<Ring>,
    /// Steps of workflows that have ended.
    pub(super) ended: Vec<Ended>,
    /// Agent jobs that have ended and work for others, or had others work for them.
    pub(super) tree_ends: Vec<TreeEnd>,
    /// Engagements of which a job has ended, and which have further inputs.
    pub(super) freed: Vec<Freed>,
    /// Jobs that wait for others, who are to be enqueued.
    pub(super) families: Vec<Family>,
    /// Jobs that a claim has taken, and written by itself.
    claimed: Vec<i64>,
    /// The knowledge of units that were absorbed.
    reported: Vec<Learnt>,
    /// Jobs of which nothing is to be known.
    distrusted: Vec<JobId>,
    /// Queues whose jobs are active no longer: another may start in their place.
    pub(super) left: BTreeSet<String>,
}

impl Unit {
    /// Takes in job rows and reads their engagements.
    pub(super) async fn take_in(
        &mut self,
        session: &mut Session,
        rows: Vec<JobRow>,
    ) -> Result<(), StoreError> {
        let missing: BTreeSet<i64> = rows
            .iter()
            .filter_map(|job| job.engagement_seq)
            .filter(|seq| !self.engagements.contains_key(seq))
            .collect();
        let mut holding = Vec::new();
        for job in rows {
            if job.reserved > 0 && !self.jobs.contains_key(&job.seq) {
                holding.push(job.seq);
            }
            self.by_id.insert(job.id.0.clone(), job.seq);
            self.jobs.entry(job.seq).or_insert_with(|| Box::new(job));
        }
        self.read_shares(session, holding).await?;
        let keys: Vec<i64> = missing.into_iter().collect();
        let (action, text) = ("read engagements", &sql::LOCK_ENGAGEMENTS);
        let engagements = read_by(session, action, text, keys, EngagementRow::decode).await?;
        engagements.into_iter().for_each(|row| self.take_engagement(Box::new(row)));
        Ok(())
    }

    /// Takes in one job and returns its seq, if there is such a job of this tenant; `None` means any tenant.
    pub(super) async fn read_job(
        &mut self,
        session: &mut Session,
        id: &JobId,
        tenant: Option<&str>,
    ) -> Result<Option<i64>, StoreError> {
        let values = [id.as_str().into(), tenant.into()];
        let rows = read(session, "read a job", &sql::LOCK_JOB, &values, JobRow::decode).await?;
        let seq = rows.first().map(|job| job.seq);
        self.take_in(session, rows).await?;
        Ok(seq)
    }

    fn take_engagement(&mut self, row: Box<EngagementRow>) {
        // Engagements may share a budget: the row that was read first is used for all of them, so changes add up.
        self.budgets.take_in(row.budget_seq, row.budget);
        self.engagements.insert(row.seq, row);
    }

    /// Takes in what is known without reading it.
    pub(super) fn take_known(&mut self, known: KnownJob) {
        self.by_id.insert(known.job.id.0.clone(), known.job.seq);
        self.jobs.entry(known.job.seq).or_insert(known.job);
        known.engagement.into_iter().for_each(|row| self.take_engagement(row));
    }

    /// Takes in a job that this process has just claimed: there is nothing to write.
    pub(super) fn take_claimed(&mut self, known: KnownJob, request: &ClaimRequest) {
        if request.kind == JobKind::Plain {
            self.rings.push(Ring::Events(known.job.id.0.clone()));
        }
        if request.kind == JobKind::Plain && claim::ends_soon(&known.job) {
            self.rings.push(Ring::Due);
        }
        self.claimed.push(known.job.seq);
        self.take_known(known);
    }

    /// Takes over the notifications of another unit, which is flushed.
    pub(super) fn absorb(&mut self, mut flushed: Self) {
        self.reported.append(&mut flushed.learnt());
        self.rings.append(&mut flushed.rings);
        self.ended.append(&mut flushed.ended);
        self.tree_ends.append(&mut flushed.tree_ends);
        self.freed.append(&mut flushed.freed);
        self.left.append(&mut flushed.left);
    }

    /// Takes out what is known of the jobs when this unit is committed.
    pub(super) fn learnt(&mut self) -> Vec<Learnt> {
        let mut learnt = take(&mut self.reported);
        let known = take(&mut self.claimed).into_iter().chain(take(&mut self.changed_jobs));
        for mut job in known.filter_map(|seq| self.jobs.remove(&seq)).collect::<Vec<_>>() {
            let read_token = std::mem::replace(&mut job.read_token, job.lease_token.clone());
            if job.lease_token.is_none() {
                learnt.extend(read_token.map(|_| (job.id, None)));
                continue;
            }
            let engagement = job.engagement_seq.and_then(|seq| self.learnt_engagement(seq, &learnt));
            (job.moved, job.read_state) = (false, job.state);
            learnt.push((job.id.clone(), Some(KnownJob { job, engagement })));
        }
        learnt.extend(take(&mut self.distrusted).into_iter().map(|job| (job, None)));
        learnt
    }

    /// Returns what is known of an engagement. It is taken out, so a second job of it finds it with the first.
    fn learnt_engagement(&mut self, seq: i64, learnt: &[Learnt]) -> Option<Box<EngagementRow>> {
        let Some(mut row) = self.engagements.remove(&seq) else {
            let mut rows = learnt.iter().filter_map(|(_, known)| known.as_ref()?.engagement.as_ref());
            return rows.find(|row| row.seq == seq).cloned();
        };
        let (events, messages, writes) = (row.events, row.messages, row.record_end.writes);
        row.read = ReadCounters { events, messages, writes };
        row.budget = self.budgets.of(row.budget_seq).unwrap_or(row.budget);
        Some(row)
    }

    /// Marks what this process knows of a job as unreliable.
    pub(super) fn distrust(&mut self, seq: i64) {
        self.distrusted.extend(self.jobs.get(&seq).map(|job| job.id.clone()));
    }

    /// The seq of a job that was taken in.
    pub(super) fn seq_of(&self, id: &JobId) -> Option<i64> {
        self.by_id.get(id.as_str()).copied()
    }

    /// A job that was taken in.
    pub(super) fn job(&self, seq: i64) -> Option<&JobRow> {
        self.jobs.get(&seq).map(Box::as_ref)
    }

    /// A job that was taken in, to be changed. Adds the event of its start to its stream, if that is not written yet.
    pub(super) fn change_job(&mut self, seq: i64) -> Result<&mut JobRow, StoreError> {
        if let Some(job) = self.jobs.get_mut(&seq).filter(|job| job.has_unwritten_start()) {
            job.events = 0;
            let started = Started { attempt: job.attempt, worker_id: job.worker_id.clone() };
            let turn = job.position.as_ref().map_or(0, |position| position.turn);
            let at = job.claimed_at.unwrap_or(job.created_at);
            self.event(seq, &NewEvent::of(&EventBody::JobStarted(started), turn, at))?;
        }
        self.changed_jobs.insert(seq);
        self.jobs.get_mut(&seq).map(Box::as_mut).ok_or(StoreError::Inconsistent {
            table: "jobs",
            column: "seq",
            row: seq.to_string(),
            message: "the row was not read".to_owned(),
        })
    }

    /// The engagement of a job, if it has one.
    pub(super) fn engagement_of(&self, job_seq: i64) -> Option<&EngagementRow> {
        self.jobs.get(&job_seq)?.engagement_seq.and_then(|seq| self.engagements.get(&seq)).map(Box::as_ref)
    }

    fn change_engagement(&mut self, job_seq: i64) -> Option<&mut EngagementRow> {
        let seq = self.jobs.get(&job_seq)?.engagement_seq?;
        self.changed_engagements.insert(seq);
        self.engagements.get_mut(&seq).map(Box::as_mut)
    }

    /// Appends an event to the job's stream.
    pub(super) fn event(&mut self, job_seq: i64, event: &NewEvent) -> Result<(), StoreError> {
        let stream = self.change_job(job_seq)?.stream;
        let seq = match self.change_engagement(job_seq) {
            Some(row) => {
                row.events += 1;
                row.events
            }
            None => {
                let job = self.change_job(job_seq)?;
                job.events += 1;
                job.events
            }
        };
        self.journal.event(stream, seq, job_seq, event);
        self.ring_events(job_seq);
        Ok(())
    }

    fn ring_events(&mut self, job_seq: i64) {
        let engagement = self.engagement_of(job_seq).map(|row| row.engagement.id.as_str());
        let Some(id) = engagement.or_else(|| self.job(job_seq).map(|job| job.id.as_str())) else { return };
        if !matches!(self.rings.last(), Some(Ring::Events(last)) if last == id) {
            let ring = Ring::Events(id.to_owned());
            self.rings.push(ring);
        }
    }

    /// Appends an event that is not a turn's own.
    pub(super) fn note(&mut self, job_seq: i64, body: EventBody, at: Timestamp) -> Result<(), StoreError> {
        let turn =
            self.job(job_seq).and_then(|job| job.position.as_ref()).map_or(0, |position| position.turn);
        if let Some(reported) = delegations::before_the_end(self, job_seq, body.name(), at) {
            // A stream says nothing after the end of its job.
            self.event(job_seq, &NewEvent { turn, ..reported })?;
        }
        self.event(job_seq, &NewEvent::of(&body, turn, at))
    }

    /// Appends a checkpoint; a complete turn counts in its engagement.
    pub(super) fn checkpoint(&mut self, job_seq: i64, done: &NewCheckpoint) {
        let Some(job) = self.job(job_seq) else { return };
        let events = self.engagement_of(job_seq).map_or(job.events, |row| row.events);
        let stream = (job.stream, events);
        self.journal.checkpoint(stream, job_seq, done);
        if let Some(row) = self.change_engagement(job_seq) {
            row.record_end = row.record_end.after(done.turn, done.phase);
            if done.phase.next().is_none() {
                row.engagement.turns = row.engagement.turns.max(done.turn);
            }
        }
    }

    /// Counts a write under a lease, and returns the end of the record after it. A plain job has no record.
    pub(super) fn count_write(&mut self, job_seq: i64) -> RecordEnd {
        let Some(row) = self.change_engagement(job_seq) else { return RecordEnd::default() };
        row.record_end.writes += 1;
        row.record_end
    }

    /// Counts what a job's engagement took over from others: complete turns and messages, and the end of the record.
    pub(super) fn took_over(&mut self, job_seq: i64, turns: i64, messages: i64, end: Option<(i64, Phase)>) {
        if let Some(row) = self.change_engagement(job_seq) {
            row.engagement.turns = turns;
            row.messages = messages;
            row.record_end = end.map_or(row.record_end, |(turn, phase)| row.record_end.after(turn, phase));
        }
    }

    /// Appends a message to the engagement.
    pub(super) fn message(
        &mut self,
        job_seq: i64,
        turn: i64,
        message: &Message,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(row) = self.change_engagement(job_seq) else { return Ok(()) };
        row.messages += 1;
        let (stream, seq) = ((row.seq, row.events), row.messages);
        self.journal.message(stream, (job_seq, turn), seq, message, at)
    }

    /// Adds or moves a row of the tool journal.
    pub(super) fn tool_call(
        &mut self,
        job_seq: i64,
        step: &ToolCallMove,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        match step {
            ToolCallMove::Intend { call_id, turn, position, name, input, idempotent, sent } => {
                let Some(engagement_seq) = self.engagement_of(job_seq).map(|row| row.seq) else {
                    return Ok(());
                };
                let state = if *sent { ToolCallState::Sent } else { ToolCallState::Planned };
                self.new_calls.push(NewToolCall {
                    call_id: call_id.clone(),
                    job_seq,
                    engagement_seq,
                    turn: *turn,
                    position: *position,
                    name: name.clone(),
                    input: input.to_string(),
                    idempotent: *idempotent,
                    state,
                    sends: i64::from(*sent),
                    created_at: at,
                    started_at: sent.then_some(at),
                });
            }
            ToolCallMove::Send { call_id } => {
                let step = ToolCallStep::to(ToolCallState::Sent, call_id, at);
                self.moved_calls.push(ToolCallStep { sends: 1, ..step });
            }
            ToolCallMove::Away { call_id, place, step } => {
                self.away.step(job_seq, call_id, place, step, at);
            }
            ToolCallMove::StandIn { call_id, of } => {
                self.stubs.push(StubRow { job_seq, call_id: call_id.clone(), of_call: of.clone() });
            }
            ToolCallMove::Retry { call_id, tried, instead } => {
                // Another tool is no retry of this one.
                let retries = i64::from(instead.is_none());
                let step = ToolCallStep::to(ToolCallState::Planned, call_id, at);
                let (tried, provider) = (Some(as_json(tried)?), instead.clone());
                self.moved_calls.push(ToolCallStep { retries, tried, provider, ..step });
            }
            ToolCallMove::Settle { call_id, outcome, handled, duration_ms, withheld } => {
                let outcome = Some(as_json::<ToolOutcome>(outcome)?);
                let handled = handled.as_ref().map(as_json).transpose()?;
                let step = ToolCallStep::to(ToolCallState::Settled, call_id, at);
                let (duration_ms, withheld) = (Some(*duration_ms), *withheld);
                self.moved_calls.push(ToolCallStep { outcome, duration_ms, withheld, handled, ..step });
            }
        }
        Ok(())
    }

    /// Appends what a guardrail said. Each attempt of the job asks it once; an operator may let its attempts begin again.
    pub(super) fn guardrail_check(&mut self, job_seq: i64, check: &GuardrailCheck) -> Result<(), StoreError> {
        let Some(engagement_seq) = self.engagement_of(job_seq).map(|row| row.seq) else { return Ok(()) };
        let attempt = self.job(job_seq).map_or(0, |job| job.attempt);
        self.checks.push(CheckRow {
            id: format!("{}#{attempt}-{}", check.call_id, check.at.0),
            engagement_seq,
            job_seq,
            turn: check.turn,
            side: check.side,
            tool: check.tool.clone(),
            content: as_json(&check.asked)?,
            passed: check.passed,
            created_at: check.at,
        });
        Ok(())
    }

    /// A job that was just parked waits for these.
    pub(super) fn wait_for_children(&mut self, job_seq: i64, children: &[NewChild], at: Timestamp) {
        let Some(job) = self.job(job_seq).map(|job| job.id.clone()) else { return };
        self.families.push(Family { job, children: children.to_vec(), at });
    }

    /// A job that a breaker refused waits for it. The breaker may have closed meanwhile: then the scheduler releases the job.
    pub(super) fn wait_for_breaker(&mut self, job_seq: i64, error: &JobError, at: Timestamp) {
        let said = error.details.get(DETAIL).filter(|_| error.kind == FailureKind::CircuitOpen);
        let Some(key) = said.and_then(Value::as_str).and_then(BreakerKey::parse) else { return };
        let attempt = self.job(job_seq).map_or(0, |job| job.attempt);
        let name = key.as_str().to_owned();
        self.breaker_waits.push(BreakerWait { job_seq, breaker: name.clone(), attempt });
        self.breakers.push(NewBreaker { name, release_at: Some(at), now: at });
    }

    /// Stores a job's result.
    pub(super) fn result(&mut self, job_seq: i64, result: &RawJson) {
        self.results.push(NewResult { job_seq, result: result.as_str().to_owned() });
    }

    /// Remembers the exchange of a job that completes.
    pub(super) fn remember(&mut self, job_seq: i64, exchange: &Remember, at: Timestamp) {
        let Remember { began, ended, rules } = exchange.clone();
        self.memories.push(NewMemory { seq: job_seq, began, ended, rules, at });
    }

    /// Appends a failed attempt.
    pub(super) fn error(&mut self, job_seq: i64, error: &JobError, at: Timestamp) -> Result<(), StoreError> {
        let attempt = self.job(job_seq).map_or(0, |job| job.attempt);
        self.errors.push(NewError {
            job_seq,
            attempt,
            error: as_json(error)?,
            at,
            code: error.code().to_owned(),
        });
        Ok(())
    }

    /// Appends a failed attempt as it is on record.
    pub(super) fn failed_attempt(&mut self, job_seq: i64, failed: &FailedAttempt) -> Result<(), StoreError> {
        let (error, code) = (as_json(&failed.error)?, failed.error.code().to_owned());
        self.errors.push(NewError { job_seq, attempt: failed.attempt, error, at: failed.at, code });
        Ok(())
    }

    /// Opens a review.
    pub(super) fn review(&mut self, job_seq: i64, new: &NewReview, at: Timestamp) -> Result<(), StoreError> {
        let Some(engagement_seq) = self.engagement_of(job_seq).map(|row| row.seq) else { return Ok(()) };
        let (remind_at, _) = new.plan.begin(at);
        let plan = (!new.plan.steps.is_empty()).then(|| as_json(&new.plan)).transpose()?;
        let first = new.plan.steps.first().map(|step| step.members.as_slice());
        self.reviews.push(ReviewRow {
            id: new.id.clone(),
            engagement_seq,
            job_seq,
            turn: new.turn,
            call_id: new.call_id.clone(),
            kind: new.kind,
            reviewer: new.reviewer.clone(),
            question: new.question.to_string(),
            arguments_hash: new.arguments_hash.clone(),
            created_at: at,
            deadline_at: new.deadline_at,
            plan,
            members: between_breaks(first.unwrap_or_default()),
            remind_at,
            asked: new.asked.clone(),
            state: ReviewState::Open,
        });
        Ok(())
    }

    /// Writes everything that changed; the hints are sent after the commit.
    pub(super) async fn flush(&mut self, session: &mut Session) -> Result<(), StoreError> {
        let (mut moved, mut touched) = (Vec::new(), Vec::new());
        for job in self.changed_jobs.iter().filter_map(|seq| self.jobs.get(seq)) {
            if job.moved {
                moved.push(job.as_ref());
                self.away.moved(job);
                self.ended.extend(ended(job));
                self.tree_ends.extend(TreeEnd::of(job, self.engagement_of(job.seq)));
                self.freed.extend(Freed::of(job, self.engagement_of(job.seq)));
                if job.read_state == JobState::Active && job.state != JobState::Active {
                    self.left.insert(job.queue.clone());
                    // A limit of its key, or of its tenant, may let another one start.
                    self.rings
                        .extend(job.limit_key.as_ref().or(job.tenant.as_ref()).map(|_| Ring::Available));
                }
            } else {
                touched.push(job.as_ref());
            }
        }
        let mut writes = Writes::default();
        writes.all_kept("write jobs", &sql::UPDATE_JOBS, &moved);
        writes.all_kept("write jobs", &sql::UPDATE_ACTIVE_JOBS, &touched);
        self.journal.flush(session, &mut writes)?;
        writes.insert("write tool calls", take(&mut self.new_calls));
        writes.insert("write stubs", take(&mut self.stubs));
        writes.insert("write results", take(&mut self.results));
        writes.all("write errors", &sql::INSERT_ERRORS, take(&mut self.errors));
        writes.insert_missing("write guardrail checks", take(&mut self.checks));
        self.away.leave(&mut writes);
        writes.some("write memories", &sql::INSERT_MEMORIES, take(&mut self.memories));
        writes.insert_over("wait for breakers", take(&mut self.breaker_waits));
        writes.some("add breakers", &sql::INSERT_BREAKERS, take(&mut self.breakers));
        writes.insert("write reviews", take(&mut self.reviews));
        self.artifacts.flush(&mut writes);
        self.states.flush(&mut writes);
        let counted = self.changed_engagements.iter().filter_map(|seq| self.engagements.get(seq));
        let counted = counted.map(|row| (row.seq, Counters::of(row))).collect();
        // Last, because many wait for a shared budget: it is held no longer than the commit takes.
        self.budgets.write(session, &mut writes, counted).await?;
        session.write(writes.done()?).await?;
        // Apart, because a call may be journalled and settled in one go.
        let mut moves = Writes::default();
        moves.all("write tool calls", &sql::UPDATE_TOOL_CALLS, take(&mut self.moved_calls));
        self.away.flush(&mut moves);
        moves.run(session).await?;
        // A statement of its own: a repeated call changes its row twice, and PostgreSQL applies only one of two changes that
        // one statement makes to a row.
        let mut costs = Writes::default();
        self.budgets.write_costs(&mut costs);
        costs.run(session).await
    }
}
