//! The rows of new jobs, written in one go.

use super::continuing::Open;
use super::{DelegationPlace, PushEntry};
use super::{limits, unique};
use crate::engine::journal::Journal;
use crate::engine::rows::{
    ChildCount, DefinitionRow, DelegationRow, EngagementAgent, InputCount, InputDefinition, NewEngagementRow,
    NewEnvelope, NewJobRow, NewTotals, PushedCount, QueueName, TagRow,
};
use crate::engine::session::Session;
use crate::engine::statement::{Writes, as_json};
use crate::{JobKind, StoreError, sql};
use std::borrow::Cow;
use std::collections::BTreeMap;
use turnstone_domain::agent::Admission;
use turnstone_domain::agent::delegation::DelegationState;
use turnstone_domain::budget::{self, ALL_DAYS};
use turnstone_domain::event::{DelegationRole, DelegationStart, Enqueued, EventBody, Scheduled};
use turnstone_domain::retry::OnExhaustion;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{AgentDefinition, JobState, NewEvent, NewJob, RawObject, Timestamp, digest};

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

/// Returns what the client sent beyond OJS's own fields; the depth is the counted one, not the one in the request.
fn extra<'a>(entry: &PushEntry<'a>) -> Cow<'a, RawObject> {
    let sent = &entry.job.envelope.extra;
    let Some(delegation) = entry.delegation else { return Cow::Borrowed(sent) };
    let mut extra = sent.clone();
    extra.insert("ext_agent_delegation_depth", delegation.depth);
    Cow::Owned(extra)
}

/// Returns the agent of a further input; it is checked before, so an imported one is admitted.
fn admitted(agent: &AgentDefinition) -> Cow<'_, AgentDefinition> {
    match (agent.imported, agent.admitted) {
        (true, None | Some(Admission::Registered)) => {
            Cow::Owned(AgentDefinition { admitted: Some(Admission::Checked), ..agent.clone() })
        }
        _ => Cow::Borrowed(agent),
    }
}

/// The further inputs of an engagement.
struct Additions {
    events: i64,
    inputs: i64,
    /// The agent of the one whose turn has come, and how long that one wants the conversation kept.
    agent: Option<(String, Option<i64>)>,
    open: bool,
}

/// The place of a job in its stream and its engagement.
struct JobPlace {
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
    /// True when the numbers are [places](crate::engine::columns::Columns::placed).
    placed: bool,
    jobs: Vec<NewJobRow>,
    envelopes: Vec<NewEnvelope>,
    tags: Vec<TagRow>,
    queues: BTreeMap<String, Timestamp>,
    definitions: Vec<DefinitionRow>,
    own_definitions: Vec<InputDefinition>,
    totals: Vec<NewTotals>,
    engagements: Vec<NewEngagementRow>,
    continued: BTreeMap<i64, Additions>,
    delegations: Vec<DelegationRow>,
    adopted: BTreeMap<i64, ChildCount>,
    journal: Journal,
}

impl Rows {
    /// No rows yet; the jobs take these numbers, or these places among new numbers.
    pub(super) fn new(numbers: Vec<i64>, placed: bool) -> Self {
        Self { numbers: numbers.into_iter(), placed, ..Self::default() }
    }

