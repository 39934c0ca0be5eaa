//! Occurrences of an entry become jobs, in the transaction that moves the entry on.

use super::super::{cancel, leader, push};
use super::owner;
use crate::engine::rows::{CronCount, CronRunRow, JobRow};
use crate::engine::session::{Arg, Args, Session};
use crate::engine::statement::{Writes, execute, read, read_by};
use crate::engine::unit::Unit;
use crate::{Firing, StoreError, Term, sql};
use std::borrow::Cow;
use turnstone_domain::cron::{CronEntry, CronRun, Outcome, Overlap};
use turnstone_domain::event::{CronOccurrence, EventBody};
use turnstone_domain::terms::RateLimit;
use turnstone_domain::{Ids, JobId, NewJob, Timestamp};

/// Occurrences that are remembered of each entry.
const REMEMBERED: i64 = 100;

/// Acts upon due occurrences; `None` when another process has moved the entry on. Refused when the term is over.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    firing: &Firing,
    term: &Term,
    ids: &dyn Ids,
) -> Result<Result<Option<usize>, StoreError>, StoreError> {
    if !leader::holds(session, term).await? {
        return Ok(Err(StoreError::Deposed));
    }
    let Firing { entry, due, next_run_at, at } = firing;
    let read_at = entry.next_run_at.map(|at| at.0);
    let values = [
        owner(entry).into(),
        entry.name.as_str().into(),
        Arg::Int(read_at),
        Arg::Int(next_run_at.map(|at| at.0)),
    ];
    if session.execute("move a cron entry on", &sql::UPDATE_CRON_NEXT_RUN, Args::Values(&values)).await? == 0
    {
        return Ok(Ok(None));
    }
    let mut runs = Vec::with_capacity(due.len());
    for (scheduled_at, job) in due {
        let run = |outcome, job_id, message| CronRun {
            scheduled_at: *scheduled_at,
            at: *at,
            outcome,
            job_id,
            message,
        };
        runs.push(match job {
            Err(why) => run(Outcome::Failed, None, Some(why.clone())),
            Ok(job) => match occur(session, unit, entry, job, *scheduled_at, *at).await? {
                Occurred::Made(made) => run(Outcome::Triggered, Some(made), None),
                Occurred::Skipped(other) => run(Outcome::Skipped, Some(other), None),
                Occurred::Refused(why) => run(Outcome::Failed, None, Some(why.to_string())),
            },
        });
    }
    remember(session, entry, &runs, ids).await?;
    Ok(Ok(Some(runs.iter().filter(|run| run.outcome == Outcome::Triggered).count())))
}

/// Makes a job now, without regard to the overlap policy. The inner error is the caller's alone.
pub(in crate::engine) async fn trigger(
    session: &mut Session,
    unit: &mut Unit,
    entry: &CronEntry,
    job: &NewJob,
    at: Timestamp,
    ids: &dyn Ids,
) -> Result<Result<JobId, StoreError>, StoreError> {
    let made = match make(session, unit, entry, job, at, at).await? {
        Ok(made) => made,
        Err(refused) => return Ok(Err(refused)),
    };
    let (outcome, job_id) = (Outcome::Triggered, Some(made.clone()));
    remember(session, entry, &[CronRun { scheduled_at: at, at, outcome, job_id, message: None }], ids)
        .await?;
    Ok(Ok(made))
}

enum Occurred {
    Made(JobId),
    Skipped(JobId),
    Refused(StoreError),
}

fn occurrence(entry: &CronEntry, scheduled_at: Timestamp) -> CronOccurrence {
    CronOccurrence { cron_name: entry.name.clone(), scheduled_at: scheduled_at.to_rfc3339() }
}

/// One occurrence under the overlap policy (OJS cron §5).
async fn occur(
    session: &mut Session,
    unit: &mut Unit,
    entry: &CronEntry,
    job: &NewJob,
    scheduled_at: Timestamp,
    at: Timestamp,
) -> Result<Occurred, StoreError> {
    let mut job = Cow::Borrowed(job);
    match entry.overlap {
        Overlap::Allow => {}
        Overlap::Skip => {
            let living = living(session, entry, &job).await?;
            if let Some(first) = living.first().map(|first| (first.seq, first.id.clone())) {
                let mut own = Unit::default();
                own.take_in(session, living).await?;
                let occurrence = occurrence(entry, scheduled_at);
                own.note(first.0, EventBody::CronSkipped(occurrence), at)?;
                own.flush(session).await?;
                absorb(unit, own);
                return Ok(Occurred::Skipped(first.1));
            }
        }
        Overlap::CancelPrevious => {
            let living = living(session, entry, &job).await?;
            let seqs: Vec<i64> = living.iter().map(|job| job.seq).collect();
            let mut own = Unit::default();
            own.take_in(session, living).await?;
            for seq in seqs {
                cancel::end(session, &mut own, seq, at).await?;
            }
            own.flush(session).await?;
            absorb(unit, own);
        }
        // One at a time: what keeps them apart is a limit like any other.
        Overlap::Enqueue => {
            let own = || RateLimit {
                key: Some(format!("cron:{}:{}", owner(entry), entry.name)),
                concurrency: Some(1),
                ..RateLimit::default()
            };
            job.to_mut().terms.rate_limit.get_or_insert_with(own);
        }
    }
    Ok(match make(session, unit, entry, &job, scheduled_at, at).await? {
        Ok(made) => Occurred::Made(made),
        Err(refused) => Occurred::Refused(refused),
    })
}

