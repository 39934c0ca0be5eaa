//! The writes of workers in any language, over HTTP: acknowledgements, failures, beats, saved states, progress.
//!
//! Such a worker has no fencing token. It names the job, and itself and its lease token if it likes. The job has to be
//! active, held by the worker that is named, and under the lease of the token. Only plain jobs are served this way.

use super::Engine;
use super::claimer::busy_pauses;
use super::jobs::Reported;
use super::ops::{remote as ops, unreadable};
use super::request::Work;
use super::rows::{self, JobRow, get};
use super::session::{Arg, Args};
use super::statement::decode_all;
use crate::{ClaimRequest, Directive, JobKind, StoreError, WorkerBeat, WorkerState, sql};
use async_recursion::async_recursion as boxed;
use backon::BackoffBuilder;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use turnstone_domain::job::SavedState;
use turnstone_domain::{Job, JobError, JobId, JobState, RawJson, Timestamp};

/// How long a plain job is reserved when neither it nor its worker says otherwise, in milliseconds: 30 minutes (OJS
/// worker protocol §6.1).
pub const DEFAULT_VISIBILITY_MS: i64 = 1_800_000;

/// A worker's report about a job that it holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The job.
    pub job: JobId,
    /// The worker that reports, if it names itself.
    pub worker: Option<String>,
    /// Only a job of this tenant; `None` is any.
    pub tenant: Option<String>,
    /// The token of the lease under which it worked, if it sends one.
    pub token: Option<String>,
    /// The end that it reports.
    pub end: ReportedEnd,
    /// Now.
    pub at: Timestamp,
}

/// A job that a worker has fetched.
#[derive(Clone, PartialEq, Debug)]
pub struct FetchedJob {
    /// The job.
    pub job: Job,
    /// The token of its lease. A request with it is refused when the job has another lease by then.
    pub token: String,
}

/// The job of a worker's request that ends no lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeasedJob {
    /// The job.
    pub job: JobId,
    /// Only a job of this tenant; `None` is any.
    pub tenant: Option<String>,
    /// The token of the lease under which the worker works, if it sends one.
    pub token: Option<String>,
}

/// The end of a job, as its worker reports it.
#[derive(Clone, PartialEq, Debug)]
pub enum ReportedEnd {
    /// It is done (OJS HTTP binding §5.5).
    Done {
        /// Any JSON.
        result: RawJson,
    },
    /// It failed; its retry policy decides what follows (OJS HTTP binding §5.6).
    Failed {
        /// Why.
        error: JobError,
    },
    /// It is given back as if it had not been fetched: at once, and without an attempt less.
    Back,
}

/// The outcome of a worker's request about a job.
#[derive(Clone, PartialEq, Debug)]
pub enum RemoteOutcome<T> {
    /// It is done.
    Done(T),
    /// There is no such job.
    NotFound,
    /// The job is in a state in which it cannot be done; nothing changed.
    WrongState(JobState),
    /// Another worker holds the job; nothing changed.
    NotYours {
        /// Who.
        holder: String,
    },
    /// The token is one of an earlier attempt, or of another job; nothing changed.
    StaleLease,
    /// The worker holds jobs of these tenants with the same id, and names no tenant; nothing changed.
    OfSeveralTenants(Vec<String>),
    /// The job waits for an answer to a review, or is served by our own workers; nothing changed.
    NotForYou,
}

impl<T> RemoteOutcome<T> {
    /// Changes what is done.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> RemoteOutcome<U> {
        match self {
            Self::Done(done) => RemoteOutcome::Done(change(done)),
            Self::NotFound => RemoteOutcome::NotFound,
            Self::WrongState(state) => RemoteOutcome::WrongState(state),
            Self::NotYours { holder } => RemoteOutcome::NotYours { holder },
            Self::StaleLease => RemoteOutcome::StaleLease,
            Self::OfSeveralTenants(tenants) => RemoteOutcome::OfSeveralTenants(tenants),
            Self::NotForYou => RemoteOutcome::NotForYou,
        }
    }
}

