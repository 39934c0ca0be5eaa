//! Acknowledgements and failures: the ends of leases without a token, many in one transaction.

use super::super::{turns, unreadable};
use super::is_of;
use crate::engine::held::HeldJobs;
use crate::engine::jobs::{Kept, Reported};
use crate::engine::rows::{JobRow, get, json};
use crate::engine::session::{Row, Session};
use crate::engine::statement::{look_by, read_by};
use crate::engine::unit::Unit;
use crate::{RemoteOutcome, Report, ReportedEnd, StoreError, sql};
use std::collections::{BTreeSet, HashMap};
use turnstone_domain::event::{EventBody, Reason};
use turnstone_domain::ids::fraction;
use turnstone_domain::retry::{Decision, RetryPolicy};
use turnstone_domain::state::Trigger;
use turnstone_domain::{JobError, JobState, Settlement, Timestamp};

/// Applies all reports; each gets its own answer, and one that is refused writes nothing. Of two about the same job the
/// first counts. What is `known` is not read again; if it is no longer so, the whole of it fails, and has to be tried without.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    reports: &[&Report],
    known: Option<&HeldJobs>,
) -> Result<Vec<RemoteOutcome<Reported>>, StoreError> {
    let mut ids = BTreeSet::new();
    for report in reports {
        let known = known.and_then(|held| held.take(&report.job, |job| is_expected(job, report)));
        match known {
            Some(known) => unit.take_known(known),
            None if unit.seq_of(&report.job).is_some() => {}
            None => drop(ids.insert(report.job.clone())),
        }
    }
    let ids = ids.into_iter().collect();
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, ids, JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    let failed = reports.iter().filter(|report| matches!(report.end, ReportedEnd::Failed { .. }));
    let failed = failed.filter_map(|report| unit.seq_of(&report.job)).collect();
    let policies = retry_policies(session, failed).await?;
    let mut outcomes = Vec::with_capacity(reports.len());
    for report in reports {
        outcomes.push(apply_one(unit, report, &policies)?);
    }
    let mut kept = kept(session, reports, &outcomes).await?;
    unit.flush(session).await?;
    let mut reported = |row: JobRow| Reported { kept: kept.remove(&row.seq), row };
    Ok(outcomes.into_iter().map(|outcome| outcome.map(&mut reported)).collect())
}

/// Returns the rows of acknowledged jobs, for their answers: one read for all. A job that failed before, or is the
/// step of a workflow, has more, which is read after the commit. So is a job that cannot be read.
async fn kept(
    session: &mut Session,
    reports: &[&Report],
    outcomes: &[RemoteOutcome<JobRow>],
) -> Result<HashMap<i64, Kept>, StoreError> {
    let acknowledged = |(report, outcome): (&&Report, &RemoteOutcome<JobRow>)| match (&report.end, outcome) {
        (ReportedEnd::Done { result }, RemoteOutcome::Done(row)) if row.workflow.is_none() => {
            Some((row.seq, result.clone()))
        }
        _ => None,
    };
    let mut results: HashMap<i64, _> = reports.iter().zip(outcomes).filter_map(acknowledged).collect();
    if results.is_empty() {
        return Ok(HashMap::new());
    }
    let keys = results.keys().copied().collect();
    // One that cannot be read is read again after the commit.
    let decode = |row: &Row| Ok(Kept::decode(row).ok().flatten());
    let (action, text) = ("read what is acknowledged", &sql::SELECT_PARTS_OF_JOBS);
    let found = look_by(session, action, text, keys, &[], decode).await?;
    let mut whole: HashMap<i64, Kept> = found.into_iter().flatten().collect();
    for (seq, kept) in &mut whole {
        kept.result = results.remove(seq);
    }
    Ok(whole)
}

