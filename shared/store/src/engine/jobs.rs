//! Rows of jobs into jobs: with everything that belongs to one, or as lists show many.
//!
//! A list costs the same number of reads however many jobs it has, and never reads a tool journal. A job that cannot be read
//! whole is shown with what can be read of it.

use super::rows::{self, EngagementRow, Inconsistency, JobRow, get, json};
use super::session::Row;
use super::views::{all, by_seqs, one};
use super::workflows::StepInput;
use super::{Engine, journal, remote};
use crate::{StoreError, damage, sql};
use serde_json::{Value, json};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use turnstone_domain::agent::Safety;
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

/// The rows that belong to some jobs, by the jobs' seqs.
struct Belongings {
    envelopes: HashMap<i64, (RetryPolicy, Envelope)>,
    results: HashMap<i64, RawJson>,
    saved: HashMap<i64, SavedState>,
    errors: HashMap<i64, Vec<FailedAttempt>>,
    parked: HashMap<i64, Value>,
    /// Why some of them cannot be read whole.
    damaged: HashMap<i64, String>,
}

/// A job as the report of its worker left it.
pub(super) struct Reported {
    pub row: JobRow,
    /// The rows that belong to it, if all of them were read.
    pub kept: Option<Kept>,
}

/// The parts of a plain job that completed at its first attempt.
pub(super) struct Kept {
    retry: RetryPolicy,
    envelope: Envelope,
    saved: Option<SavedState>,
    pub result: Option<RawJson>,
}

impl Kept {
    /// Reads all but the result, with the seq of the job; `None` if the job failed before, or something is damaged.
    pub(super) fn decode(row: &Row) -> Result<Option<(i64, Self)>, Inconsistency> {
        if get::<bool>(row, "failed")? {
            return Ok(None);
        }
        let (Ok((seq, retry, envelope)), Ok(saved)) = (rows::envelope(row), saved_if_any(row)) else {
            return Ok(None);
        };
        Ok(Some((seq, Self { retry, envelope, saved, result: None })))
    }
}

/// Returns the state that a worker saved for a job, if there is one.
fn saved_if_any(row: &Row) -> Result<Option<SavedState>, Inconsistency> {
    match get::<Option<&str>>(row, "state")? {
        Some(_) => remote::saved(row).map(|(_, saved)| Some(saved)),
        None => Ok(None),
    }
}

/// Those of some rows that can be read; of each other one it is noted why.
fn readable<T>(
    rows: Vec<(i64, Result<T, Inconsistency>)>,
    damaged: &mut HashMap<i64, String>,
) -> impl Iterator<Item = (i64, T)> {
    rows.into_iter().filter_map(|(seq, read)| match read {
        Ok(value) => Some((seq, value)),
        Err(wrong) => {
            damaged.entry(seq).or_insert_with(|| StoreError::from(wrong).to_string());
            None
        }
    })
}

/// The agent side of a job, and the facts that decide how much of it is shown.
struct Side {
    agent: AgentJob,
    /// Of its definition.
    digest: String,
    /// The words that only its caller shows, if it is a delegate.
    hidden: Hidden,
}

/// How much of jobs is read.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    /// All but their tool journals.
    Listed,
    /// All that may be shown.
    Shown,
    /// All.
    Record,
}

/// The words of a delegate that its job does not show.
#[derive(Clone, Default)]
struct Hidden {
    /// All of them: only its caller decides which ones are shown.
    all: bool,
    /// Personal data in its arguments, which its caller's model wrote (RS-23).
    personal: Safety,
}

/// The message about a job whose envelope is missing.
const NO_ENVELOPE: &str = "what its client sent is not stored any more";

impl Engine {
    /// Jobs with everything that belongs to them, in the order of the rows. What cannot be read of one is left out, and
    /// [`Job::damaged`] says why. One whose history is gone already is left out.
    pub(super) async fn complete(&self, rows: Vec<JobRow>) -> Result<Vec<Job>, StoreError> {
        // Jobs are large, and so is a future that holds some; handlers keep this one in theirs.
        Box::pin(self.gathered(rows, Extent::Shown)).await
    }

    /// As [`Self::complete`], with the words that only a caller shows.
    pub(super) async fn complete_record(&self, rows: Vec<JobRow>) -> Result<Vec<Job>, StoreError> {
        Box::pin(self.gathered(rows, Extent::Record)).await
    }

    /// The job that a report was about.
    pub(super) async fn reported(&self, Reported { row, kept }: Reported) -> Result<Option<Job>, StoreError> {
        let Some(Kept { retry, envelope, saved, result }) = kept else {
            return Ok(self.complete(vec![row]).await?.pop());
        };
        Ok(Some(Job { saved, retry, envelope, result, ..bare(row) }))
    }

    /// As [`Self::complete`], but for their tool journals, and in as many reads as one job takes.
    pub(super) async fn jobs_listed(&self, rows: Vec<JobRow>) -> Result<Vec<Job>, StoreError> {
        Box::pin(self.gathered(rows, Extent::Listed)).await
    }

