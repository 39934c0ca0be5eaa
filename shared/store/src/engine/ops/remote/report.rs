//! Acknowledgements and failures: the ends of leases of workers over HTTP, many in one transaction.

use super::super::{turns, unreadable};
use super::{is_of, is_stale};
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
use turnstone_domain::{JobError, JobId, JobState, Settlement, Timestamp};

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
        let known = known.and_then(|held| held.take(&report.job, |known| is_expected(&known.job, report)));
        match known {
            Some(known) => unit.take_known(known),
            None if unit.seq_of(&report.job).is_some() => {}
            None => {
                ids.extend(report.tenant.is_some().then(|| chosen(report)));
                ids.insert(report.job.clone());
            }
        }
    }
    let ids = ids.into_iter().collect();
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, ids, JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    let mut seqs: Vec<NamedJob> = reports.iter().map(|report| Ok(of_tenant(unit, report))).collect();
    find_chosen(session, unit, reports, &mut seqs).await?;
    let failed = reports.iter().zip(&seqs);
    let failed = failed.filter(|(report, _)| matches!(report.end, ReportedEnd::Failed { .. }));
    let failed = failed.filter_map(|(_, seq)| *seq.as_ref().ok()?).collect();
    let policies = retry_policies(session, failed).await?;
    let mut outcomes = Vec::with_capacity(reports.len());
    for (report, seq) in reports.iter().zip(seqs) {
        outcomes.push(apply_one(unit, report, seq, &policies)?);
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
    let is_stale = is_stale(job, report.token.as_deref());
    is_holder && is_tenant && !is_stale && !is_agent && !matches!(report.end, ReportedEnd::Failed { .. })
}

/// The job of a report, if there is one; or the tenants of several ones that the same worker holds.
type NamedJob = Result<Option<i64>, Vec<String>>;

/// Returns the id of the report, as a client of its tenant chose it.
fn chosen(report: &Report) -> JobId {
    JobId::chosen(report.job.as_str(), report.tenant.as_deref())
}

/// Returns the job of a report that was taken in: of the tenant that the report names, if it names one.
fn of_tenant(unit: &Unit, report: &Report) -> Option<i64> {
    let is_its = |seq: &i64| is_of(unit, *seq, report.tenant.as_deref());
    let by_id = || unit.seq_of(&report.job).filter(is_its);
    unit.seq_of(&chosen(report)).filter(is_its).or_else(by_id)
}

/// Finds the jobs of reports without a tenant whose ids clients chose for their tenants. The worker holds the job; so a job
/// with the id alone, which it does not hold, is another one.
async fn find_chosen(
    session: &mut Session,
    unit: &mut Unit,
    reports: &[&Report],
    seqs: &mut [NamedJob],
) -> Result<(), StoreError> {
    let is_held = |unit: &Unit, report: &Report, seq: i64| {
        let is_its = |job: &JobRow| report.worker.is_none() || job.worker_id == report.worker;
        let holds = |job: &JobRow| is_its(job) && !is_stale(job, report.token.as_deref());
        unit.job(seq).is_some_and(|job| job.state == JobState::Active && holds(job))
    };
    let is_open = |(report, seq): &(&&Report, &NamedJob)| {
        report.tenant.is_none() && !matches!(seq, Ok(Some(seq)) if is_held(unit, report, *seq))
    };
    let open: BTreeSet<JobId> =
        reports.iter().zip(seqs.iter()).filter(is_open).map(|(report, _)| report.job.clone()).collect();
    if open.is_empty() {
        return Ok(());
    }
    let keys = open.iter().cloned().collect();
    let rows = read_by(session, "read jobs", &sql::LOCK_CHOSEN_JOBS, keys, JobRow::decode).await?;
    let found: Vec<(String, i64)> = rows.iter().map(|row| (row.id.to_string(), row.seq)).collect();
    unit.take_in(session, rows).await?;
    for (report, seq) in reports.iter().zip(seqs).filter(|(report, _)| open.contains(&report.job)) {
        let is_its = |(id, other): &&(String, i64)| *id == report.job.0 && is_held(unit, report, *other);
        let held: Vec<i64> = found.iter().filter(is_its).map(|(_, other)| *other).collect();
        match held.as_slice() {
            [] => {}
            [one] => *seq = Ok(Some(*one)),
            several => {
                let tenants = several.iter().filter_map(|seq| unit.job(*seq)?.tenant.clone());
                *seq = Err(tenants.collect());
            }
        }
    }
    Ok(())
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
    found: NamedJob,
    policies: &Policies,
) -> Result<RemoteOutcome<JobRow>, StoreError> {
    let known = match found {
        Ok(known) => known,
        Err(tenants) => return Ok(RemoteOutcome::OfSeveralTenants(tenants)),
    };
    let Some((seq, job)) = known.and_then(|seq| Some((seq, unit.job(seq)?))) else {
        return Ok(RemoteOutcome::NotFound);
    };
    if job.state != JobState::Active {
        // The token is that of an attempt which is over, and another attempt may follow.
        let is_over = report.token.is_some() && !job.state.is_terminal();
        return Ok(if is_over { RemoteOutcome::StaleLease } else { RemoteOutcome::WrongState(job.state) });
    }
    if job.engagement_seq.is_some() {
        return Ok(RemoteOutcome::NotForYou);
    }
    if let (Some(holder), Some(worker)) = (&job.worker_id, &report.worker)
        && holder != worker
    {
        return Ok(RemoteOutcome::NotYours { holder: holder.clone() });
    }
    if is_stale(job, report.token.as_deref()) {
        return Ok(RemoteOutcome::StaleLease);
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