/// Returns true when a report fits the job as it is known; a refusal has to read the job. A failure adds two
/// events. Events of other processes are noticed only when one number is given twice.
fn is_expected(job: &JobRow, report: &Report) -> bool {
    let is_holder = job.worker_id.is_none() || report.worker.is_none() || job.worker_id == report.worker;
    let is_tenant = report.tenant.is_none() || job.tenant == report.tenant;
    let is_agent = job.engagement_seq.is_some();
    is_holder && is_tenant && !is_agent && !matches!(report.end, ReportedEnd::Failed { .. })
}

/// When and how often jobs are tried again, and why that cannot be read of some.
pub(in super::super) type Policies = HashMap<i64, Result<RetryPolicy, String>>;

/// When and how often these jobs are tried again.
pub(in super::super) async fn retry_policies(
    session: &mut Session,
    seqs: Vec<i64>,
) -> Result<Policies, StoreError> {
    let decode = |row: &Row| {
        let policy = json(row, "retry").map_err(|wrong| StoreError::from(wrong).to_string());
        Ok((get(row, "job_seq")?, policy))
    };
    let policies = read_by(session, "read retry policies", &sql::SELECT_RETRIES_BY_JOB, seqs, decode).await?;
    Ok(policies.into_iter().collect())
}

fn apply_one(
    unit: &mut Unit,
    report: &Report,
    policies: &Policies,
) -> Result<RemoteOutcome<JobRow>, StoreError> {
    let known = unit.seq_of(&report.job).filter(|seq| is_of(unit, *seq, report.tenant.as_deref()));
    let Some((seq, job)) = known.and_then(|seq| Some((seq, unit.job(seq)?))) else {
        return Ok(RemoteOutcome::NotFound);
    };
    if job.state != JobState::Active {
        return Ok(RemoteOutcome::WrongState(job.state));
    }
    if job.engagement_seq.is_some() {
        return Ok(RemoteOutcome::NotForYou);
    }
    if let (Some(holder), Some(worker)) = (&job.worker_id, &report.worker)
        && holder != worker
    {
        return Ok(RemoteOutcome::NotYours { holder: holder.clone() });
    }
    match &report.end {
        ReportedEnd::Done { result } => {
            turns::settle(
                unit,
                seq,
                &Settlement::Complete { result: result.clone(), withheld: false },
                report.at,
            )?;
        }
        ReportedEnd::Failed { error } => {
            match policies.get(&seq).cloned().unwrap_or_else(|| Ok(RetryPolicy::default())) {
                Ok(policy) => {
                    let settlement = failure(job, error.clone(), &policy, report.at);
                    turns::settle(unit, seq, &settlement, report.at)?;
                }
                Err(why) => unreadable::discard(unit, seq, &why, report.at)?,
            }
        }
        ReportedEnd::Back => give_back(unit, seq, report.at)?,
    }
    Ok(unit.job(seq).cloned().map_or(RemoteOutcome::NotFound, RemoteOutcome::Done))
}

/// Returns the effect of a failure of this attempt of a plain job.
pub(in super::super) fn failure(
    job: &JobRow,
    error: JobError,
    policy: &RetryPolicy,
    now: Timestamp,
) -> Settlement {
    let attempt = u32::try_from(job.attempt).unwrap_or(u32::MAX);
    let random = job.lease_token.as_deref().map_or(0.5, fraction);
    match policy.decide(attempt, &error, random) {
        Decision::After { delay_ms } => Settlement::Retry { error, run_at: now.plus_ms(delay_ms), delay_ms },
        Decision::Exhausted => Settlement::Discard { error },
    }
}

/// `active → available` as if it had not been fetched.
fn give_back(unit: &mut Unit, seq: i64, now: Timestamp) -> Result<(), StoreError> {
    let job = unit.change_job(seq)?;
    job.step(Trigger::Yield, now)?;
    job.attempt = (job.attempt - 1).max(0);
    unit.note(seq, EventBody::JobYielded(Reason::of("requeued")), now)
}
