//! Claim: `available → active`, a batch, with everything that is needed to go on where each job stopped.

use super::super::definitions::Definitions;
use super::super::rows::{self, JobRow};
use super::super::sql;
use super::super::statement::{failed, read_by};
use super::super::unit::Unit;
use crate::{Claim, ClaimRequest, EngagementClaim, StoreError};
use serde_json::json;
use sqlx::sqlite::SqliteConnection;
use std::collections::HashMap;
use std::sync::Arc;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::state::Trigger;
use turnstone_domain::{AgentDefinition, Checkpoint, EventName, Ids, Lease};

/// Claims up to `request.limit` jobs from the queues, in the order in which they are named.
pub(in super::super) async fn apply(
    conn: &mut SqliteConnection,
    unit: &mut Unit,
    request: &ClaimRequest,
    definitions: &mut Definitions,
    ids: &dyn Ids,
) -> Result<Vec<Claim>, StoreError> {
    let mut found: Vec<JobRow> = Vec::new();
    for queue in &request.queues {
        let room = request.limit.saturating_sub(found.len());
        if room == 0 {
            break;
        }
        let limit = i64::try_from(room).unwrap_or(i64::MAX);
        let rows = sqlx::query(sql::JOBS_AVAILABLE)
            .bind(request.kind.as_str())
            .bind(queue)
            .bind(limit)
            .bind(request.now.0)
            .fetch_all(&mut *conn)
            .await;
        for row in rows.map_err(failed("claim jobs"))? {
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
    unit.take_in(conn, found).await?;
    let mut agents = runnable(conn, unit, &mut seqs, definitions).await?;
    for seq in &seqs {
        start(unit, *seq, request, ids)?;
    }
    unit.flush(conn).await?;
    let mut envelopes: HashMap<i64, (RetryPolicy, Envelope)> =
        read_by(conn, "read envelopes", sql::ENVELOPES_BY_JOB, &seqs, rows::envelope)
            .await?
            .into_iter()
            .map(|(seq, retry, envelope)| (seq, (retry, envelope)))
            .collect();
    let mut checkpoints: HashMap<i64, Vec<Checkpoint>> = HashMap::new();
    let decode = |row: &_| Ok((rows::get::<i64>(row, "job_seq")?, rows::checkpoint(row)?));
    for (seq, done) in read_by(conn, "read checkpoints", sql::CHECKPOINTS_OF_TURN, &resumed, decode).await? {
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
async fn runnable(
    conn: &mut SqliteConnection,
    unit: &Unit,
    seqs: &mut Vec<i64>,
    definitions: &mut Definitions,
) -> Result<HashMap<i64, Arc<AgentDefinition>>, StoreError> {
    let mut agents = HashMap::new();
    let mut left = Vec::new();
    for seq in seqs.iter() {
        let Some(row) = unit.engagement_of(*seq) else { continue };
        match definitions.get(conn, &row.digest).await {
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
