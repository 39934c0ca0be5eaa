//! Rows of jobs, and of what belongs to one.

use super::{DeclaredRow, Fields, Inconsistency, Stored, declare, get, json, json_or_none, wrong};
use crate::{JobKind, StoreError};
use serde::de::IgnoredAny;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::state::Trigger;
use turnstone_domain::terms::OnLimit;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{JobId, JobState, Timestamp};

declare! {
    /// The columns that change in the life of a job.
    #[derive(Clone, Debug)]
    struct JobRow in jobs [id] {
        seq: i64,
        id: JobId,
        job_type: String,
        queue: String,
        state: JobState,
        priority: i64,
        attempt: i64,
        failures: i64,
        lapses: i64,
        created_at: Timestamp,
        run_at: Timestamp,
        started_at: Option<Timestamp>,
        ended_at: Option<Timestamp>,
        expires_at: Option<Timestamp>,
        timeout_ms: Option<i64>,
        engagement_seq: Option<i64>,
        stream: i64,
        position: Option<Position>,
        reserved: i64,
        /// The amounts that it has reserved of other budgets; read with the job when there are any.
        shares: Vec<Share> => beside,
        tokens_used: i64,
        /// Events of a plain job's stream. Of an agent's job: 1 while the event of its start is not written.
        events: i64,
        worker_id: Option<String>,
        lease_token: Option<String>,
        lease_expires_at: Option<Timestamp>,
        retry_delay_ms: Option<i64>,
        /// When the current attempt began.
        claimed_at: Option<Timestamp>,
        tenant: Option<String>,
        /// The duration of a lease of this job, for any holder.
        visibility_ms: Option<i64>,
        /// How long the current lease lasts from each beat.
        lease_ms: Option<i64>,
        /// The limit it shares with others.
        limit_key: Option<String>,
        /// The workflow it is a step of, and which.
        workflow: Option<(i64, i64)> => with workflow,
        /// True if it is paused: no worker claims it.
        held: bool,
        /// True if it is kept for a manual retry when it is discarded.
        dead_letter: bool,
        /// The features of its worker's runtime.
        runtime_tags: Vec<String> => with runtime_tags,
        /// Its state as it was when the row was read.
        read_state: JobState => from state,
        /// The fencing token as it was when the row was read.
        read_token: Option<String> => from lease_token,
        /// Why it cannot be read whole, if it cannot.
        damaged: Option<String> => beside,
        /// True if it took an edge of the table since it was read.
        moved: bool => beside,
    }

    /// A job that is pushed.
    struct NewJobRow into jobs [id] {
        seq: i64,
        id: JobId,
        job_type: String,
        queue: String,
        state: JobState,
        priority: i64,
        created_at: Timestamp,
        run_at: Timestamp,
        expires_at: Option<Timestamp>,
        timeout_ms: Option<i64>,
        engagement_seq: Option<i64>,
        stream: i64,
        position: Option<Position>,
        events: i64,
        kind: JobKind,
        tenant: Option<String>,
        visibility_ms: Option<i64>,
        limit_key: Option<String>,
        unique_key: Option<String>,
        workflow_seq: Option<i64>,
        workflow_step: Option<i64>,
        cron_name: Option<String>,
        dead_letter: bool,
        runtime_tags: Option<Vec<String>>,
    }

    /// The job as its client sent it, as texts of JSON.
    struct NewEnvelope into job_envelopes [job_seq] {
        job_seq: i64,
        retry: String,
        args: String => sealed,
        meta: String => sealed,
        options: String => sealed,
        extra: String => sealed,
        parent_results: Option<String> => sealed,
    }

    /// A result, as a text of JSON.
    struct NewResult into job_results [job_seq] {
        job_seq: i64,
        result: String => sealed,
    }

    /// A failed attempt; the error is a text of JSON.
    struct NewError in job_errors [job_seq, attempt, at] {
        job_seq: i64,
        attempt: i64,
        error: String => sealed,
        at: Timestamp,
        /// Of the error, for filters.
        code: String,
    }

    /// A tag of a job.
    struct TagRow into job_tags [tag, job_seq] {
        tag: String,
        job_seq: i64,
    }

    /// How far a job is.
    struct ProgressRow in progress [job_seq] {
        job_seq: i64,
        millionths: i64,
        message: Option<String> => sealed,
        data: Option<String> => sealed,
        at: Timestamp,
    }

    /// The state that a worker over HTTP saved, as a text of JSON.
    struct SavedStateRow in saved_states [job_seq] {
        job_seq: i64,
        state: String => sealed,
        at: Timestamp,
    }

    /// The amount that a job has reserved of one budget.
    struct Reservation into reservations [job_seq, budget_seq] {
        job_seq: i64,
        budget_seq: i64,
        tokens: i64,
        money: i64,
    }

    /// A queue that is known.
    struct QueueName into queues [name] {
        name: String,
        created_at: Timestamp,
    }

    /// A branch of a job.
    struct BranchRow into branches [job_seq] {
        job_seq: i64,
        id: String,
        name: Option<String>,
        root_seq: i64,
        parent_seq: i64,
        at_turn: i64,
        created_at: Timestamp,
    }

    /// A job that waits for a breaker.
    struct BreakerWait into breaker_waits [job_seq] {
        job_seq: i64,
        breaker: String,
        attempt: i64,
    }

    /// A lease, as statements are given it.
    struct LeaseKey {
        id: JobId,
        token: String,
    }

    /// A turn of a job.
    struct TurnKey {
        job_seq: i64,
        turn: i64,
    }

    /// The reaction of a job to a used-up limit.
    struct Wish {
        id: JobId,
        on_limit: OnLimit,
    }
}

