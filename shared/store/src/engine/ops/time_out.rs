//! `active → retryable | discarded` for attempts that outlasted their timeout although their worker still lives.

use super::super::rows::{self, JobRow};
use super::super::session::{Session, limit as row_limit};
use super::super::statement::{read, read_by};
use super::super::unit::Unit;
use super::turns;
use crate::{Ring, StoreError, sql};
use std::collections::HashMap;
use turnstone_domain::error::FailureKind;
use turnstone_domain::retry::{Decision, RetryPolicy};
use turnstone_domain::{JobError, Settlement, Timestamp};

/// How much longer than the timeout an attempt may take before the scheduler ends it: a worker that lives does it
/// itself, with a better message.
pub(in super::super) const GRACE_MS: i64 = 5_000;

/// Ends such attempts as failures of the job.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let values = [now.plus_ms(-GRACE_MS).0.into(), row_limit(limit).into()];
    let late = read(session, "look for timeouts", &sql::JOBS_TIMED_OUT, &values, JobRow::decode).await?;
    let seqs: Vec<i64> = late.iter().map(|job| job.seq).collect();
    unit.take_in(session, late).await?;
    let keys = seqs.iter().map(|seq| (*seq,)).collect();
    let decode = |row: &S::Row| rows::envelope(row).map(|(seq, retry, _)| (seq, retry));
    let policies = read_by(session, "read retry policies", &sql::ENVELOPES_BY_JOB, keys, decode).await?;
    let policies: HashMap<i64, RetryPolicy> = policies.into_iter().collect();
    for seq in &seqs {
        let job = unit.change_job(*seq)?;
        let (failures, token) = (job.failures + 1, job.lease_token.clone());
        let timeout = job.timeout_ms.unwrap_or_default();
        let message =
            format!("the attempt took longer than its timeout of {timeout} ms and its worker did not end it");
        let error = JobError::new(FailureKind::Timeout, message);
        let policy = policies.get(seq).cloned().unwrap_or_default();
        // Timed out attempts are rare and apart in time: they need no jitter.
        let settlement = match policy.decide(u32::try_from(failures).unwrap_or(u32::MAX), &error, 0.5) {
            Decision::After { delay_ms } => {
                Settlement::Retry { error, run_at: now.plus_ms(delay_ms), delay_ms }
            }
            Decision::Exhausted => Settlement::Discard { error },
        };
        turns::settle(unit, *seq, &settlement, now)?;
        unit.rings.extend(token.map(Ring::Revoked));
    }
    unit.flush(session).await?;
    Ok(seqs.len())
}
