//! A claim in one statement, where no rule applies that takes more than one look:
//! `sql/postgres_alone/update_claimed_jobs.sql`.
//!
//! It takes before it reads. What this version cannot read is given back, and left to the claim that is made step by step.

use super::past;
use crate::engine::definitions::Definitions;
use crate::engine::held::KnownJob;
use crate::engine::rows::{self, EngagementRow, Fields, Inconsistency, JobRow, Prefixed, get, wrong};
use crate::engine::session::{Args, CommitError, Row, Session, limit};
use crate::engine::statement::{as_json, read};
use crate::engine::unit::Unit;
use crate::{Claim, ClaimRequest, Ring, StoreError, sql};
use std::collections::HashMap;
use turnstone_domain::Timestamp;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;

/// The result of a claim in one statement.
pub(in crate::engine) enum ClaimOutcome {
    /// Nothing was taken, because a rule may apply. `true`: a rule that stays, such as a limit of a queue.
    Ruled(bool),
    /// All that there is, or as many as were asked for.
    Claimed(ClaimBatch),
    /// The same, without jobs that cannot be read; those were given back.
    Damaged(ClaimBatch),
}

/// The jobs of a claim, in its order.
#[derive(Default)]
pub(in crate::engine) struct ClaimBatch {
    pub claims: Vec<Claim>,
    /// The rows of plain jobs.
    pub rows: Vec<JobRow>,
}

/// A job that was taken.
struct TakenJob {
    known: KnownJob,
    retry: RetryPolicy,
    envelope: Envelope,
}

impl TakenJob {
    fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        let job = Box::new(JobRow::decode(row)?);
        if let Some(why) = &job.damaged {
            return Err(wrong("jobs", why));
        }
        let engagement = match job.engagement_seq {
            Some(_) => Some(Box::new(EngagementRow::decode(&Prefixed { row, prefix: "e_" })?)),
            None => None,
        };
        let (_, retry, envelope) = rows::envelope(row)?;
        Ok(Self { known: KnownJob { job, engagement }, retry, envelope })
    }
}

/// Claims; `token` is how the tokens begin. The statement commits itself, and what follows it belongs to the transaction
/// of the session.
///
/// # Errors
/// [`CommitError::Unknown`] when it may have taken jobs whose names did not arrive.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    request: &ClaimRequest,
    token: &str,
    definitions: &mut Definitions,
) -> Result<ClaimOutcome, CommitError> {
    let queues = as_json(&request.queues).map_err(CommitError::Failed)?;
    let tags = request.runtime_tags.as_ref().map(as_json).transpose().map_err(CommitError::Failed)?;
    let values = [
        request.kind.as_str().into(),
        queues.as_str().into(),
        limit(request.limit).into(),
        request.now.0.into(),
        request.tenant.as_deref().into(),
        tags.as_deref().into(),
        (!request.worker_id.is_empty()).then_some(request.worker_id.as_str()).into(),
        request.lease_ms.into(),
        token.into(),
    ];
    let rows = session.rows_alone("claim jobs", &sql::UPDATE_CLAIMED_JOBS, Args::Values(&values)).await?;
    let rule = rows.first().map_or(Ok(0), |row| get::<i64>(row, "rule"));
    match rule.map_err(|error| CommitError::Unknown(error.into()))? {
        0 => Box::pin(taken(session, unit, request, definitions, &rows)).await.map_err(CommitError::Unknown),
        rule => Ok(ClaimOutcome::Ruled(rule == 1)),
    }
}

/// Makes claims of what was taken.
async fn taken(
    session: &mut Session,
    unit: &mut Unit,
    request: &ClaimRequest,
    definitions: &mut Definitions,
    rows: &[Row],
) -> Result<ClaimOutcome, StoreError> {
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    for row in rows {
        let Some(token) = get::<Option<String>>(row, "lease_token")? else { continue };
        match TakenJob::decode(row) {
            Ok(taken) => found.push(taken),
            Err(error) => {
                tracing::error!(error = %StoreError::from(error), "a job that cannot be read is given back");
                damaged.push(token);
            }
        }
    }
    let mut agents = HashMap::new();
    let mut sent = Vec::with_capacity(found.len());
    for TakenJob { known, retry, envelope } in found {
        let (seq, token) = (known.job.seq, known.job.lease_token.clone());
        let digest = known.engagement.as_ref().map(|row| row.digest.clone());
        unit.take_claimed(known, request);
        sent.push((seq, token, retry, envelope));
        let Some(digest) = digest else { continue };
        match definitions.get(session, &digest).await {
            Ok(agent) => drop(agents.insert(seq, agent)),
            Err(error @ (StoreError::Unreadable { .. } | StoreError::Inconsistent { .. })) => {
                tracing::error!(%error, "an agent cannot be read; its job is given back");
                damaged.extend(unit.job(seq).and_then(|job| job.lease_token.clone()));
            }
            Err(error) => return Err(error),
        }
    }
    let jobs = sent.iter().filter_map(|(seq, ..)| unit.job(*seq));
    let mut done = past::read(session, unit, jobs, |seq, error| {
        tracing::error!(error = %StoreError::from(error), "a job whose checkpoints cannot be read is given back");
        damaged.extend(unit.job(seq).and_then(|job| job.lease_token.clone()));
    })
    .await?;
    let mut batch = ClaimBatch::default();
    for (seq, token, retry, envelope) in sent {
        if token.is_some_and(|token| damaged.contains(&token)) {
            unit.distrust(seq);
            continue;
        }
        let done = done.remove(&seq).unwrap_or_default();
        batch.claims.extend(super::claimed(unit, seq, retry, envelope, done, agents.remove(&seq)));
        batch.rows.extend(unit.job(seq).filter(|job| job.engagement_seq.is_none()).cloned());
    }
    if damaged.is_empty() {
        return Ok(ClaimOutcome::Claimed(batch));
    }
    release(session, unit, &damaged.join(" "), request.now).await?;
    Ok(ClaimOutcome::Damaged(batch))
}

/// Gives back what a claim took whose answer was lost; `token` is how its tokens begin.
pub(in crate::engine) async fn give_back(
    session: &mut Session,
    unit: &mut Unit,
    token: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let given = release(session, unit, &format!("{token}-%"), now).await?;
    if given > 0 {
        tracing::warn!(jobs = given, "the answer of a claim was lost; its jobs are given back");
    }
    Ok(())
}

/// Gives jobs back without reading them; `tokens` are LIKE patterns.
async fn release(
    session: &mut Session,
    unit: &mut Unit,
    tokens: &str,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let values = [tokens.into(), now.0.into()];
    let given =
        read(session, "give jobs back", &sql::UPDATE_RELEASED_JOBS, &values, |row| get::<i64>(row, "jobs"))
            .await?;
    unit.rings.push(Ring::Available);
    Ok(given.first().copied().unwrap_or_default())
}
