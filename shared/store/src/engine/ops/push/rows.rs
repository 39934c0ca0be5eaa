//! The rows of new jobs, written in one go.

use super::super::super::journal::Journal;
use super::super::super::session::Session;
use super::super::super::statement::{Writes, as_json};
use super::continuing::Open;
use super::{Entry, Kinship};
use super::{limits, unique};
use crate::{JobKind, StoreError, sql};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use turnstone_domain::budget;
use turnstone_domain::retry::OnExhaustion;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{EventName, JobId, JobState, NewEvent, NewJob, RawObject, Timestamp, digest};

type JobInsert = (
    i64,
    JobId,
    String,
    String,
    &'static str,
    i64,
    i64,
    i64,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    i64,
    Option<String>,
    i64,
    &'static str,
    Option<String>,
    Option<i64>,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<String>,
    i64,
    Option<String>,
);
type DelegationInsert = (i64, i64, Option<String>, i64, String, &'static str, Timestamp, Option<Timestamp>);
type EnvelopeInsert = (i64, String, String, String, String, String, Option<String>);
type TotalsInsert = (i64, i64, Option<String>, Option<i64>, Option<i64>);
type EngagementInsert = (
    i64,
    String,
    String,
    String,
    String,
    Option<String>,
    i64,
    i64,
    i64,
    Option<i64>,
    Option<String>,
    Option<i64>,
);

/// The state in which a job begins.
pub(super) fn first_state(job: &NewJob, run_at: Timestamp) -> JobState {
    if job.terms.pending {
        JobState::Pending
    } else if run_at > job.created_at {
        JobState::Scheduled
    } else {
        JobState::Available
    }
}

/// What the client sent beyond what OJS knows; the depth is the one that is counted, not the one that was claimed.
fn extra<'a>(entry: &Entry<'a>) -> Cow<'a, RawObject> {
    let sent = &entry.job.envelope.extra;
    let Some(kin) = entry.kinship else { return Cow::Borrowed(sent) };
    let mut extra = sent.clone();
    extra.insert("ext_agent_delegation_depth", kin.depth);
    Cow::Owned(extra)
}

/// What an engagement got of further inputs.
struct Additions {
    events: i64,
    inputs: i64,
    /// The agent of the one whose turn has come, and how long that one wants the conversation kept.
    agent: Option<(String, Option<i64>)>,
    open: bool,
}

/// Where a job stands in its stream and its engagement.
struct Place {
    state: JobState,
    engagement_seq: Option<i64>,
    stream: i64,
    /// Events of the stream before its own.
    after: i64,
    /// Its own ones.
    events: i64,
    position: Option<Position>,
}

/// Rows of jobs, and what belongs to them.
#[derive(Default)]
pub(super) struct Rows {
    numbers: std::vec::IntoIter<i64>,
    jobs: Vec<JobInsert>,
    envelopes: Vec<EnvelopeInsert>,
    queues: BTreeMap<String, i64>,
    definitions: Vec<(String, String)>,
    own_definitions: Vec<(i64, String, Option<i64>)>,
    totals: Vec<TotalsInsert>,
    engagements: Vec<EngagementInsert>,
    continued: BTreeMap<i64, Additions>,
    delegations: Vec<DelegationInsert>,
    adopted: BTreeMap<i64, i64>,
    journal: Journal,
}

impl Rows {
    /// No rows yet; the jobs take these numbers.
    pub(super) fn new(numbers: Vec<i64>) -> Self {
        Self { numbers: numbers.into_iter(), ..Self::default() }
    }