    /// Adds a job that may run at `run_at`; returns the state in which it begins.
    pub(super) fn add(&mut self, entry: &PushEntry<'_>, run_at: Timestamp) -> Result<JobState, StoreError> {
        let job = entry.job;
        let seq = self.numbers.next().ok_or_else(|| StoreError::Database {
            action: "number jobs",
            message: "the database gave fewer numbers than it was asked for".to_owned(),
        })?;
        let place = match entry.continues {
            Some(open) => self.go_on(seq, job, open, run_at)?,
            None => self.begin(seq, entry, run_at)?,
        };
        let JobPlace { state, engagement_seq, stream, after, events, position } = place;
        let own_events = if engagement_seq.is_none() { events } else { 0 };
        let terms = &job.terms;
        self.jobs.push(NewJobRow {
            seq,
            id: job.id.clone(),
            job_type: job.job_type.clone(),
            queue: job.queue.clone(),
            state,
            priority: job.priority,
            created_at: job.created_at,
            run_at,
            expires_at: job.expires_at,
            timeout_ms: job.timeout_ms,
            engagement_seq,
            stream,
            position,
            events: own_events,
            kind: JobKind::of(job),
            tenant: terms.tenant.clone(),
            visibility_ms: terms.visibility_ms,
            limit_key: limits::key(job),
            unique_key: unique::key(job),
            workflow_seq: entry.step.map(|(workflow, _)| workflow),
            workflow_step: entry.step.map(|(_, step)| step),
            cron_name: terms.cron.clone(),
            dead_letter: job.retry.on_exhaustion == OnExhaustion::DeadLetter,
            runtime_tags: Some(terms.runtime_tags.clone()).filter(|tags| !tags.is_empty()),
        });
        self.tags.extend(terms.tags.iter().map(|tag| TagRow { tag: tag.clone(), job_seq: seq }));
        let sent = &job.envelope;
        self.envelopes.push(NewEnvelope {
            job_seq: seq,
            retry: as_json(&job.retry)?,
            args: sent.args.as_str().to_owned(),
            meta: as_json(&sent.meta)?,
            options: as_json(&sent.options)?,
            extra: as_json(&extra(entry))?,
            parent_results: terms.parent_results.as_ref().map(|results| format!("[{}]", results.join(","))),
        });
        self.queues.entry(job.queue.clone()).or_insert(job.created_at);
        let input = engagement_seq.and_then(|seq| self.continued.get(&seq)).map(|added| added.inputs);
        let enqueued = Enqueued { job_type: job.job_type.clone(), queue: job.queue.clone(), input };
        let at = job.created_at;
        let enqueued = NewEvent::of(&EventBody::JobEnqueued(enqueued), 0, at);
        self.journal.event(stream, after + 1, seq, &enqueued);
        if state == JobState::Scheduled {
            let scheduled = EventBody::JobScheduled(Scheduled { scheduled_at: run_at.to_rfc3339() });
            let scheduled = NewEvent::of(&scheduled, 0, at);
            self.journal.event(stream, after + 2, seq, &scheduled);
        }
        if let Some(delegation) = entry.delegation {
            self.add_delegation(seq, job, delegation, events);
        }
        Ok(state)
    }

    /// A job that begins its stream, and its engagement if it has one.
    fn begin(&mut self, seq: i64, entry: &PushEntry<'_>, run_at: Timestamp) -> Result<JobPlace, StoreError> {
        let state = first_state(entry.job, run_at);
        let events = 1 + i64::from(state == JobState::Scheduled) + i64::from(entry.delegation.is_some());
        let engagement_seq = self.add_engagement(seq, entry, events)?;
        let position = engagement_seq.map(|_| Position { turn: 1, ..Position::default() });
        Ok(JobPlace { state, engagement_seq, stream: seq, after: 0, events, position })
    }

    /// A job that carries a further input into an engagement: it waits for those before it, and so does what it says of the
    /// agent.
    fn go_on(
        &mut self,
        seq: i64,
        job: &NewJob,
        open: &Open,
        run_at: Timestamp,
    ) -> Result<JobPlace, StoreError> {
        let retention_ms = job.engagement.as_ref().and_then(|new| new.agent.state.kept_ms());
        let agent = job.engagement.as_ref().map(|new| admitted(&new.agent));
        let definition = as_json(&agent)?;
        let digest = digest::of_text(&definition);
        self.definitions.push(DefinitionRow { digest: digest.clone(), definition });
        let before = (open.seq, open.digest.clone(), open.retention_ms);
        for (job_seq, digest, retention_ms) in [before, (seq, digest.clone(), retention_ms)] {
            self.own_definitions.push(InputDefinition { job_seq, digest, retention_ms });
        }
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
        Ok(JobPlace { state, engagement_seq: Some(open.seq), stream: open.seq, after, events, position })
    }

    /// A job that works for another one; its stream says so last.
    fn add_delegation(&mut self, seq: i64, job: &NewJob, delegation: &DelegationPlace, event: i64) {
        let at = job.created_at;
        let agent = job.engagement.as_ref().map_or_else(String::new, |new| new.agent.name.clone());
        let started = DelegationStart {
            role: DelegationRole::Child,
            agent_id: agent.clone(),
            mode: delegation.mode,
            call_id: delegation.call_id.clone(),
            job_id: delegation.parent.clone(),
            engagement_id: None,
            depth: delegation.depth,
            timeout_ms: delegation.timeout_ms,
        };
        let started = NewEvent::of(&EventBody::DelegationStarted(started), 0, at);
        self.journal.event(seq, event, seq, &started);
        self.delegations.push(DelegationRow {
            job_seq: seq,
            parent_seq: delegation.parent_seq,
            call_id: delegation.call_id.as_ref().map(|id| id.0.clone()),
            turn: delegation.turn,
            agent,
            mode: delegation.mode,
            started_at: at,
            deadline_at: delegation.timeout_ms.map(|ms| at.plus_ms(ms)),
            state: DelegationState::Open,
        });
        self.adopt(delegation.parent_engagement_seq).many += 1;
        self.adopt(delegation.budget_seq).tree_jobs += i64::from(delegation.jobs);
    }

