//! Calls that agents of other servers work for: the writes.

use super::super::rows::{
    AbandonedCalls, Fields, Inconsistency, JobRow, RemoteCallKey, RemoteCallRow, get, json_or_none,
};
use super::super::session::{Args, Session, limit as row_limit};
use super::super::statement::{Writes, read_readable};
use super::super::unit::Unit;
use crate::remote_calls::{CallToCancel, CancelAttempt};
use crate::{StoreError, sql};
use std::collections::BTreeMap;
use std::mem::take;
use turnstone_domain::event::{EventBody, NotCancelled};
use turnstone_domain::tool_call::AwayStep;
use turnstone_domain::{CallId, JobId, Timestamp};

/// The known state of a call at one place: the job, the handle, and the time of its cancellation.
type KnownCall = (i64, Option<String>, Option<Timestamp>);

/// Rows that are to be written.
#[derive(Default)]
pub(in super::super) struct Away {
    /// By call and place.
    put: BTreeMap<(String, String), KnownCall>,
    over: Vec<RemoteCallKey>,
    abandoned: Vec<AbandonedCalls>,
}

impl Away {
    /// Takes in one step of a call.
    pub(in super::super) fn step(
        &mut self,
        job_seq: i64,
        call: &CallId,
        place: &str,
        step: &AwayStep,
        at: Timestamp,
    ) {
        let key = (call.0.clone(), place.to_owned());
        let (handle, due_at) = match step {
            AwayStep::Leaves => (None, None),
            AwayStep::Works(handle) => (Some(handle.to_string()), None),
            AwayStep::Abandoned => (None, Some(at)),
            AwayStep::Over => return self.over.push(RemoteCallKey { call_id: key.0, place: key.1 }),
        };
        let row = self.put.entry(key).or_insert((job_seq, None, None));
        *row = (job_seq, handle.or(row.1.take()), due_at);
    }

    /// Records a job whose state has changed. A job that ended without its remote calls leaves them to be
    /// cancelled.
    pub(in super::super) fn moved(&mut self, job: &JobRow) {
        if job.engagement_seq.is_some() && job.state.is_terminal() {
            self.abandoned.extend(job.ended_at.map(|at| AbandonedCalls { job_seq: job.seq, due_at: at }));
        }
    }

    /// Adds what is to be written.
    pub(in super::super) fn flush(&mut self, writes: &mut Writes) {
        let rows = take(&mut self.put).into_iter();
        let row = |((call_id, place), (job_seq, handle, due_at)): ((String, String), KnownCall)| {
            RemoteCallRow { call_id, place, job_seq, handle, due_at }
        };
        let rows = rows.map(row).collect();
        writes.some("record remote calls", &sql::INSERT_REMOTE_CALLS, rows);
        writes.some("delete ended remote calls", &sql::DELETE_REMOTE_CALLS, take(&mut self.over));
    }

    /// Adds what jobs that ended leave behind: beside the jobs, because most commits write nothing of calls.
    pub(in super::super) fn leave(&mut self, writes: &mut Writes) {
        writes.some(
            "request cancellations of remote calls",
            &sql::UPDATE_ABANDONED_REMOTE_CALLS,
            take(&mut self.abandoned),
        );
    }
}

pub(in super::super) async fn take_due(
    session: &mut Session,
    now: Timestamp,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<CallToCancel>, StoreError> {
    let values = [now.0.into(), row_limit(limit).into()];
    let (action, text) = ("read remote calls to cancel", &sql::SELECT_DUE_REMOTE_CALLS);
    let due = read_readable(session, action, text, &values, call_to_cancel).await?;
    let mut taken = Vec::with_capacity(due.len());
    for one in due {
        let values = [one.call.as_str().into(), one.place.as_str().into(), one.tries.into(), until.0.into()];
        let (action, text) = ("take a remote call to cancel", &sql::UPDATE_TAKEN_REMOTE_CALL);
        if session.execute(action, text, Args::Values(&values)).await? > 0 {
            taken.push(CallToCancel { tries: one.tries + 1, ..one });
        }
    }
    Ok(taken)
}

pub(in super::super) async fn note(
    session: &mut Session,
    unit: &mut Unit,
    one: &CallToCancel,
    how: &CancelAttempt,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (call, place) = (one.call.as_str(), one.place.as_str());
    if let CancelAttempt::Again(due_at) = how {
        let values = [call.into(), place.into(), one.tries.into(), due_at.0.into()];
        let (action, text) = ("repeat a remote cancellation later", &sql::UPDATE_REMOTE_CALL_RETRY);
        return session.execute(action, text, Args::Values(&values)).await.map(|_| ());
    }
    // The job before its calls: every process that ends a job locks them in this order.
    let job = match how {
        CancelAttempt::GivenUp(why) => unit.read_job(session, &one.job, None).await?.zip(Some(why)),
        _ => None,
    };
    let values = [call.into(), place.into(), one.tries.into()];
    let (action, text) = ("record a remote cancellation", &sql::DELETE_CANCELLED_REMOTE_CALL);
    if session.execute(action, text, Args::Values(&values)).await? > 0
        && let Some((seq, why)) = job
    {
        let (call_id, agent) = (one.call.clone(), place.to_owned());
        unit.note(
            seq,
            EventBody::ToolNotCancelled(NotCancelled { call_id, agent, message: why.clone() }),
            at,
        )?;
        unit.flush(session).await?;
    }
    Ok(())
}

/// Reads a row.
pub(in super::super) fn call_to_cancel(row: &impl Fields) -> Result<CallToCancel, Inconsistency> {
    Ok(CallToCancel {
        call: CallId(get(row, "call_id")?),
        place: get(row, "place")?,
        handle: json_or_none(row, "handle")?,
        tries: get(row, "tries")?,
        job: JobId(get(row, "job_id")?),
    })
}