/// Jobs of the entry that have not ended; a template may give them to a tenant that the entry does not belong to.
async fn living(session: &mut Session, entry: &CronEntry, job: &NewJob) -> Result<Vec<JobRow>, StoreError> {
    let tenant = job.terms.tenant.as_deref().unwrap_or_default();
    let values = [entry.name.as_str().into(), tenant.into()];
    read(session, "look for jobs of a cron entry", &sql::LOCK_JOBS_OF_CRON, &values, JobRow::decode).await
}

/// Pushes the job and records the event. The inner error is that of the push.
async fn make(
    session: &mut Session,
    unit: &mut Unit,
    entry: &CronEntry,
    job: &NewJob,
    scheduled_at: Timestamp,
    at: Timestamp,
) -> Result<Result<JobId, StoreError>, StoreError> {
    let mut own = Unit::default();
    let pushed = push::apply(session, &mut own, &[std::slice::from_ref(job)], None).await?;
    absorb(unit, own);
    let pushed = match pushed.into_iter().next() {
        Some(Err(refused)) => return Ok(Err(refused)),
        Some(Ok(pushed)) => pushed.into_iter().next().map(|pushed| pushed.id),
        None => None,
    };
    let (action, ids) = ("read a job", vec![job.id.clone()]);
    let rows = read_by(session, action, &sql::LOCK_JOBS, ids, JobRow::decode).await?;
    let mut own = Unit::default();
    own.take_in(session, rows).await?;
    // Absent when an existing unique job replaced this one.
    if let Some(seq) = own.seq_of(&job.id) {
        let occurrence = occurrence(entry, scheduled_at);
        own.note(seq, EventBody::CronTriggered(occurrence), at)?;
    }
    own.flush(session).await?;
    absorb(unit, own);
    Ok(Ok(pushed.unwrap_or_else(|| job.id.clone())))
}

/// Takes over what a separate unit leaves to be done after the commit.
fn absorb(unit: &mut Unit, mut own: Unit) {
    unit.rings.append(&mut own.rings);
    unit.ended.append(&mut own.ended);
    unit.tree_ends.append(&mut own.tree_ends);
}

/// Counts the jobs that were made and keeps the latest occurrences.
async fn remember(
    session: &mut Session,
    entry: &CronEntry,
    runs: &[CronRun],
    ids: &dyn Ids,
) -> Result<(), StoreError> {
    let Some(latest) = runs.last() else { return Ok(()) };
    let row = |run: &CronRun| CronRunRow {
        id: ids.next(),
        tenant: owner(entry).to_owned(),
        name: entry.name.clone(),
        scheduled_at: run.scheduled_at,
        at: run.at,
        outcome: run.outcome,
        job_id: run.job_id.clone(),
        message: run.message.clone(),
    };
    let mut writes = Writes::default();
    writes.insert("remember runs of a cron entry", runs.iter().map(row).collect());
    writes.run(session).await?;
    let values = [owner(entry).into(), entry.name.as_str().into(), REMEMBERED.into()];
    session.execute("forget old runs of a cron entry", &sql::DELETE_CRON_RUNS, Args::Values(&values)).await?;
    let made: Vec<&CronRun> = runs.iter().filter(|run| run.outcome == Outcome::Triggered).collect();
    let count = CronCount {
        tenant: owner(entry).to_owned(),
        name: entry.name.clone(),
        made: i64::try_from(made.len()).unwrap_or(i64::MAX),
        last_job_id: made.last().and_then(|run| run.job_id.clone()),
        at: latest.at,
        last_error: latest.message.clone(),
    };
    let (action, text) = ("count runs of a cron entry", &sql::UPDATE_CRON_COUNTS);
    execute(session, action, text, vec![count], &[]).await.map(|_| ())
}
