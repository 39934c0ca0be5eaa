//! Agents that work for agents.
//!
//! A job that delegates parks, and its delegates are enqueued, in one transaction. Every end of a delegate calls
//! [`advance()`] in the transaction that ended it, so each end counts once. The last awaited end makes the parent
//! available. A parent that fails or is cancelled also cancels its unfinished delegates.
//!
//! Jobs are locked before those that they work for, which is the order in which they end ([`lock_tree`]).

mod advance;
mod start;

use super::super::rows::{EngagementRow, Fields, Inconsistency, JobRow, get};
use super::super::session::{Session, limit as row_limit};
use super::super::statement::{read, read_by};
use super::super::unit::Unit;
use super::cancel;
use crate::{StoreError, sql};
use std::collections::{BTreeSet, HashMap};
use turnstone_domain::agent::delegation::DelegationState;
use turnstone_domain::event::{DelegationEnd, DelegationRole, EventBody};
use turnstone_domain::{EventName, JobId, JobState, NewChild, NewEvent, Timestamp};

pub(in super::super) use advance::advance;
pub(in super::super) use start::{notify_parent, start};

/// A job that was parked, and the delegates that it waits for.
pub(in super::super) struct Family {
    pub job: JobId,
    pub children: Vec<NewChild>,
    pub at: Timestamp,
}

/// The numbers of jobs that trees ever had, while the rows of their roots are locked: no other transaction adds any.
pub(in super::super) struct Trees(HashMap<i64, i64>);

impl Trees {
    /// Locks the roots of these jobs' trees. The rows of jobs and of their engagements are locked before.
    pub(in super::super) async fn lock(
        session: &mut Session,
        unit: &Unit,
        jobs: impl Iterator<Item = i64>,
    ) -> Result<Self, StoreError> {
        let roots: BTreeSet<i64> =
            jobs.filter_map(|seq| unit.engagement_of(seq)).map(|row| row.budget_seq).collect();
        let keys = roots.into_iter().collect();
        let counts = read_by(session, "lock trees", &sql::LOCK_BUDGETS, keys, count).await?;
        Ok(Self(counts.into_iter().collect()))
    }

    /// Adds jobs to the tree of a root if it has at most `most` then.
    ///
    /// # Errors
    /// The number of jobs that it has.
    pub(in super::super) fn take(&mut self, root: i64, jobs: u32, most: u32) -> Result<(), i64> {
        let count = self.0.entry(root).or_insert(1);
        if jobs > 0 && *count + i64::from(jobs) > i64::from(most) {
            return Err(*count);
        }
        *count += i64::from(jobs);
        Ok(())
    }
}

fn count(row: &impl Fields) -> Result<(i64, i64), Inconsistency> {
    Ok((get(row, "seq")?, get(row, "tree_jobs")?))
}

/// A job that has ended, and works for another one or had others work for it.
#[derive(Clone, Debug)]
pub(in super::super) struct TreeEnd {
    pub job_seq: i64,
    pub state: JobState,
    pub at: Timestamp,
    pub works_for: Option<i64>,
    pub has_children: bool,
}

impl TreeEnd {
    /// Returns what other jobs need to know of a job, if it has ended and there are others.
    pub(in super::super) fn of(job: &JobRow, engagement: Option<&EngagementRow>) -> Option<Self> {
        let (row, at) = engagement.zip(job.ended_at)?;
        row.shares_budget().then_some(Self {
            job_seq: job.seq,
            state: job.state,
            at,
            works_for: row.parent_seq,
            has_children: row.children > 0,
        })
    }
}

/// Records the job's outcome for its parent in the job's stream, before the job ends.
pub(in super::super) fn before_the_end(
    unit: &Unit,
    job_seq: i64,
    name: EventName,
    at: Timestamp,
) -> Option<NewEvent> {
    let row = unit.engagement_of(job_seq).filter(|row| name.ends_job() && row.parent_seq.is_some())?;
    // It was asked for its first answer; what it is asked later is nothing to the one that it worked for.
    if row.seq != job_seq {
        return None;
    }
    let job = unit.job(job_seq)?;
    let status = match name {
        EventName::JobCompleted => DelegationState::Success,
        _ => DelegationState::Error,
    };
    let ended = DelegationEnd {
        role: DelegationRole::Child,
        agent_id: row.engagement.agent.clone(),
        status,
        duration_ms: at.since(job.created_at).max(0),
        tokens_used: job.tokens_used,
        call_id: None,
        engagement_id: None,
    };
    Some(NewEvent::of(&EventBody::DelegationCompleted(ended), 0, at))
}

/// Locks jobs, all that work for them, and the inputs that they wait for, before any of them is changed. The order
/// is that in which jobs end, so that ending one job and ending all of them never wait for each other.
pub(super) async fn lock_tree(session: &mut Session, jobs: &[JobId]) -> Result<(), StoreError> {
    let keys = jobs.to_vec();
    let seqs = read_by(session, "read a delegation tree", &sql::SELECT_JOB_TREE, keys, |row| {
        get::<i64>(row, "job_seq")
    })
    .await?;
    if seqs.len() > 1 {
        let keys = seqs.into_iter().collect();
        read_by(session, "lock a delegation tree", &sql::LOCK_JOB_TREE, keys, |row| get::<i64>(row, "seq"))
            .await?;
    }
    Ok(())
}

/// Cancels delegates that exceed the time of their delegation.
pub(in super::super) async fn time_out(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let (action, values) = ("look for late delegations", [now.0.into(), row_limit(limit).into()]);
    let late = read(session, action, &sql::SELECT_OVERDUE_DELEGATIONS, &values, |row| {
        get::<String>(row, "id").map(JobId)
    });
    let late = late.await?;
    let count = late.len();
    if count > 0 {
        let mut own = Unit::default();
        cancel::all(session, &mut own, late, now).await?;
        unit.absorb(own);
    }
    Ok(count)
}
