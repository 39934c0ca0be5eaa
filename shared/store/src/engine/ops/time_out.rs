//! `active → retryable | discarded` for attempts that outlasted their timeout although their worker still lives.

use super::super::rows::JobRow;
use super::super::session::{Arg, Session, limit as row_limit};
use super::super::statement::read;
use super::super::unit::Unit;
use super::upkeep::Moment;
use super::{remote, turns, unreadable};
use crate::{Ring, StoreError, sql};
use turnstone_domain::error::FailureKind;
use turnstone_domain::retry::{Decision, RetryPolicy};
use turnstone_domain::{JobError, Settlement, Timestamp};

/// How much longer than the timeout an attempt of an agent job may take before the scheduler ends it. A living
/// worker ends it itself, with a better message. Only the scheduler ends an attempt of a plain job.
const GRACE_MS: i64 = 5_000;

/// Ends such attempts as failures of the job.
pub(in super::super) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    moment: Moment,
    limit: usize,
) -> Result<usize, StoreError> {
    let now = moment.at;
    let (after, shorter) = moment.step_back();
    let forward = moment.steps_forward().map(Arg::from);
    let given = [now.0.into(), row_limit(limit).into(), GRACE_MS.into()];
    let values: Vec<Arg<'_>> =
        given.into_iter().chain(forward).chain([after.into(), shorter.into()]).collect();
    let late = read(session, "look for timeouts", &sql::LOCK_TIMED_OUT_JOBS, &values, JobRow::decode).await?;
    let seqs: Vec<i64> = late.iter().map(|job| job.seq).collect();
    unit.take_in(session, late).await?;
    let policies = remote::retry_policies(session, seqs.clone()).await?;
    for seq in &seqs {
        let Some(job) = unit.job(*seq) else { continue };
        let token = job.lease_token.clone();
        let timeout = job.timeout_ms.unwrap_or_default();
        let message =
            format!("the attempt took longer than its timeout of {timeout} ms and its worker did not end it");
        let error = JobError::new(FailureKind::Timeout, message);
        let policy = match policies.get(seq).cloned().unwrap_or_else(|| Ok(RetryPolicy::default())) {
            Ok(policy) => policy,
            Err(why) => {
                unreadable::discard(unit, *seq, &why, now)?;
                unit.rings.extend(token.map(Ring::Revoked));
                continue;
            }
        };
        let settlement = if job.engagement_seq.is_none() {
            remote::failure(job, error, &policy, now)
        } else {
            let outages = job.position.as_ref().map_or(0, |position| position.outages);
            let number = policy.number(job.failures, outages, &error);
            of_agent(number, error, &policy, now)
        };
        turns::settle(unit, *seq, &settlement, now)?;
        unit.rings.extend(token.map(Ring::Revoked));
    }
    unit.flush(session).await?;
    Ok(seqs.len())
}

/// Timed out attempts of agent jobs are rare and apart in time: they need no jitter.
fn of_agent(number: u32, error: JobError, policy: &RetryPolicy, now: Timestamp) -> Settlement {
    match policy.decide(number, &error, 0.5) {
        Decision::After { delay_ms } => Settlement::Retry { error, run_at: now.plus_ms(delay_ms), delay_ms },
        Decision::Exhausted => Settlement::Discard { error },
    }
}