    async fn gathered(&self, rows: Vec<JobRow>, extent: Extent) -> Result<Vec<Job>, StoreError> {
        let mut belongings = self.belongings(&rows).await?;
        let mut agents = self.agents_of(&rows, &mut belongings.damaged).await?;
        let mut jobs = Vec::with_capacity(rows.len());
        for row in rows {
            let (seq, id) = (row.seq, row.id.clone());
            let kept = match belongings.envelopes.remove(&seq) {
                Some(kept) => kept,
                None if belongings.damaged.contains_key(&seq) => Default::default(),
                None if row.state.is_terminal() && !row.is_dead_letter() => continue,
                None => {
                    belongings.damaged.insert(seq, NO_ENVELOPE.to_owned());
                    Default::default()
                }
            };
            let mut side = agents.remove(&seq);
            if let Some(side) = side.as_mut().filter(|_| extent == Extent::Record) {
                side.hidden = Hidden::default();
            }
            if let Some(side) = side.as_mut().filter(|_| extent != Extent::Listed) {
                let calls = self.tool_results(&row, side).await;
                side.agent.tool_results = belongings.kept(seq, calls)?;
            }
            let step = self.step_input(&row).await;
            let step = belongings.kept(seq, step)?.unwrap_or_default();
            let job = belongings.job(row, kept, step, side);
            if let Some(why) = &job.damaged
                && damage::count(why)
            {
                tracing::error!(job = %id, why, "a job cannot be read whole");
            }
            jobs.push(job);
        }
        Ok(jobs)
    }

    async fn belongings(&self, rows: &[JobRow]) -> Result<Belongings, StoreError> {
        let readers = &self.readers;
        let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
        let mut damaged: HashMap<i64, String> =
            rows.iter().filter_map(|row| Some((row.seq, row.damaged.clone()?))).collect();
        let part = |row: &Row| {
            let seq = get::<i64>(row, "job_seq")?;
            let sent = rows::envelope(row).map(|(_, retry, envelope)| (retry, envelope));
            // A sealed result that cannot be opened is damage of this job alone.
            let result = match get::<Option<&str>>(row, "result") {
                Ok(None) => Ok(None),
                _ => json::<RawJson>(row, "result").map(Some),
            };
            Ok((seq, sent, result, saved_if_any(row), get::<bool>(row, "failed")?))
        };
        let (mut envelopes, mut results, mut saved, mut failed_before) = (vec![], vec![], vec![], vec![]);
        let parts = by_seqs(readers, "read parts of jobs", &sql::SELECT_PARTS_OF_JOBS, &seqs, part);
        for (seq, sent, result, state, failed) in parts.await? {
            envelopes.push((seq, sent));
            results.push((seq, result));
            saved.push((seq, state));
            failed_before.extend(failed.then_some(seq));
        }
        let envelopes = readable(envelopes, &mut damaged).collect();
        // A job that was read before it ended has no result.
        let ended: HashSet<i64> =
            rows.iter().filter(|row| row.state.is_terminal()).map(|row| row.seq).collect();
        results.retain(|(seq, _)| ended.contains(seq));
        let results = readable(results, &mut damaged).filter_map(|(seq, result)| Some((seq, result?)));
        let results = results.collect();
        let saved = readable(saved, &mut damaged).filter_map(|(seq, saved)| Some((seq, saved?))).collect();
        let mut errors: HashMap<i64, Vec<FailedAttempt>> = HashMap::new();
        let failed = |row: &Row| {
            let (attempt, at) = (get(row, "attempt")?, get(row, "at")?);
            let failed = json(row, "error").map(|error| FailedAttempt { attempt, error, at });
            Ok((get::<i64>(row, "job_seq")?, failed))
        };
        let found =
            by_seqs(readers, "read errors", &sql::SELECT_ERRORS_BY_JOB, &failed_before, failed).await?;
        for (seq, failed) in readable(found, &mut damaged) {
            errors.entry(seq).or_default().push(failed);
        }
        let pending: Vec<i64> =
            rows.iter().filter(|row| row.state == JobState::Pending).map(|row| row.seq).collect();
        let why = |row: &Row| {
            let parked = |events: Vec<journal::JournalEvent>| {
                events.into_iter().rfind(|event| event.name == EventName::JobParked).map(|event| event.data)
            };
            Ok((get::<i64>(row, "job_seq")?, journal::events(row).map(parked)))
        };
        let parked = by_seqs(readers, "read what jobs wait for", &sql::SELECT_PARKED_JOBS, &pending, why);
        let parked = readable(parked.await?, &mut damaged).filter_map(|(seq, why)| Some((seq, why?)));
        let parked = parked.collect();
        Ok(Belongings { envelopes, results, saved, errors, parked, damaged })
    }