/// The amount that a job has reserved of one budget, beyond the tokens of its engagement's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub budget_seq: i64,
    pub tokens: i64,
    pub money: i64,
}

fn workflow(row: &impl Fields) -> Result<Option<(i64, i64)>, Inconsistency> {
    Ok(get::<Option<i64>>(row, "workflow_seq")?.zip(get(row, "workflow_step")?))
}

fn runtime_tags(row: &impl Fields) -> Result<Vec<String>, Inconsistency> {
    Ok(json_or_none(row, "runtime_tags")?.unwrap_or_default())
}

/// A row some of whose columns cannot be read, and what is read in the place of each.
struct Mended<'r, R>(&'r R, &'r [(String, Option<&'static str>)]);

impl<R: Fields> Fields for Mended<'_, R> {
    fn int(&self, column: &str) -> Result<Option<i64>, String> {
        match self.1.iter().find(|(broken, _)| broken == column) {
            Some((_, substitute)) => Ok(substitute.map(|_| 0)),
            None => self.0.int(column),
        }
    }

    fn text(&self, column: &str) -> Result<Option<&str>, String> {
        match self.1.iter().find(|(broken, _)| broken == column) {
            Some((_, substitute)) => Ok(*substitute),
            None => self.0.text(column),
        }
    }
}

/// Returns what is read in the place of a column that cannot be read: nothing, where it may be NULL.
fn replaced(
    row: &impl Fields,
    broken: &Inconsistency,
) -> Result<(String, Option<&'static str>), Inconsistency> {
    let column = broken.column.as_str();
    let substitute = match column {
        "seq" | "id" => return Err(Inconsistency::clone(broken)),
        // A newer version may have written it.
        "position" | "runtime_tags" if is_json(row, column) => return Err(Inconsistency::clone(broken)),
        // No worker claims it in this state, and none that has it can be read.
        "state" => Some(JobState::Discarded.as_str()),
        "started_at" | "ended_at" | "expires_at" | "timeout_ms" | "engagement_seq" | "position"
        | "worker_id" | "lease_token" | "lease_expires_at" | "retry_delay_ms" | "claimed_at" | "tenant"
        | "visibility_ms" | "lease_ms" | "limit_key" | "workflow_seq" | "workflow_step" | "runtime_tags" => {
            None
        }
        _ => Some(""),
    };
    Ok((column.to_owned(), substitute))
}

