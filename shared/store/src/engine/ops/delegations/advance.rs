//! The effects of a job's end on the job that it works for, and on its own delegates.

use super::super::{cancel, reviews};
use super::TreeEnd;
use crate::engine::rows::{DelegationEnd, Fields, Inconsistency, JobRow, get};
use crate::engine::session::Session;
use crate::engine::statement::{Writes, read_by};
use crate::engine::unit::Unit;
use crate::{Ring, StoreError, sql};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use turnstone_domain::agent::delegation::DelegationState;
use turnstone_domain::event::{self, DelegationRole, EventBody, Reason};
use turnstone_domain::review::is_call_of_review;
use turnstone_domain::state::Trigger;
use turnstone_domain::{CallId, EngagementId, JobId, JobState, Timestamp};

/// The job that a job works for.
struct Tie {
    job_seq: i64,
    parent_seq: i64,
    parent: JobId,
    call_id: Option<String>,
    agent: String,
    state: DelegationState,
    started_at: Timestamp,
    deadline_at: Option<Timestamp>,
    tokens_used: i64,
    engagement_id: String,
}

impl Tie {
    fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        Ok(Self {
            job_seq: get(row, "job_seq")?,
            parent_seq: get(row, "parent_seq")?,
            parent: JobId(get(row, "parent_id")?),
            call_id: get(row, "call_id")?,
            agent: get(row, "agent")?,
            state: get::<DelegationState>(row, "state")?,
            started_at: get(row, "started_at")?,
            deadline_at: get(row, "deadline_at")?,
            tokens_used: get(row, "tokens_used")?,
            engagement_id: get(row, "engagement_id")?,
        })
    }

    /// Returns the outcome of an end for the parent.
    fn outcome(&self, end: &TreeEnd) -> DelegationState {
        match end.state {
            JobState::Completed => DelegationState::Success,
            JobState::Cancelled if self.deadline_at.is_some_and(|at| at <= end.at) => {
                DelegationState::Timeout
            }
            _ => DelegationState::Error,
        }
    }
}

/// Applies the ends of jobs to their parents and their delegates.
pub(in crate::engine) async fn advance(
    session: &mut Session,
    unit: &mut Unit,
    ended: Vec<TreeEnd>,
) -> Result<(), StoreError> {
    if ended.is_empty() {
        return Ok(());
    }
    let by_job: HashMap<i64, &TreeEnd> = ended.iter().map(|end| (end.job_seq, end)).collect();
    let children = ended.iter().filter(|end| end.works_for.is_some()).map(|end| end.job_seq).collect();
    let ties = read_by(session, "read delegations", &sql::SELECT_DELEGATIONS_BY_CHILD, children, Tie::decode)
        .await?;
    let parents: BTreeSet<String> = ties.iter().map(|tie| tie.parent.0.clone()).collect();
    let parents = parents.into_iter().map(JobId).collect();
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, parents, JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    let (mut ends, mut waiting) = (Vec::new(), BTreeMap::new());
    for tie in ties.iter().filter(|tie| tie.state == DelegationState::Open) {
        let Some(end) = by_job.get(&tie.job_seq) else { continue };
        let state = tie.outcome(end);
        ends.push(DelegationEnd { job_seq: tie.job_seq, state, ended_at: end.at });
        if tie.call_id.is_some() {
            let at = waiting.entry(tie.parent_seq).or_insert(end.at);
            *at = end.at.max(*at);
        }
        notify_parent(unit, tie, end, state)?;
        if tie.call_id.as_deref().is_some_and(is_call_of_review) {
            reviews::answered(session, unit, (&tie.engagement_id, tie.job_seq), state, end.at).await?;
        }
    }
    let mut writes = Writes::default();
    writes.all("end delegations", &sql::UPDATE_ENDED_DELEGATIONS, ends);
    writes.run(session).await?;
    activate_idle(session, unit, waiting.into_iter().collect()).await?;
    unit.flush(session).await?;
    cancel_delegates(session, unit, &ended).await
}

fn notify_parent(
    unit: &mut Unit,
    tie: &Tie,
    end: &TreeEnd,
    state: DelegationState,
) -> Result<(), StoreError> {
    // A parent that has ended receives nothing.
    if unit.job(tie.parent_seq).is_none_or(|job| job.state.is_terminal()) {
        return Ok(());
    }
    let ended = event::DelegationEnd {
        role: DelegationRole::Parent,
        agent_id: tie.agent.clone(),
        status: state,
        duration_ms: end.at.since(tie.started_at).max(0),
        tokens_used: tie.tokens_used,
        call_id: Some(tie.call_id.as_deref().map(CallId::from)),
        engagement_id: Some(EngagementId::from(tie.engagement_id.as_str())),
    };
    unit.note(tie.parent_seq, EventBody::DelegationCompleted(ended), end.at)
}

/// `pending → available` for those of these jobs that wait for no delegate any more.
pub(super) async fn activate_idle(
    session: &mut Session,
    unit: &mut Unit,
    waiting: Vec<(i64, Timestamp)>,
) -> Result<(), StoreError> {
    let keys = waiting.iter().map(|(seq, _)| *seq).collect();
    let busy = read_by(session, "look for delegations", &sql::SELECT_AWAITED_DELEGATIONS, keys, |row| {
        get::<i64>(row, "parent_seq")
    });
    let busy: BTreeSet<i64> = busy.await?.into_iter().collect();
    for (seq, at) in waiting {
        if busy.contains(&seq) || unit.job(seq).is_none_or(|job| job.state != JobState::Pending) {
            continue;
        }
        unit.change_job(seq)?.step(Trigger::Activate, at)?;
        unit.note(seq, EventBody::JobAvailable(Reason::of("children")), at)?;
        unit.rings.push(Ring::Available);
    }
    Ok(())
}

/// Cancels the unfinished delegates of jobs that did not complete.
async fn cancel_delegates(
    session: &mut Session,
    unit: &mut Unit,
    ended: &[TreeEnd],
) -> Result<(), StoreError> {
    let failed = |end: &&TreeEnd| end.has_children && end.state != JobState::Completed;
    let keys: Vec<i64> = ended.iter().filter(failed).map(|end| end.job_seq).collect();
    let at = ended.iter().map(|end| end.at).max().unwrap_or_default();
    let left = read_by(session, "look for delegations", &sql::SELECT_OPEN_DELEGATES, keys, |row| {
        get::<String>(row, "id").map(JobId)
    });
    let left = left.await?;
    if left.is_empty() {
        return Ok(());
    }
    let mut own = Unit::default();
    cancel::all(session, &mut own, left, at).await?;
    unit.absorb(own);
    Ok(())
}
