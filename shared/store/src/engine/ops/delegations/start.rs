//! Enqueues the delegates of jobs that were just parked.

use super::super::push::{self, DelegationPlace, Look, PushEntry};
use super::super::{remote, reviews};
use super::advance::activate_idle;
use super::{Family, Trees};
use crate::engine::rows::JobRow;
use crate::engine::session::Session;
use crate::engine::statement::read_by;
use crate::engine::unit::Unit;
use crate::{StoreError, sql};
use turnstone_domain::agent::delegation::DelegationState;
use turnstone_domain::engagement::NewEngagement;
use turnstone_domain::event::{DelegationRole, DelegationStart, EventBody};
use turnstone_domain::job::Envelope;
use turnstone_domain::{NewChild, NewJob, RawObject, Terms, Timestamp};

/// Enqueues them, as far as they fit into their trees. A job whose delegates have all ended meanwhile, or none of which
/// started, continues at once: its next claim knows the number of jobs of its tree.
pub(in crate::engine) async fn start(
    session: &mut Session,
    unit: &mut Unit,
    families: Vec<Family>,
) -> Result<(), StoreError> {
    let keys = families.iter().map(|family| family.job.clone()).collect();
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    let policies = remote::retry_policies(session, rows.iter().map(|job| job.seq).collect()).await?;
    unit.take_in(session, rows).await?;
    let parents = families.iter().filter_map(|family| unit.seq_of(&family.job));
    let mut trees = Trees::lock(session, unit, parents).await?;
    let (mut born, mut left_out) = (Vec::new(), Vec::new());
    for family in &families {
        let Some(seq) = unit.seq_of(&family.job) else { continue };
        let Some(root) = unit.engagement_of(seq).map(|row| row.budget_seq) else { continue };
        let fits = |child: &&NewChild| trees.take(root, child.jobs, child.max_jobs_per_tree).is_ok();
        let started = family.children.iter().take_while(fits).count();
        let (started, others) = family.children.split_at(started);
        left_out.extend(others.iter().map(|child| (seq, child, family.at)));
        let mut own = Vec::with_capacity(started.len());
        for child in started {
            own.extend(job_of(unit, seq, child, &policies, family.at));
        }
        born.push(own);
    }
    let entry =
        |(job, delegation)| PushEntry { job, step: None, delegation: Some(delegation), continues: None };
    let entries: Vec<Vec<PushEntry<'_>>> = born
        .iter()
        .map(|own| own.iter().map(|(job, delegation)| entry((job, delegation))).collect())
        .collect();
    let jobs: Vec<_> = born.iter().flatten().map(|(job, _)| job).collect();
    let look = Look::take(session, &jobs, 0).await?;
    let pushed = push::enqueue(session, unit, look, &entries).await?;
    pushed.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (job, delegation) in born.iter().flatten() {
        notify_parent(unit, job, delegation)?;
    }
    for (seq, child, at) in left_out {
        tracing::warn!(
            parent = seq,
            agent = child.agent.name,
            most = child.max_jobs_per_tree,
            "a delegate does not start: its tree has as many jobs as it may have"
        );
        // A reviewer that never starts approves nothing.
        if child.review.is_some() {
            let asked = (child.engagement.as_str(), seq);
            reviews::answered(session, unit, asked, DelegationState::Error, at).await?;
        }
    }
    let mut waiting = Vec::new();
    for family in &families {
        waiting.extend(unit.seq_of(&family.job).map(|seq| (seq, family.at)));
    }
    activate_idle(session, unit, waiting).await?;
    unit.flush(session).await
}

/// Notes in the parent's stream that another works for it.
pub(in crate::engine) fn notify_parent(
    unit: &mut Unit,
    job: &NewJob,
    delegation: &DelegationPlace,
) -> Result<(), StoreError> {
    let Some(engagement) = &job.engagement else { return Ok(()) };
    let started = DelegationStart {
        role: DelegationRole::Parent,
        agent_id: engagement.agent.name.clone(),
        mode: delegation.mode,
        call_id: delegation.call_id.clone(),
        job_id: job.id.clone(),
        engagement_id: Some(engagement.id.clone()),
        depth: delegation.depth,
        timeout_ms: delegation.timeout_ms,
    };
    unit.note(delegation.parent_seq, EventBody::DelegationStarted(started), job.created_at)
}

/// The job of a child, as it is enqueued.
fn job_of(
    unit: &Unit,
    parent_seq: i64,
    child: &NewChild,
    policies: &remote::Policies,
    at: Timestamp,
) -> Option<(NewJob, DelegationPlace)> {
    let (parent, row) = (unit.job(parent_seq)?, unit.engagement_of(parent_seq)?);
    let delegation = DelegationPlace {
        parent_seq,
        parent: parent.id.clone(),
        parent_engagement_seq: row.seq,
        depth: row.depth + 1,
        max_depth: child.agent.limits.max_delegation_depth,
        budget_seq: row.budget_seq,
        jobs: child.jobs,
        limited_by: row.limited_by.clone(),
        call_id: Some(child.call_id.clone()),
        turn: child.turn,
        mode: child.mode,
        timeout_ms: child.timeout_ms,
    };
    let mut extra = RawObject::new();
    extra.insert("ext_agent_parent_id", parent.id.shown());
    extra.insert("ext_agent_delegation_depth", delegation.depth);
    extra.insert("ext_agent_max_delegation_depth", child.agent.limits.max_delegation_depth);
    let user = row.engagement.user.clone();
    let job = NewJob {
        id: child.job.clone(),
        job_type: parent.job_type.clone(),
        queue: parent.queue.clone(),
        priority: parent.priority,
        run_at: at,
        expires_at: parent.expires_at.filter(|expires_at| *expires_at > at),
        timeout_ms: parent.timeout_ms,
        retry: policies.get(&parent_seq).cloned().and_then(Result::ok).unwrap_or_default(),
        envelope: Envelope {
            args: child.args.clone(),
            meta: child.meta.clone(),
            extra,
            ..Envelope::default()
        },
        engagement: Some(NewEngagement {
            id: child.engagement.clone(),
            agent: (*child.agent).clone(),
            user,
            depth: 0,
        }),
        terms: Terms {
            tenant: parent.tenant.clone(),
            visibility_ms: parent.visibility_ms,
            runtime_tags: parent.runtime_tags.clone(),
            ..Terms::default()
        },
        created_at: at,
    };
    Some((job, delegation))
}