/// A sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// The worker that sends the beat.
    pub worker: String,
    /// The jobs whose reservations are to be renewed.
    pub jobs: Vec<JobId>,
    /// The tokens of the leases under which it works on named jobs, by the ids of the jobs, as far as it sends them.
    pub tokens: BTreeMap<String, String>,
    /// How many jobs it works on, if it says so.
    pub busy: Option<i64>,
    /// The state that it reports: active, or draining.
    pub state: Option<WorkerState>,
    /// How long the reservations last from now, instead of as long as they were given, in milliseconds.
    pub visibility_ms: Option<i64>,
    /// Only jobs of this tenant; `None` is any.
    pub tenant: Option<String>,
    /// Now.
    pub at: Timestamp,
}

/// The outcome of a sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeartbeatOutcome {
    /// It was recorded.
    Heard(HeartbeatAnswer),
    /// The tokens of these jobs are none of their leases; nothing changed.
    Stale(Vec<String>),
}

/// The answer to a sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatAnswer {
    /// The state that the server assumes: active, or draining.
    pub state: WorkerState,
    /// The directive for the worker.
    pub directive: Option<Directive>,
    /// The jobs whose reservations were renewed, in the order in which they were named.
    pub extended: Vec<JobId>,
}

/// How far a job is (OJS progress).
#[derive(Clone, PartialEq, Debug)]
pub struct NewProgress {
    /// Of the whole, in millionths; what is more or less than all is cut.
    pub millionths: i64,
    /// In words.
    pub message: Option<String>,
    /// For programs: JSON text.
    pub data: Option<String>,
    /// A state to be saved with it: JSON text.
    pub state: Option<String>,
}

/// The reported progress of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The state of the job.
    pub job_state: JobState,
    /// The part that is done, in millionths; that of a completed job is the whole. `None` when it was never
    /// reported.
    pub millionths: Option<i64>,
    /// In words.
    pub message: Option<String>,
    /// For programs: JSON text.
    pub data: Option<String>,
    /// The time of the newest report.
    pub at: Option<Timestamp>,
}

/// The side of the store for workers over HTTP. `tenant` limits each call to the jobs of one; `None` is any.
#[derive(Clone)]
pub struct Remote(pub(super) Arc<Engine>);

impl Remote {
    /// Claims plain jobs, as [`crate::Ledger::claim`] does, and shows them: `available → active`. Each is reserved
    /// for its own time, else for the request's. A worker that drains, or was directed to, gets nothing. Neither
    /// does one that has no name and no job.
    #[boxed]
    pub async fn fetch(&self, mut request: ClaimRequest) -> Result<Vec<FetchedJob>, StoreError> {
        request.kind = JobKind::Plain;
        if !request.worker_id.is_empty()
            && let Some(worker) = self.worker(&request.worker_id).await?
            && (worker.state == WorkerState::Draining || worker.directive.is_some())
        {
            return Ok(Vec::new());
        }
        if let Some(batch) = self.0.claim_alone(&request).await? {
            return self.readable(batch.rows, request.now).await;
        }
        let mut pauses = busy_pauses().build();
        loop {
            let (rows, busy) =
                self.0.write(request.clone(), |tx, request| Box::pin(ops::fetch(tx, request))).await?;
            let pause = pauses.next().filter(|_| busy && rows.is_empty());
            let Some(pause) = pause else { return self.readable(rows, request.now).await };
            tokio::time::sleep(pause).await;
        }
    }

    /// Jobs that were just claimed. One of which something cannot be read becomes a dead letter instead.
    async fn readable(&self, rows: Vec<JobRow>, now: Timestamp) -> Result<Vec<FetchedJob>, StoreError> {
        let tokens = rows.iter().filter_map(|row| Some((row.id.clone(), ops::lease_token(row)?)));
        let mut tokens: HashMap<JobId, String> = tokens.collect();
        let jobs = self.0.complete(rows).await?;
        let (mut whole, mut broken) = (Vec::with_capacity(jobs.len()), Vec::new());
        for job in jobs {
            match job.damaged {
                Some(why) => broken.push((job.id, job.attempt, why)),
                None => {
                    whole.extend(tokens.remove(&job.id).map(|token| FetchedJob { job, token }));
                }
            }
        }
        if broken.is_empty() {
            return Ok(whole);
        }
        let requested = (broken, now);
        self.0
            .write(requested, |tx, (broken, now)| {
                Box::pin(unreadable::set_aside(&mut tx.session, &mut tx.unit, broken, *now))
            })
            .await?;
        Ok(whole)
    }