    /// Adds a job that may run at `run_at`; returns the state in which it begins.
    pub(super) fn add(&mut self, entry: &Entry<'_>, run_at: Timestamp) -> Result<JobState, StoreError> {
        let job = entry.job;
        let seq = self.numbers.next().ok_or_else(|| StoreError::Database {
            action: "number jobs",
            message: "the database gave fewer numbers than it was asked for".to_owned(),
        })?;
        let place = match entry.continues {
            Some(open) => self.go_on(seq, job, open, run_at)?,
            None => self.begin(seq, entry, run_at)?,
        };
        let Place { state, engagement_seq, stream, after, events, position } = place;
        let own_events = if engagement_seq.is_none() { events } else { 0 };
        let position = position.as_ref().map(as_json).transpose()?;
        self.jobs.push((
            seq,
            job.id.clone(),
            job.job_type.clone(),
            job.queue.clone(),
            state.as_str(),
            job.priority,
            job.created_at.0,
            run_at.0,
            job.expires_at.map(|t| t.0),
            job.timeout_ms,
            engagement_seq,
            stream,
            position,
            own_events,
            JobKind::of(job).as_str(),
            job.terms.tenant.clone(),
            job.terms.visibility_ms,
            limits::key(job),
            unique::key(job),
            entry.step.map(|(workflow, _)| workflow),
            entry.step.map(|(_, step)| step),
            job.terms.cron.clone(),
            i64::from(job.retry.on_exhaustion == OnExhaustion::DeadLetter),
            if job.terms.runtime_tags.is_empty() { None } else { Some(as_json(&job.terms.runtime_tags)?) },
        ));
        let sent = &job.envelope;
        self.envelopes.push((
            seq,
            as_json(&job.retry)?,
            sent.args.as_str().to_owned(),
            as_json(&sent.meta)?,
            as_json(&sent.options)?,
            as_json(&extra(entry))?,
            job.terms.parent_results.as_ref().map(|results| format!("[{}]", results.join(","))),
        ));
        self.queues.entry(job.queue.clone()).or_insert(job.created_at.0);
        let mut data = json!({"job_type": job.job_type, "queue": job.queue});
        if let Some(input) = engagement_seq.and_then(|seq| self.continued.get(&seq)).map(|added| added.inputs)
        {
            data["input"] = input.into();
        }
        let at = job.created_at;
        let enqueued = NewEvent { name: EventName::JobEnqueued, turn: 0, data: data.into(), at };
        self.journal.event(stream, after + 1, seq, &enqueued);
        if state == JobState::Scheduled {
            let data = json!({"scheduled_at": run_at.to_rfc3339()});
            let scheduled = NewEvent { name: EventName::JobScheduled, turn: 0, data: data.into(), at };
            self.journal.event(stream, after + 2, seq, &scheduled);
        }
        if let Some(kin) = entry.kinship {
            self.add_kin(seq, job, kin, events);
        }
        Ok(state)
    }

    /// A job that begins its stream, and its engagement if it has one.
    fn begin(&mut self, seq: i64, entry: &Entry<'_>, run_at: Timestamp) -> Result<Place, StoreError> {
        let state = first_state(entry.job, run_at);
        let events = 1 + i64::from(state == JobState::Scheduled) + i64::from(entry.kinship.is_some());
        let engagement_seq = self.add_engagement(seq, entry, events)?;
        let position = engagement_seq.map(|_| Position { turn: 1, ..Position::default() });
        Ok(Place { state, engagement_seq, stream: seq, after: 0, events, position })
    }

    /// A job that carries a further input into an engagement: it waits for those before it, and so does what it says of the
    /// agent.
    fn go_on(&mut self, seq: i64, job: &NewJob, open: &Open, run_at: Timestamp) -> Result<Place, StoreError> {
        let retention_ms = job.engagement.as_ref().and_then(|new| new.agent.state.kept_ms());
        let definition = as_json(&job.engagement.as_ref().map(|new| &new.agent))?;
        let digest = digest::of_text(&definition);
        self.definitions.push((digest.clone(), definition));
        self.own_definitions.push((open.seq, open.digest.clone(), open.retention_ms));
        self.own_definitions.push((seq, digest.clone(), retention_ms));
        let before = Additions {
            events: open.events,
            inputs: open.inputs,
            agent: None,
            open: !open.standing.open.is_empty(),
        };
        let added = self.continued.entry(open.seq).or_insert(before);
        let state = if added.open { JobState::Pending } else { first_state(job, run_at) };
        let (after, events) = (added.events, 1 + i64::from(state == JobState::Scheduled));
        added.events += events;
        added.inputs += 1;
        if !std::mem::replace(&mut added.open, true) {
            added.agent = Some((digest, retention_ms));
        }
        let position = Some(open.standing.next(open.turns));
        Ok(Place { state, engagement_seq: Some(open.seq), stream: open.seq, after, events, position })
    }

