//! What workers in any language write, reached over HTTP: acknowledgements, failures, beats, saved states, progress: the calls.

use super::Engine;
use super::caller::again;
use super::ops::remote::{Answer as Remotely, Request as Remoted};
use super::rows::{self, JobRow, get, maybe};
use super::session::{Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request, Work};
use crate::{
    ClaimRequest, Directive, Heartbeat, HeartbeatAnswer, JobKind, NewProgress, Progress, Remote,
    RemoteOutcome, Report, StoreError, WorkerBeat, WorkerState, sql,
};
use async_trait::async_trait;
use backon::BackoffBuilder;
use turnstone_domain::job::SavedState;
use turnstone_domain::{Job, JobId, JobState, Timestamp};

impl<R: Reader> Engine<R> {
    async fn remotely(&self, request: Remoted) -> Result<Remotely, StoreError> {
        match self.request(Request::Remote(request)).await? {
            Answer::Remote(answer) => Ok(answer),
            _ => Err(StoreError::Closed),
        }
    }

    async fn one_job(&self, row: JobRow) -> Result<Box<Job>, StoreError> {
        let job = self.complete(vec![row]).await?.pop();
        // Its history can only be gone if it ended, and was pruned, in this very moment.
        job.map(Box::new).ok_or_else(|| StoreError::Unreadable {
            column: "job_envelopes".to_owned(),
            message: "the job's envelope is gone".to_owned(),
        })
    }

    async fn shown(&self, outcome: RemoteOutcome<JobRow>) -> Result<RemoteOutcome<Box<Job>>, StoreError> {
        Ok(match outcome {
            RemoteOutcome::Done(row) => RemoteOutcome::Done(self.one_job(row).await?),
            RemoteOutcome::NotFound => RemoteOutcome::NotFound,
            RemoteOutcome::WrongState(state) => RemoteOutcome::WrongState(state),
            RemoteOutcome::NotYours { holder } => RemoteOutcome::NotYours { holder },
            RemoteOutcome::NotForYou => RemoteOutcome::NotForYou,
        })
    }

    async fn worker(&self, name: &str) -> Result<Option<WorkerBeat>, StoreError> {
        let values = [name.into()];
        let rows =
            self.readers.read("look for a worker", &sql::SELECT_WORKERS, Args::Values(&values)).await?;
        Ok(decode_all(&rows, rows::worker)?.pop())
    }
}

#[async_trait]
impl<R: Reader> Remote for Engine<R> {
    async fn fetch(&self, mut request: ClaimRequest) -> Result<Vec<Job>, StoreError> {
        request.kind = JobKind::Plain;
        if !request.worker_id.is_empty()
            && let Some(worker) = self.worker(&request.worker_id).await?
            && (worker.state == WorkerState::Draining || worker.directive.is_some())
        {
            return Ok(Vec::new());
        }
        if let Some(batch) = self.claim_alone(&request).await? {
            return self.complete(batch.rows).await;
        }
        let asked = std::mem::take(&mut request.queues);
        let Some(mut ask) = self.work_for(&asked, &request).await? else { return Ok(Vec::new()) };
        let mut pauses = again().build();
        loop {
            let Remotely::Fetched { rows, busy } = self.remotely(Remoted::Fetch(ask)).await? else {
                return Err(StoreError::Closed);
            };
            let pause = pauses.next().filter(|_| busy && rows.is_empty());
            let Some(pause) = pause else { return self.complete(rows).await };
            tokio::time::sleep(pause).await;
            match self.work_for(&asked, &request).await? {
                Some(again) => ask = again,
                None => return Ok(Vec::new()),
            }
        }
    }

    async fn report(&self, report: Report) -> Result<RemoteOutcome<Box<Job>>, StoreError> {
        let outcome = self.ask(|reply| Work::Report(Box::new(report), reply)).await??;
        self.shown(outcome).await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatAnswer, StoreError> {
        match self.remotely(Remoted::Heartbeat(heartbeat)).await? {
            Remotely::Heard(Ok(answer)) => Ok(answer),
            Remotely::Heard(Err(refused)) => Err(refused),
            _ => Err(StoreError::Closed),
        }
    }

    async fn direct(&self, worker: &str, directive: Option<Directive>) -> Result<bool, StoreError> {
        match self.remotely(Remoted::Direct { worker: worker.to_owned(), directive }).await? {
            Remotely::Known(known) => Ok(known),
            _ => Err(StoreError::Closed),
        }
    }

    async fn activate(
        &self,
        job: &JobId,
        tenant: Option<&str>,
        at: Timestamp,
    ) -> Result<RemoteOutcome<Box<Job>>, StoreError> {
        let (job, tenant) = (job.clone(), tenant.map(str::to_owned));
        match self.remotely(Remoted::Activate { job, tenant, at }).await? {
            Remotely::Activated(outcome) => self.shown(*outcome).await,
            _ => Err(StoreError::Closed),
        }
    }

    async fn save_state(
        &self,
        job: &JobId,
        tenant: Option<&str>,
        state: String,
        at: Timestamp,
    ) -> Result<RemoteOutcome<SavedState>, StoreError> {
        let (job, tenant) = (job.clone(), tenant.map(str::to_owned));
        match self.remotely(Remoted::SaveState { job, tenant, state, at }).await? {
            Remotely::Saved(outcome) => Ok(outcome),
            _ => Err(StoreError::Closed),
        }
    }

    async fn forget_state(&self, job: &JobId, tenant: Option<&str>) -> Result<bool, StoreError> {
        let (job, tenant) = (job.clone(), tenant.map(str::to_owned));
        match self.remotely(Remoted::ForgetState { job, tenant }).await? {
            Remotely::Known(known) => Ok(known),
            _ => Err(StoreError::Closed),
        }
    }

    async fn tell_progress(
        &self,
        job: &JobId,
        tenant: Option<&str>,
        progress: NewProgress,
        at: Timestamp,
    ) -> Result<Option<Progress>, StoreError> {
        let asked = (job.clone(), tenant.map(str::to_owned));
        match self.remotely(Remoted::Progress { job: asked.0, tenant: asked.1, progress, at }).await? {
            Remotely::Known(true) => Remote::progress(self, job, tenant).await,
            Remotely::Known(false) => Ok(None),
            _ => Err(StoreError::Closed),
        }
    }

    async fn progress(&self, job: &JobId, tenant: Option<&str>) -> Result<Option<Progress>, StoreError> {
        let values = [job.as_str().into(), tenant.into()];
        let rows =
            self.readers.read("read progress", &sql::SELECT_PROGRESS_OF_JOB, Args::Values(&values)).await?;
        let told = decode_all(&rows, |row| {
            let job_state = rows::word(row, "state", JobState::parse)?;
            let done = (job_state == JobState::Completed).then_some(1_000_000);
            let told_at = maybe::<i64>(row, "at")?;
            let ended_at = if done.is_some() { maybe(row, "ended_at")? } else { None };
            Ok(Progress {
                job_state,
                millionths: done.or(maybe(row, "millionths")?),
                message: maybe(row, "message")?,
                data: maybe(row, "data")?,
                at: ended_at.or(told_at).map(Timestamp),
            })
        })?;
        Ok(told.into_iter().next())
    }
}

/// What was saved for a job, by its seq.
pub(super) fn saved(row: &impl rows::Fields) -> Result<(i64, SavedState), rows::Inconsistency> {
    let saved =
        SavedState { state: get(row, "state")?, sequence: get(row, "sequence")?, at: rows::time(row, "at")? };
    Ok((get(row, "job_seq")?, saved))
}
