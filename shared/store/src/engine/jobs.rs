//! Rows of jobs into jobs: with everything that belongs to one, or as lists show many.
//!
//! A list costs the same number of reads however many jobs it has, never reads a tool journal, and shows a job that cannot be
//! read whole with what can be read of it.

use super::rows::{self, EngagementRow, Inconsistency, JobRow, get, json, json_or_none, maybe, time};
use super::session::Row;
use super::views::{all, by_seqs, one};
use super::workflows::StepInput;
use super::{Engine, journal, remote};
use crate::{StoreError, sql};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use turnstone_domain::agent::guardrails::Guardrails;
use turnstone_domain::job::{AgentJob, Envelope, FailedAttempt, SavedState, ToolResults};
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};
use turnstone_domain::{AgentDefinition, EventName, Job, JobState, RawJson};

/// Calls of a journal that are read at once.
const CALLS_AT_ONCE: u32 = 50;
/// At most this many calls are shown with a job; the newest.
const MOST_CALLS: usize = 1_000;
/// No further calls are read once their outcomes have this many bytes.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// What belongs to some jobs, by their seqs.
struct Belongings {
    kept: HashMap<i64, Kept>,
    errors: HashMap<i64, Vec<FailedAttempt>>,
    parked: HashMap<i64, Value>,
}

/// A job as the report of its worker left it.
pub(super) struct Reported {
    pub row: JobRow,
    /// What belongs to it, if that is all.
    pub kept: Option<Kept>,
}

/// What belongs to a job beside its row.
pub(super) struct Kept {
    retry: RetryPolicy,
    envelope: Envelope,
    pub result: Option<RawJson>,
    saved: Option<SavedState>,
    /// Whether it has failed attempts.
    pub failed: bool,
}

impl Kept {
    /// Reads it, with the seq of the job.
    pub(super) fn decode(row: &Row) -> Result<(i64, Self), Inconsistency> {
        let (seq, retry, envelope) = rows::envelope(row)?;
        let result = json_or_none(row, "result")?;
        let saved = match maybe::<&str>(row, "state")? {
            Some(_) => Some(remote::saved(row)?.1),
            None => None,
        };
        Ok((seq, Self { retry, envelope, result, saved, failed: get(row, "failed")? }))
    }
}

/// The agent side of a job, and what says how much of it is shown.
struct Side {
    agent: AgentJob,
    /// Of its definition.
    digest: String,
    /// Whether it works for an agent with an output guardrail.
    for_guarded: bool,
}

impl Engine {
    /// Jobs with everything that belongs to them, in the order of the rows. One whose history is gone already is left
    /// out.
    pub(super) async fn complete(&self, rows: Vec<JobRow>) -> Result<Vec<Job>, StoreError> {
        // Jobs are large, and so is a future that holds some; handlers keep this one in theirs.
        Box::pin(self.completed(rows)).await
    }

    /// The job that a report was about.
    pub(super) async fn reported(&self, Reported { row, kept }: Reported) -> Result<Option<Job>, StoreError> {
        let Some(Kept { retry, envelope, result, saved, .. }) = kept else {
            return Ok(self.complete(vec![row]).await?.pop());
        };
        Ok(Some(Job { saved, retry, envelope, result, ..bare(row) }))
    }