    fn adopt(&mut self, seq: i64) -> &mut ChildCount {
        self.adopted.entry(seq).or_insert(ChildCount { seq, ..ChildCount::default() })
    }

    /// An engagement and its totals take the number of the job that begins them.
    /// One that works for another has the other's budget and, when its agent has a limit, one of its own as well.
    fn add_engagement(
        &mut self,
        seq: i64,
        entry: &PushEntry<'_>,
        events: i64,
    ) -> Result<Option<i64>, StoreError> {
        let job = entry.job;
        let Some(new) = &job.engagement else { return Ok(None) };
        let definition = match entry.delegation.map(|delegation| delegation.max_depth) {
            Some(most) if most < new.agent.limits.max_delegation_depth => {
                let mut agent = new.agent.clone();
                agent.limits.max_delegation_depth = most;
                as_json(&agent)?
            }
            _ => as_json(&new.agent)?,
        };
        let digest = digest::of_text(&definition);
        let (tokens, money) = (new.agent.limits.token_budget, new.agent.spending.cost_budget);
        let mut limited_by =
            entry.delegation.map(|delegation| delegation.limited_by.clone()).unwrap_or_default();
        let is_limited = entry.delegation.is_some() && (tokens.is_some() || money.is_some());
        let name = is_limited.then(|| budget::name_of_delegate(&new.id));
        limited_by.extend(name.clone());
        let (scope, day) = if is_limited { ("agent", Some(ALL_DAYS)) } else { ("engagement", None) };
        self.totals.push(NewTotals {
            seq,
            events,
            scope: Cow::Borrowed(scope),
            name,
            day,
            token_limit: tokens,
            money_limit: money,
        });
        self.engagements.push(NewEngagementRow {
            seq,
            id: new.id.clone(),
            agent_name: new.agent.name.clone(),
            digest: digest.clone(),
            user_id: new.user.id.clone(),
            user_email: new.user.email.clone(),
            started_at: job.created_at,
            budget_seq: entry.delegation.map_or(seq, |delegation| delegation.budget_seq),
            depth: entry.delegation.map_or(new.depth, |delegation| delegation.depth),
            parent_seq: entry.delegation.map(|delegation| delegation.parent_seq),
            limited_by: (!limited_by.is_empty()).then(|| limited_by.join(" ")),
            retention_ms: new.agent.state.kept_ms(),
        });
        self.definitions.push(DefinitionRow { digest, definition });
        Ok(Some(seq))
    }

    /// Writes them.
    pub(super) async fn flush(mut self, session: &mut Session) -> Result<(), StoreError> {
        self.definitions.sort();
        self.definitions.dedup();
        let takers = match self.placed {
            true => pushed_counts(&self.jobs),
            false => Vec::new(),
        };
        let queues = self.queues.into_iter();
        let queues = queues.map(|(name, created_at)| QueueName { name, created_at }).collect();
        let mut writes = Writes::default();
        writes.insert_missing("remember queues", queues);
        writes.some("write agent definitions", &sql::INSERT_DEFINITIONS, self.definitions);
        writes.insert("write totals", self.totals);
        writes.insert("write engagements", self.engagements);
        let (mut counted, mut given) = (Vec::new(), Vec::new());
        for (seq, Additions { events, inputs, agent, .. }) in self.continued {
            counted.push(InputCount { seq, events, inputs });
            given.extend(agent.map(|(digest, retention_ms)| EngagementAgent { seq, digest, retention_ms }));
        }
        writes.insert_missing("write agents of inputs", self.own_definitions);
        writes.all("count inputs", &sql::UPDATE_TOTALS_OF_INPUTS, counted);
        writes.all("give engagements their agents", &sql::UPDATE_CONTINUED_ENGAGEMENTS, given);
        writes.insert("write jobs", self.jobs);
        writes.insert("write envelopes", self.envelopes);
        writes.insert("write tags", self.tags);
        self.journal.flush(session, &mut writes)?;
        writes.insert("write delegations", self.delegations);
        let adopted = self.adopted.into_values().collect();
        writes.all("count children", &sql::UPDATE_TOTALS_OF_CHILDREN, adopted);
        if !takers.is_empty() {
            writes = writes.placed("number jobs", &sql::SELECT_NEW_NUMBERS, takers);
        }
        writes.run(session).await
    }
}

/// How many of the jobs go into each queue.
fn pushed_counts(jobs: &[NewJobRow]) -> Vec<PushedCount> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for job in jobs {
        *counts.entry(&job.queue).or_default() += 1;
    }
    counts.into_iter().map(|(queue, jobs)| PushedCount { queue: queue.to_owned(), jobs }).collect()
}