    /// Ends or gives back an active job. Reports that arrive together share a transaction and its statements. The job
    /// is shown as the report left it.
    #[boxed]
    pub async fn report(&self, report: Report) -> Result<RemoteOutcome<Box<Job>>, StoreError> {
        let job = (report.token.is_some() && report.tenant.is_none()).then(|| report.job.clone());
        let outcome = self.0.ask(report, Work::Report).await?;
        // A job with an id that a client chose for its tenant is found without the tenant only while it is active.
        if let (RemoteOutcome::NotFound, Some(job)) = (&outcome, job)
            && !self.named(&LeasedJob { job, tenant: None, token: None }).await?.is_empty()
        {
            return Ok(RemoteOutcome::StaleLease);
        }
        self.shown(outcome).await
    }

    /// Registers the worker, renews reservations, and returns the directive for the worker.
    ///
    /// # Errors
    /// [`StoreError::WorkerNameTaken`] when one of our own workers has this name.
    #[boxed]
    pub async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatOutcome, StoreError> {
        self.0
            .write_urgently(heartbeat, |tx, heartbeat| {
                Box::pin(ops::heartbeat(&mut tx.session, &mut tx.unit, heartbeat))
            })
            .await?
    }

    /// Stores a directive for a worker, from its next beat on; `None` takes it back. Returns false when no worker
    /// of this name has ever sent a beat.
    #[boxed]
    pub async fn direct(&self, worker: &str, directive: Option<Directive>) -> Result<bool, StoreError> {
        self.0
            .write((worker.to_owned(), directive), |tx, (worker, directive)| {
                Box::pin(ops::direct(&mut tx.session, worker, *directive))
            })
            .await
    }

    /// `pending → available` (OJS core §5.2).
    #[boxed]
    pub async fn activate(
        &self,
        job: &JobId,
        tenant: Option<&str>,
        at: Timestamp,
    ) -> Result<RemoteOutcome<Box<Job>>, StoreError> {
        let outcome = self.0.write((job.clone(), tenant.map(str::to_owned), at), |tx, (job, tenant, at)| {
            Box::pin(ops::activate(&mut tx.session, &mut tx.unit, job, tenant.as_deref(), *at))
        });
        self.shown(outcome.await?.map(|row| Reported { row, kept: None })).await
    }

    /// Saves a state, JSON text, over the last one, in every state that is not terminal (OJS durable execution §4).
    #[boxed]
    pub async fn save_state(
        &self,
        job: LeasedJob,
        state: String,
        at: Timestamp,
    ) -> Result<RemoteOutcome<SavedState>, StoreError> {
        self.0
            .write((job, state, at), |tx, (job, state, at)| {
                Box::pin(ops::save_state(&mut tx.session, &mut tx.unit, job, state, *at))
            })
            .await
    }

    /// Forgets the saved state, if there is one.
    #[boxed]
    pub async fn forget_state(&self, job: LeasedJob) -> Result<RemoteOutcome<()>, StoreError> {
        self.0.write(job, |tx, job| Box::pin(ops::forget_state(&mut tx.session, &mut tx.unit, job))).await
    }

    /// Returns true if the request is under the current lease of the job, or has no token.
    #[boxed]
    pub async fn is_current(&self, about: &LeasedJob) -> Result<bool, StoreError> {
        let Some(token) = about.token.as_deref() else { return Ok(true) };
        Ok(self.named(about).await?.iter().any(|row| !ops::is_stale(row, Some(token))))
    }