    async fn completed(&self, rows: Vec<JobRow>) -> Result<Vec<Job>, StoreError> {
        let mut belongings = self.belongings(&rows).await?;
        let mut jobs = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(kept) = belongings.kept.remove(&row.seq) else { continue };
            let mut side = self.agents_of(std::slice::from_ref(&row)).await?.remove(&row.seq);
            if let Some(side) = &mut side {
                side.agent.tool_results = Some(self.tool_results(&row, side).await?);
            }
            let step = self.step_input(&row).await?;
            jobs.push(belongings.job(row, kept, step, side));
        }
        Ok(jobs)
    }

    /// Jobs for a list, in the order of the rows: as [`Self::complete`], but for their tool journals. What cannot be read
    /// of one does not keep the others back.
    pub(super) async fn jobs_listed(
        &self,
        rows: Vec<(JobRow, Option<Inconsistency>)>,
    ) -> Result<Vec<Job>, StoreError> {
        let whole: Vec<JobRow> = rows.iter().map(|(row, _)| row.clone()).collect();
        let mut jobs: HashMap<_, Job> = match Box::pin(self.gathered(whole)).await {
            Ok(jobs) => jobs.into_iter().map(|job| (job.id.clone(), job)).collect(),
            Err(error) if is_damage(&error) => HashMap::new(),
            Err(error) => return Err(error),
        };
        let all_at_once = !jobs.is_empty();
        let mut listed = Vec::with_capacity(rows.len());
        for (row, damage) in rows {
            let (id, seen) = (row.id.clone(), row.clone());
            let alone = match jobs.remove(&id) {
                Some(job) => Ok(Some(job)),
                None if all_at_once => continue,
                None => Box::pin(self.gathered(vec![row])).await.map(|mut jobs| jobs.pop()),
            };
            let (job, damage) = match alone {
                Ok(Some(job)) => (job, damage.map(StoreError::from)),
                Ok(None) => continue,
                Err(error) if is_damage(&error) => (bare(seen), Some(error)),
                Err(error) => return Err(error),
            };
            let damaged = damage.map(|why| why.to_string());
            if let Some(why) = &damaged {
                tracing::error!(job = %id, why, "a job that is listed cannot be read");
            }
            listed.push(Job { damaged, ..job });
        }
        Ok(listed)
    }

    /// Jobs without their tool journals, in as many reads as one takes.
    async fn gathered(&self, rows: Vec<JobRow>) -> Result<Vec<Job>, StoreError> {
        let mut belongings = self.belongings(&rows).await?;
        let mut agents = self.agents_of(&rows).await?;
        let mut jobs = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(kept) = belongings.kept.remove(&row.seq) else { continue };
            let side = agents.remove(&row.seq);
            let step = self.step_input(&row).await?;
            jobs.push(belongings.job(row, kept, step, side));
        }
        Ok(jobs)
    }

    async fn belongings(&self, rows: &[JobRow]) -> Result<Belongings, StoreError> {
        let readers = &self.readers;
        let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
        let parts = by_seqs(readers, "read jobs", &sql::SELECT_PARTS_OF_JOBS, &seqs, Kept::decode);
        let kept: HashMap<i64, Kept> = parts.await?.into_iter().collect();
        let mut errors: HashMap<i64, Vec<FailedAttempt>> = HashMap::new();
        let failed = |row: &Row| {
            let (attempt, error, at) = (get(row, "attempt")?, json(row, "error")?, time(row, "at")?);
            Ok((get::<i64>(row, "job_seq")?, FailedAttempt { attempt, error, at }))
        };
        let with_errors: Vec<i64> =
            kept.iter().filter(|(_, kept)| kept.failed).map(|(seq, _)| *seq).collect();
        for (seq, failed) in
            by_seqs(readers, "read errors", &sql::SELECT_ERRORS_BY_JOB, &with_errors, failed).await?
        {
            errors.entry(seq).or_default().push(failed);
        }
        let pending: Vec<i64> =
            rows.iter().filter(|row| row.state == JobState::Pending).map(|row| row.seq).collect();
        let why = |row: &Row| {
            let told = journal::events(row)?.into_iter().rfind(|event| event.name == EventName::JobParked);
            Ok((get::<i64>(row, "job_seq")?, told.map(|event| event.data)))
        };
        let parked = by_seqs(readers, "read what jobs wait for", &sql::SELECT_PARKED_JOBS, &pending, why);
        let parked = parked.await?.into_iter().filter_map(|(seq, why)| Some((seq, why?))).collect();
        Ok(Belongings { kept, errors, parked })
    }

    /// The agent sides of jobs without their tool journals.
    async fn agents_of(&self, jobs: &[JobRow]) -> Result<HashMap<i64, Side>, StoreError> {
        let readers = &self.readers;
        let mut engagements: Vec<i64> = jobs.iter().filter_map(|row| row.engagement_seq).collect();
        engagements.sort_unstable();
        engagements.dedup();
        let (action, text) = ("read engagements", &sql::SELECT_ENGAGEMENTS_BY_SEQ);
        let engagements = by_seqs(readers, action, text, &engagements, EngagementRow::decode).await?;
        let engagements: HashMap<i64, EngagementRow> =
            engagements.into_iter().map(|engagement| (engagement.seq, engagement)).collect();
        let seqs: Vec<i64> =
            jobs.iter().filter(|row| row.engagement_seq.is_some()).map(|row| row.seq).collect();
        let cost = |row: &Row| Ok((get::<i64>(row, "job_seq")?, get::<i64>(row, "cost")?));
        let costs = by_seqs(readers, "add up jobs", &sql::SELECT_COSTS_BY_JOB, &seqs, cost).await?;
        let costs: HashMap<i64, i64> = costs.into_iter().collect();
        let engagement_of = |row: &JobRow| engagements.get(&row.engagement_seq?);
        let several = jobs.iter().filter(|row| engagement_of(row).is_some_and(|found| found.inputs > 1));
        let several: Vec<i64> = several.map(|row| row.seq).collect();
        let own = |row: &Row| Ok((get::<i64>(row, "job_seq")?, get::<String>(row, "digest")?));
        let own =
            by_seqs(readers, "read agents of inputs", &sql::SELECT_INPUT_DEFINITIONS_BY_JOB, &several, own);
        let own: HashMap<i64, String> = own.await?.into_iter().collect();
        let digest_of = |row: &JobRow, engagement: &EngagementRow| {
            own.get(&row.seq).unwrap_or(&engagement.digest).clone()
        };
        let mut for_guarded = HashMap::new();
        for row in jobs {
            let Some(engagement) = engagement_of(row).filter(|found| found.depth > 0) else { continue };
            if let Entry::Vacant(unread) = for_guarded.entry(digest_of(row, engagement)) {
                let guards = self.guardrails(unread.key()).await?;
                unread.insert(guards.for_guarded);
            }
        }
        let side = |row: &JobRow| {
            let engagement = engagement_of(row)?;
            let digest = digest_of(row, engagement);
            let agent = AgentJob {
                engagement_id: engagement.engagement.id.clone(),
                position: row.position.clone().unwrap_or_default(),
                tokens_used: row.tokens_used,
                cost: costs.get(&row.seq).copied().unwrap_or_default(),
                tool_results: None,
            };
            let for_guarded = for_guarded.get(&digest).copied().unwrap_or_default();
            Some((row.seq, Side { agent, digest, for_guarded }))
        };
        Ok(jobs.iter().filter_map(side).collect())
    }

    /// The newest settled calls of a job, oldest first, as many as may be held in memory at once.
    async fn tool_results(&self, row: &JobRow, side: &Side) -> Result<ToolResults, StoreError> {
        if side.for_guarded {
            return Ok(ToolResults { newest: Vec::new(), whole: true });
        }
        let (mut calls, mut before, mut bytes) = (Vec::new(), i64::MAX, 0_usize);
        let whole = loop {
            let values = [row.seq.into(), before.into(), CALLS_AT_ONCE.into()];
            let read = |row: &Row| {
                let size = maybe::<&str>(row, "outcome")?.map_or(0, str::len);
                Ok((get::<i64>(row, "seq")?, size, rows::tool_call(row)?))
            };
            let (action, text) = ("read the tool journal", &sql::SELECT_NEWEST_TOOL_CALLS);
            let part = all(&self.readers, action, text, &values, read).await?;
            let is_last = part.len() < CALLS_AT_ONCE as usize;
            for (seq, size, call) in part {
                before = seq;
                bytes += size;
                calls.push(call);
            }
            if is_last {
                break true;
            }
            if bytes >= MOST_BYTES || calls.len() >= MOST_CALLS {
                break false;
            }
        };
        if row.state != JobState::Completed
            && !calls.is_empty()
            && self.guardrails(&side.digest).await?.hold_back()
        {
            calls.clear();
        }
        Ok(ToolResults { newest: calls.iter().rev().filter_map(tool_result).collect(), whole })
    }

    /// What stands before that what a model said is shown (OAS-43).
    async fn guardrails(&self, digest: &str) -> Result<Guardrails, StoreError> {
        let (action, values) = ("read a definition", [digest.into()]);
        let found: Option<AgentDefinition> =
            one(&self.readers, action, &sql::SELECT_DEFINITION_BY_DIGEST, &values, |row| {
                json(row, "definition")
            })
            .await?;
        Ok(found.map(|agent| agent.guardrails).unwrap_or_default())
    }
}