    /// The agent sides of jobs without their tool journals.
    async fn agents_of(
        &self,
        jobs: &[JobRow],
        damaged: &mut HashMap<i64, String>,
    ) -> Result<HashMap<i64, Side>, StoreError> {
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
        let mut hidden = HashMap::new();
        for row in jobs {
            let Some(engagement) = engagement_of(row) else { continue };
            let is_delegate = engagement.depth > 0;
            // A fork of a delegate works for no one, and hides what the delegate hid.
            if let Entry::Vacant(unread) = hidden.entry((digest_of(row, engagement), is_delegate)) {
                match self.definition(&unread.key().0).await {
                    Ok(agent) => {
                        let all = agent.guardrails.is_shown_by_its_caller();
                        let personal = if is_delegate { agent.safety } else { Safety::default() };
                        unread.insert(Hidden { all, personal });
                    }
                    Err(error) if error.is_damage() => {
                        if is_delegate {
                            damaged.entry(row.seq).or_insert_with(|| error.to_string());
                        }
                        // A guardrail that cannot be read may apply, so the outputs are held back.
                        unread.insert(Hidden { all: is_delegate, ..Hidden::default() });
                    }
                    Err(error) => return Err(error),
                }
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
            let key = (digest, engagement.depth > 0);
            let hidden = hidden.get(&key).cloned().unwrap_or_default();
            Some((row.seq, Side { agent, digest: key.0, hidden }))
        };
        Ok(jobs.iter().filter_map(side).collect())
    }

    /// The newest settled calls of a job, oldest first, as many as may be held in memory at once.
    async fn tool_results(&self, row: &JobRow, side: &Side) -> Result<ToolResults, StoreError> {
        if side.hidden.all {
            return Ok(ToolResults { newest: Vec::new(), whole: true });
        }
        let (mut calls, mut before, mut bytes) = (Vec::new(), i64::MAX, 0_usize);
        let whole = loop {
            let values = [row.seq.into(), before.into(), CALLS_AT_ONCE.into()];
            let read = |row: &Row| {
                let size = get::<Option<&str>>(row, "outcome")?.map_or(0, str::len);
                Ok((get::<i64>(row, "seq")?, size, rows::decode(row)?))
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
        if !calls.is_empty() && self.definition(&side.digest).await?.guardrails.hold_back() {
            // Outcomes may quote a model or be an agent's answer, which no guardrail checked (OAS-43).
            calls.clear();
        }
        Ok(ToolResults { newest: calls.iter().rev().filter_map(tool_result).collect(), whole })
    }

    /// Returns a definition; the default when it is gone.
    async fn definition(&self, digest: &str) -> Result<AgentDefinition, StoreError> {
        let (action, values) = ("read a definition", [digest.into()]);
        let found = one(&self.readers, action, &sql::SELECT_DEFINITION_BY_DIGEST, &values, |row| {
            json(row, "definition")
        });
        Ok(found.await?.unwrap_or_default())
    }
}

impl Belongings {
    /// Returns what was read of a job, and notes why when it cannot be read.
    fn kept<T>(&mut self, seq: i64, read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match read {
            Err(error) if error.is_damage() => {
                self.damaged.entry(seq).or_insert_with(|| error.to_string());
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    fn job(
        &mut self,
        row: JobRow,
        (retry, mut envelope): (RetryPolicy, Envelope),
        step: StepInput,
        side: Option<Side>,
    ) -> Job {
        let hidden = side.as_ref().map(|side| side.hidden.clone()).unwrap_or_default();
        if hidden.all {
            // Models wrote its input and its answer, and no check has passed them (OAS-35, OAS-43).
            envelope.args = RawJson::empty_array();
            self.results.remove(&row.seq);
        } else if hidden.personal.holds_back() {
            let mut args = envelope.args.parse().unwrap_or_default();
            hidden.personal.redact(&mut args);
            envelope.args = RawJson::of(&args);
        }
        Job {
            workflow_id: step.workflow_id,
            parent_results: step.parent_results,
            saved: self.saved.remove(&row.seq),
            retry,
            envelope,
            result: self.results.remove(&row.seq),
            errors: self.errors.remove(&row.seq).unwrap_or_default(),
            agent: side.map(|side| side.agent),
            waits_for: self.parked.remove(&row.seq),
            damaged: self.damaged.remove(&row.seq),
            ..bare(row)
        }
    }
}

/// Returns the job from its own row alone.
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

/// A settled call as `ext_agent_tool_results` shows it.
fn tool_result(call: &ToolCall) -> Option<Value> {
    let mut shown = json!({"tool_call_id": call.call_id, "name": call.name, "latency_ms": call.duration_ms});
    let (key, value) = match call.outcome.as_ref()? {
        _ if call.withheld => ("withheld", true.into()),
        ToolOutcome::Success { output } => ("result", output.clone()),
        failed @ ToolOutcome::Error { .. } => ("error", json!(failed.event_data()?)),
    };
    shown[key] = value;
    Some(shown)
}