    /// Reads the job, or those of several tenants with this id.
    async fn named(&self, about: &LeasedJob) -> Result<Vec<JobRow>, StoreError> {
        let values: [Arg<'_>; 2] = [about.job.as_str().into(), about.tenant.as_deref().into()];
        let (text, values) = match about.tenant {
            Some(_) => (&sql::SELECT_JOB_BY_ID, &values[..]),
            None => (&sql::SELECT_JOBS_OF_ANY_TENANT, &values[..1]),
        };
        let rows = self.0.readers.read("read a job", text, Args::Values(values)).await?;
        decode_all(&rows, JobRow::decode)
    }

    /// Records the progress of an active job, and renews its reservation. A job that is not active does not change.
    #[boxed]
    pub async fn tell_progress(
        &self,
        job: LeasedJob,
        progress: NewProgress,
        at: Timestamp,
    ) -> Result<RemoteOutcome<Progress>, StoreError> {
        let written = self.0.write((job.clone(), progress, at), |tx, (job, progress, at)| {
            Box::pin(ops::tell_progress(&mut tx.session, &mut tx.unit, job, progress, *at))
        });
        match written.await? {
            RemoteOutcome::Done(()) => {
                let progress = Remote::progress(self, &job.job, job.tenant.as_deref()).await?;
                Ok(progress.map_or(RemoteOutcome::NotFound, RemoteOutcome::Done))
            }
            RemoteOutcome::StaleLease => Ok(RemoteOutcome::StaleLease),
            _ => Ok(RemoteOutcome::NotFound),
        }
    }

    /// How far a job is; `None` when there is no such job.
    #[boxed]
    pub async fn progress(&self, job: &JobId, tenant: Option<&str>) -> Result<Option<Progress>, StoreError> {
        let values = [job.as_str().into(), tenant.into()];
        let rows =
            self.0.readers.read("read progress", &sql::SELECT_PROGRESS_OF_JOB, Args::Values(&values)).await?;
        let found = decode_all(&rows, |row| {
            let job_state = get::<JobState>(row, "state")?;
            let done = (job_state == JobState::Completed).then_some(1_000_000);
            let reported_at = get::<Option<i64>>(row, "at")?;
            let ended_at = if done.is_some() { get(row, "ended_at")? } else { None };
            Ok(Progress {
                job_state,
                millionths: done.or(get(row, "millionths")?),
                message: get(row, "message")?,
                data: get(row, "data")?,
                at: ended_at.or(reported_at).map(Timestamp),
            })
        })?;
        Ok(found.into_iter().next())
    }

    async fn shown(&self, outcome: RemoteOutcome<Reported>) -> Result<RemoteOutcome<Box<Job>>, StoreError> {
        let job = match outcome {
            RemoteOutcome::Done(reported) => self.0.reported(reported).await?,
            RemoteOutcome::NotFound => return Ok(RemoteOutcome::NotFound),
            RemoteOutcome::WrongState(state) => return Ok(RemoteOutcome::WrongState(state)),
            RemoteOutcome::NotYours { holder } => return Ok(RemoteOutcome::NotYours { holder }),
            RemoteOutcome::StaleLease => return Ok(RemoteOutcome::StaleLease),
            RemoteOutcome::OfSeveralTenants(tenants) => return Ok(RemoteOutcome::OfSeveralTenants(tenants)),
            RemoteOutcome::NotForYou => return Ok(RemoteOutcome::NotForYou),
        };
        // Its history can only be gone if it ended, and was pruned, in this very moment.
        job.map(|job| RemoteOutcome::Done(Box::new(job))).ok_or_else(|| StoreError::Unreadable {
            column: "job_envelopes".to_owned(),
            message: "the job's envelope is gone".to_owned(),
        })
    }

    async fn worker(&self, name: &str) -> Result<Option<WorkerBeat>, StoreError> {
        let values = [name.into()];
        let rows =
            self.0.readers.read("look for a worker", &sql::SELECT_WORKERS, Args::Values(&values)).await?;
        Ok(decode_all(&rows, rows::decode)?.pop())
    }
}

/// Reads the saved state of a job, with the job's seq.
pub(super) fn saved(row: &impl rows::Fields) -> Result<(i64, SavedState), rows::Inconsistency> {
    let saved =
        SavedState { state: get(row, "state")?, sequence: get(row, "sequence")?, at: get(row, "at")? };
    Ok((get(row, "job_seq")?, saved))
}