    /// A job that works for another one; its stream says so last.
    fn add_kin(&mut self, seq: i64, job: &NewJob, kin: &Kinship, event: i64) {
        let at = job.created_at;
        let agent = job.engagement.as_ref().map_or_else(String::new, |new| new.agent.name.clone());
        let data = json!({"role": "child", "agent_id": agent, "mode": kin.mode, "call_id": kin.call_id,
                          "job_id": kin.parent, "depth": kin.depth, "timeout_ms": kin.timeout_ms});
        let started = NewEvent { name: EventName::DelegationStarted, turn: 0, data: data.into(), at };
        self.journal.event(seq, event, seq, &started);
        self.delegations.push((
            seq,
            kin.parent_seq,
            kin.call_id.as_ref().map(|id| id.0.clone()),
            kin.turn,
            agent,
            kin.mode.as_str(),
            at,
            kin.timeout_ms.map(|ms| at.plus_ms(ms)),
        ));
        *self.adopted.entry(kin.parent_engagement_seq).or_default() += 1;
    }

    /// An engagement and its totals take the number of the job that begins them.
    /// One that works for another has the other's budget and, when its agent has a limit, one of its own as well.
    fn add_engagement(
        &mut self,
        seq: i64,
        entry: &Entry<'_>,
        events: i64,
    ) -> Result<Option<i64>, StoreError> {
        let job = entry.job;
        let Some(new) = &job.engagement else { return Ok(None) };
        let definition = match entry.kinship.map(|kin| kin.max_depth) {
            Some(most) if most < new.agent.limits.max_delegation_depth => {
                let mut agent = new.agent.clone();
                agent.limits.max_delegation_depth = most;
                as_json(&agent)?
            }
            _ => as_json(&new.agent)?,
        };
        let digest = digest::of_text(&definition);
        let (tokens, money) = (new.agent.limits.token_budget, new.agent.spending.cost_budget);
        let mut limited_by = entry.kinship.map(|kin| kin.limited_by.clone()).unwrap_or_default();
        let is_limited = entry.kinship.is_some() && (tokens.is_some() || money.is_some());
        let name = is_limited.then(|| budget::name_of_delegate(&new.id));
        limited_by.extend(name.clone());
        self.totals.push((seq, events, name, tokens, money));
        self.engagements.push((
            seq,
            new.id.0.clone(),
            new.agent.name.clone(),
            digest.clone(),
            new.user.id.clone(),
            new.user.email.clone(),
            job.created_at.0,
            entry.kinship.map_or(seq, |kin| kin.budget_seq),
            entry.kinship.map_or(new.depth, |kin| kin.depth),
            entry.kinship.map(|kin| kin.parent_seq),
            (!limited_by.is_empty()).then(|| limited_by.join(" ")),
            new.agent.state.kept_ms(),
        ));
        self.definitions.push((digest, definition));
        Ok(Some(seq))
    }

    /// Writes them.
    pub(super) async fn flush(mut self, session: &mut Session) -> Result<(), StoreError> {
        self.definitions.sort();
        self.definitions.dedup();
        let queues = self.queues.into_iter().collect();
        let mut writes = Writes::default();
        writes.if_new("remember queues", &sql::INSERT_QUEUES, queues);
        writes.if_new("write agent definitions", &sql::INSERT_DEFINITIONS, self.definitions);
        writes.all("write totals", &sql::INSERT_TOTALS, self.totals);
        writes.all("write engagements", &sql::INSERT_ENGAGEMENTS, self.engagements);
        let (mut counted, mut given) = (Vec::new(), Vec::new());
        for (seq, Additions { events, inputs, agent, .. }) in self.continued {
            counted.push((seq, events, inputs));
            given.extend(agent.map(|(digest, retention_ms)| (seq, digest, retention_ms)));
        }
        writes.if_new("write agents of inputs", &sql::INSERT_INPUT_DEFINITIONS, self.own_definitions);
        writes.all("count inputs", &sql::UPDATE_TOTALS_OF_INPUTS, counted);
        writes.all("give engagements their agents", &sql::UPDATE_CONTINUED_ENGAGEMENTS, given);
        writes.all("write jobs", &sql::INSERT_JOBS, self.jobs);
        writes.all("write envelopes", &sql::INSERT_ENVELOPES, self.envelopes);
        self.journal.flush(&mut writes)?;
        writes.all("write delegations", &sql::INSERT_DELEGATIONS, self.delegations);
        writes.all("count children", &sql::UPDATE_TOTALS_OF_CHILDREN, self.adopted.into_iter().collect());
        writes.run(session).await
    }
}
