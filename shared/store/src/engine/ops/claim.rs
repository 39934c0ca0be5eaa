//! Claim: `available → active`, a batch, with everything that is needed to go on where each job stopped.

use super::super::definitions::Definitions;
use super::super::rows::{self, JobRow};
use super::super::session::{Arg, Args, Session, limit};
use super::super::statement::{as_json, read_by};
use super::super::unit::Unit;
use super::super::workflows::StepInput;
use super::upkeep;
use crate::{Claim, ClaimRequest, EngagementClaim, JobKind, Ring, StoreError, sql};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::state::Trigger;
use turnstone_domain::{AgentDefinition, Checkpoint, EventName, Ids, Lease};

/// Jobs that are looked at in search of one that can be read.
const MOST_LOOKED_AT: usize = 4096;
/// The scheduler looks again at least this often by itself; what is due earlier is rung for.
const SOON_MS: i64 = 2_500;

/// Claims up to `request.limit` jobs from the queues, in the order in which they are named.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &ClaimRequest,
    definitions: &mut Definitions,
    ids: &dyn Ids,
) -> Result<Vec<Claim>, StoreError> {
    let (seqs, mut agents) = take(session, unit, request, definitions, ids).await?;
    let resumed: Vec<(i64, i64)> = seqs
        .iter()
        .filter_map(|seq| unit.job(*seq))
        .filter(|job| has_past(unit, job))
        .filter_map(|job| job.position.as_ref().map(|position| (job.seq, position.turn)))
        .collect();
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
    let steps = seqs.iter().filter(|seq| unit.job(**seq).is_some_and(|job| job.workflow.is_some()));
    let steps = steps.map(|seq| (*seq,)).collect();
    let (action, text) = ("read steps", &sql::WORKFLOW_INPUTS);
    let steps = read_by(session, action, text, steps, StepInput::decode).await?;
    let mut steps: HashMap<i64, StepInput> = steps.into_iter().collect();
    let mut claims = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let Some((retry, envelope)) = envelopes.remove(&seq) else { continue };
        let done = checkpoints.remove(&seq).unwrap_or_default();
        let claim = claimed(unit, seq, retry, envelope, done, agents.remove(&seq));
        let step = steps.remove(&seq).unwrap_or_default();
        claims.extend(claim.map(|claim| Claim { parent_results: step.parent_results, ..claim }));
    }
    Ok(claims)
}

/// Chooses jobs and starts them, in memory: nothing is written before the unit is flushed.
pub(super) async fn take<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &ClaimRequest,
    definitions: &mut Definitions,
    ids: &dyn Ids,
) -> Result<(Vec<i64>, HashMap<i64, Arc<AgentDefinition>>), StoreError> {
    let (mut seqs, mut agents) = (Vec::new(), HashMap::new());
    let tags = request.runtime_tags.as_ref().map(as_json).transpose()?;
    for queue in &request.queues {
        let room = request.limit.saturating_sub(seqs.len());
        if room == 0 {
            break;
        }
        let jobs = Wanted { request, tags: tags.as_deref(), queue, room };
        upkeep::promote_for_claim(session, &mut unit.rings, &jobs.values(room), request.now).await?;
        seqs.extend(jobs.choose(session, unit, definitions, &mut agents).await?);
    }
    for seq in &seqs {
        start(unit, *seq, request, ids)?;
    }
    Ok((seqs, agents))
}

/// Jobs of one queue.
struct Wanted<'a> {
    request: &'a ClaimRequest,
    /// What the worker's runtime has to offer: JSON.
    tags: Option<&'a str>,
    queue: &'a str,
    room: usize,
}

impl Wanted<'_> {
    fn values(&self, rows: usize) -> [Arg<'_>; 6] {
        let (request, tags) = (self.request, self.tags);
        let (kind, tenant) = (request.kind.as_str(), request.tenant.as_deref());
        [kind.into(), self.queue.into(), limit(rows).into(), request.now.0.into(), tenant.into(), tags.into()]
    }

    /// The next jobs, with their agents. A job that this version cannot read is left for a newer worker; those behind
    /// it are looked at instead, so that it does not keep them from being claimed.
    async fn choose<S: Session>(
        &self,
        session: &mut S,
        unit: &mut Unit,
        definitions: &mut Definitions,
        agents: &mut HashMap<i64, Arc<AgentDefinition>>,
    ) -> Result<Vec<i64>, StoreError> {
        let mut asked = self.room;
        loop {
            let values = self.values(asked);
            let rows = session.rows("claim jobs", &sql::JOBS_AVAILABLE, Args::Values(&values)).await?;
            let (all, mut found) = (rows.len() < asked, Vec::with_capacity(rows.len()));
            for row in &rows {
                match JobRow::decode(row).map_err(StoreError::from) {
                    Ok(job) => found.push(job),
                    Err(error) => tracing::error!(%error, "a job is left where it is"),
                }
            }
            let mut seqs: Vec<i64> = found.iter().map(|job| job.seq).collect();
            unit.take_in(session, found).await?;
            agents.extend(runnable(session, unit, &mut seqs, definitions).await?);
            if seqs.len() >= self.room || all || asked >= MOST_LOOKED_AT {
                seqs.truncate(self.room);
                return Ok(seqs);
            }
            asked = (asked * 4).clamp(64, MOST_LOOKED_AT);
        }
    }
}

/// The agents of these jobs; jobs whose agent cannot be read are taken out.
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
    let worker = (!request.worker_id.is_empty()).then(|| request.worker_id.clone());
    job.worker_id.clone_from(&worker);
    job.lease_token = Some(ids.next());
    let lease_ms = match request.kind {
        JobKind::Plain => job.visibility_ms.unwrap_or(request.lease_ms),
        JobKind::Agent => request.lease_ms,
    };
    job.lease_ms = Some(lease_ms);
    job.lease_expires_at = Some(request.now.plus_ms(lease_ms));
    let ends_soon = job.timeout_ms.is_some_and(|timeout| timeout < SOON_MS) || lease_ms < SOON_MS;
    if request.kind == JobKind::Plain && ends_soon {
        unit.rings.push(Ring::Due);
    }
    let data = json!({"attempt": unit.job(seq).map(|job| job.attempt), "worker_id": worker});
    unit.note(seq, EventName::JobStarted, data, request.now)
}

/// Whether something may have been done for this job before: it was claimed before, or more is told of its engagement
/// than that it was enqueued and is started now. Attempts alone do not say: an operator may let them begin again.
fn has_past(unit: &Unit, job: &JobRow) -> bool {
    job.attempt > 1 || unit.engagement_of(job.seq).is_some_and(|row| row.events > 2)
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
        has_past: row.messages > 0 || has_past(unit, job),
    });
    Some(Claim {
        job: job.id.clone(),
        job_type: job.job_type.clone(),
        attempt: job.attempt,
        failures: job.failures,
        retry,
        timeout_ms: job.timeout_ms,
        envelope,
        parent_results: None,
        created_at: job.created_at,
        lease: Lease {
            job: job.id.clone(),
            token: job.lease_token.clone()?,
            expires_at: job.lease_expires_at?,
        },
        engagement,
    })
}