impl Belongings {
    fn job(
        &mut self,
        row: JobRow,
        Kept { retry, mut envelope, result, saved, .. }: Kept,
        step: StepInput,
        side: Option<Side>,
    ) -> Job {
        let for_guarded = side.as_ref().is_some_and(|side| side.for_guarded);
        if for_guarded {
            // What it was asked and what it says were said by models, and have passed no guardrail (OAS-43).
            envelope.args = RawJson::empty_array();
        }
        // A job that was read before it ended has no result.
        let result = result.filter(|_| !for_guarded && row.state.is_terminal());
        Job {
            workflow_id: step.workflow_id,
            parent_results: step.parent_results,
            saved,
            retry,
            envelope,
            result,
            errors: self.errors.remove(&row.seq).unwrap_or_default(),
            agent: side.map(|side| side.agent),
            waits_for: self.parked.remove(&row.seq),
            ..bare(row)
        }
    }
}

/// The job as its own row tells of it.
fn bare(row: JobRow) -> Job {
    Job {
        id: row.id,
        job_type: row.job_type,
        queue: row.queue,
        state: row.state,
        priority: row.priority,
        attempt: row.attempt,
        failures: row.failures,
        created_at: row.created_at,
        run_at: row.run_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
        expires_at: row.expires_at,
        timeout_ms: row.timeout_ms,
        worker_id: row.worker_id,
        tenant: row.tenant,
        workflow_id: None,
        parent_results: None,
        dead_letter: row.dead_letter,
        held: row.held,
        saved: None,
        retry: RetryPolicy::default(),
        retry_delay_ms: row.retry_delay_ms,
        envelope: Envelope::default(),
        result: None,
        errors: Vec::new(),
        agent: None,
        waits_for: None,
        damaged: None,
    }
}

/// Whether it is about what is stored, and not about the database.
fn is_damage(error: &StoreError) -> bool {
    matches!(error, StoreError::Unreadable { .. } | StoreError::Inconsistent { .. })
}

/// A settled call as `ext_agent_tool_results` shows it.
fn tool_result(call: &ToolCall) -> Option<Value> {
    let mut shown = json!({"tool_call_id": call.call_id, "name": call.name, "latency_ms": call.duration_ms});
    let (key, value) = match call.outcome.as_ref()? {
        _ if call.withheld => ("withheld", true.into()),
        ToolOutcome::Success { output } => ("result", output.clone()),
        failed @ ToolOutcome::Error { .. } => ("error", failed.told()?),
    };
    shown[key] = value;
    Some(shown)
}