fn is_json(row: &impl Fields, column: &str) -> bool {
    let text = row.text(column).ok().flatten();
    text.is_some_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// Returns which column of a job contradicts the others, and why.
pub(in super::super) fn contradiction_of_job(
    row: &impl Fields,
) -> Result<Option<(&'static str, String)>, Inconsistency> {
    let is_agent = get::<JobKind>(row, "kind")? == JobKind::Agent;
    let job = JobRow::read(row)?;
    if is_agent != job.engagement_seq.is_some() {
        return Ok(Some(("engagement_seq", "it contradicts the kind of the job".to_owned())));
    }
    Ok(job.contradiction())
}

impl JobRow {
    /// Reads a row. Columns that cannot be read are left out, and [`JobRow::damaged`] names the first of them, or what
    /// contradicts what; JSON that a newer version may have written is an error.
    pub(in super::super) fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        let first = match <Self as Stored>::decode(row) {
            Ok(whole) => return Ok(whole.examined()),
            Err(wrong) => wrong,
        };
        let mut broken = vec![replaced(row, &first)?];
        loop {
            match Self::read(&Mended(row, &broken)) {
                Ok(mended) => {
                    return Ok(Self { damaged: Some(StoreError::from(first).to_string()), ..mended });
                }
                Err(wrong) if broken.iter().all(|(column, _)| *column != wrong.column) => {
                    broken.push(replaced(row, &wrong)?);
                }
                Err(wrong) => return Err(wrong),
            }
        }
    }

    /// The row with a note of what contradicts what in it.
    fn examined(self) -> Self {
        let damaged = self.contradiction().map(|(column, why)| {
            StoreError::from(wrong(&format!("{column} of jobs {}", self.id), why)).to_string()
        });
        Self { damaged, ..self }
    }

    /// Returns which column contradicts the others, and why. SQLite refuses such a row with its CHECKs, PostgreSQL only the
    /// one that concerns leases (ADR 0011).
    fn contradiction(&self) -> Option<(&'static str, String)> {
        let (state, active) = (self.state, self.state == JobState::Active);
        let counts = [
            ("attempt", self.attempt),
            ("failures", self.failures),
            ("reserved", self.reserved),
            ("tokens_used", self.tokens_used),
        ];
        let is_set = |set: bool| if set { "set" } else { "NULL" };
        let pairs = [
            ("lease_token", active, self.lease_token.is_some()),
            ("lease_expires_at", active, self.lease_expires_at.is_some()),
            ("ended_at", state.is_terminal(), self.ended_at.is_some()),
        ];
        let mut pairs = pairs.into_iter().filter(|(_, wanted, set)| wanted != set);
        let mut counts = counts.into_iter().filter(|(_, count)| *count < 0);
        counts
            .next()
            .map(|(column, count)| (column, format!("it is {count}")))
            .or_else(|| {
                pairs
                    .next()
                    .map(|(column, _, set)| (column, format!("it is {} in state {state}", is_set(set))))
            })
            .or_else(|| {
                (!active && self.reserved != 0).then(|| ("reserved", format!("it is not 0 in state {state}")))
            })
    }

    /// Returns true for an agent's job whose start is not in its stream yet: the next write adds it.
    pub(in super::super) fn has_unwritten_start(&self) -> bool {
        self.engagement_seq.is_some() && self.events > 0
    }

    /// Returns true when it failed for good and is kept for a manual retry.
    pub(in super::super) fn is_dead_letter(&self) -> bool {
        self.dead_letter && self.state == JobState::Discarded
    }

    /// Takes the edge of the closed table, and what every edge brings: leases end with `active`, ends have a time.
    pub(in super::super) fn step(&mut self, trigger: Trigger, now: Timestamp) -> Result<(), StoreError> {
        let Some(next) = self.state.after(trigger) else {
            return Err(StoreError::Inconsistent {
                table: "jobs",
                column: "state",
                row: self.id.to_string(),
                message: format!("{trigger:?} is not possible in state {}", self.state),
            });
        };
        self.state = next;
        self.moved = true;
        if next != JobState::Active {
            self.worker_id = None;
            self.lease_token = None;
            self.lease_expires_at = None;
        }
        self.ended_at = next.is_terminal().then_some(now);
        Ok(())
    }
}

pub(in super::super) fn envelope(row: &impl Fields) -> Result<(i64, RetryPolicy, Envelope), Inconsistency> {
    let envelope = Envelope {
        args: json(row, "args")?,
        meta: json(row, "meta")?,
        options: json(row, "options")?,
        extra: json(row, "extra")?,
    };
    Ok((get(row, "job_seq")?, json(row, "retry")?, envelope))
}
