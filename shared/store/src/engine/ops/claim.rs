//! Claim: `available → active`, a batch, with everything that is needed to go on where each job stopped.

use super::super::definitions::Definitions;
use super::super::rows::{self, JobRow};
use super::super::session::{Args, Session, limit};
use super::super::statement::read_by;
use super::super::unit::Unit;
use super::upkeep;
use crate::{Claim, ClaimRequest, EngagementClaim, StoreError, sql};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::state::Trigger;
use turnstone_domain::{AgentDefinition, Checkpoint, EventName, Ids, Lease};

/// Claims up to `request.limit` jobs from the queues, in the order in which they are named.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &ClaimRequest,
    definitions: &mut Definitions,
    ids: &dyn Ids,
) -> Result<Vec<Claim>, StoreError> {
    // What is due is available, whether the scheduler has come to it or not.
    let mut due = Unit::default();
    upkeep::promote_due(session, &mut due, request.now, request.limit).await?;
    unit.rings.append(&mut due.rings);
    let mut found: Vec<JobRow> = Vec::new();
    for queue in &request.queues {
        let room = request.limit.saturating_sub(found.len());
        if room == 0 {
            break;
        }
        let values =
            [request.kind.as_str().into(), queue.as_str().into(), limit(room).into(), request.now.0.into()];
        let rows = session.rows("claim jobs", &sql::JOBS_AVAILABLE, Args::Values(&values)).await?;
        for row in rows {
            match JobRow::decode(&row).map_err(StoreError::from) {
                Ok(job) => found.push(job),
                Err(error) => tracing::error!(%error, "a job is left where it is"),
            }
        }
    }
    let mut seqs: Vec<i64> = found.iter().map(|job| job.seq).collect();
    let resumed: Vec<(i64, i64)> = found
        .iter()
        .filter(|job| job.attempt > 0)
        .filter_map(|job| job.position.as_ref().map(|position| (job.seq, position.turn)))
        .collect();
    unit.take_in(session, found).await?;
    let mut agents = runnable(session, unit, &mut seqs, definitions).await?;
    for seq in &seqs {
        start(unit, *seq, request, ids)?;
    }
    unit.flush(session).await?;
    let keys = seqs.iter().map(|seq| (*seq,)).collect();
    let mut envelopes: HashMap<i64, (RetryPolicy, Envelope)> =
        read_by(session, "read envelopes", &sql::ENVELOPES_BY_JOB, keys, rows::envelope)
            .await?
            .into_iter()
            .map(|(seq, retry, envelope)| (seq, (retry, envelope)))
            .collect();
    let mut checkpoints: HashMap<i64, Vec<Checkpoint>> = HashMap::new();
    let decode = |row: &S::Row| Ok((rows::get::<i64>(row, "job_seq")?, rows::checkpoint(row)?));
    let (action, text) = ("read checkpoints", &sql::CHECKPOINTS_OF_TURN);
    for (seq, done) in read_by(session, action, text, resumed, decode).await? {
        checkpoints.entry(seq).or_default().push(done);
    }
    let mut claims = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let Some((retry, envelope)) = envelopes.remove(&seq) else { continue };
        let done = checkpoints.remove(&seq).unwrap_or_default();
        claims.extend(claimed(unit, seq, retry, envelope, done, agents.remove(&seq)));
    }
    Ok(claims)
}

/// The agents of these jobs. A job whose agent this version cannot read is left for a newer worker, so that it does
/// not keep the others from being claimed.
async fn runnable<S: Session>(
    session: &mut S,
    unit: &Unit,
    seqs: &mut Vec<i64>,
    definitions: &mut Definitions,
) -> Result<HashMap<i64, Arc<AgentDefinition>>, StoreError> {
    let mut agents = HashMap::new();
    let mut left = Vec::new();
    for seq in seqs.iter() {
        let Some(row) = unit.engagement_of(*seq) else { continue };
        match definitions.get(session, &row.digest).await {
            Ok(agent) => drop(agents.insert(*seq, agent)),
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(engagement = %row.engagement.id, %error, "an agent cannot be read; its job is left where it is");
                left.push(*seq);
            }
            Err(error) => return Err(error),
        }
    }
    seqs.retain(|seq| !left.contains(seq));
    Ok(agents)
}

fn start(unit: &mut Unit, seq: i64, request: &ClaimRequest, ids: &dyn Ids) -> Result<(), StoreError> {
    let job = unit.change_job(seq)?;
    job.step(Trigger::Claim, request.now)?;
    job.attempt += 1;
    job.started_at = job.started_at.or(Some(request.now));
    job.claimed_at = Some(request.now);
    job.worker_id = Some(request.worker_id.clone());
    job.lease_token = Some(ids.next());
    job.lease_expires_at = Some(request.now.plus_ms(request.lease_ms));
    let data = json!({"attempt": job.attempt, "worker_id": request.worker_id});
    unit.note(seq, EventName::JobStarted, data, request.now)
}

fn claimed(
    unit: &Unit,
    seq: i64,
    retry: RetryPolicy,
    envelope: Envelope,
    checkpoints: Vec<Checkpoint>,
    agent: Option<Arc<AgentDefinition>>,
) -> Option<Claim> {
    let job = unit.job(seq)?;
    let engagement = unit.engagement_of(seq).zip(agent).map(|(row, agent)| EngagementClaim {
        engagement: row.engagement.clone(),
        agent,
        position: job.position.clone().unwrap_or_default(),
        checkpoints,
        budget: unit.budget_of(seq),
        has_past: row.messages > 0 || job.attempt > 1,
    });
    Some(Claim {
        job: job.id.clone(),
        job_type: job.job_type.clone(),
        attempt: job.attempt,
        failures: job.failures,
        retry,
        timeout_ms: job.timeout_ms,
        envelope,
        created_at: job.created_at,
        lease: Lease {
            job: job.id.clone(),
            token: job.lease_token.clone()?,
            expires_at: job.lease_expires_at?,
        },
        engagement,
    })
}
