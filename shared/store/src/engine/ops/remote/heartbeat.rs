//! Heartbeats: a worker is alive, its reservations are renewed, and it receives its directive (OJS worker protocol
//! §4).

use super::{is_of, is_stale};
use crate::engine::rows::{self, JobRow};
use crate::engine::session::{Arg, Args, Row, Session};
use crate::engine::statement::{read, read_by};
use crate::engine::unit::Unit;
use crate::{
    DEFAULT_VISIBILITY_MS, Directive, Heartbeat, HeartbeatAnswer, HeartbeatOutcome, Ring, StoreError,
    WorkerBeat, WorkerKind, WorkerState, sql,
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use turnstone_domain::{JobId, JobState};

/// The inner error is the caller's alone: its name is taken. A beat with a token of another lease changes nothing.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    beat: &Heartbeat,
) -> Result<Result<HeartbeatOutcome, StoreError>, StoreError> {
    let held = held(session, unit, beat).await?;
    let is_held =
        |id: &&String| held.iter().any(|seq| unit.job(*seq).is_some_and(|job| job.id.shown() == **id));
    let stale: Vec<String> = beat.tokens.keys().filter(|id| !is_held(id)).cloned().collect();
    if !stale.is_empty() {
        return Ok(Ok(HeartbeatOutcome::Stale(stale)));
    }
    let values = [
        beat.worker.as_str().into(),
        Arg::Int(beat.busy),
        beat.state.map(WorkerState::as_str).into(),
        beat.at.0.into(),
    ];
    session.execute("hear of a worker", &sql::INSERT_WORKER, Args::Values(&values)).await?;
    let name = [beat.worker.as_str().into()];
    let heard =
        read(session, "look for a worker", &sql::SELECT_WORKERS, &name, rows::decode::<WorkerBeat>).await?;
    let worker = match heard.into_iter().next() {
        Some(worker) if worker.kind == WorkerKind::Http => worker,
        other => return Ok(Err(taken(beat, other))),
    };
    let extended = extend(unit, held, beat)?;
    let directive = match worker.directive {
        Some(directive) => Some(directive),
        None => asked_by_jobs(session, unit, &extended).await?,
    };
    unit.flush(session).await?;
    Ok(Ok(HeartbeatOutcome::Heard(HeartbeatAnswer { state: worker.state, directive, extended })))
}

fn taken(beat: &Heartbeat, other: Option<WorkerBeat>) -> StoreError {
    StoreError::WorkerNameTaken {
        name: beat.worker.clone(),
        host: other.as_ref().map_or_else(|| "an unknown host".to_owned(), |other| other.host.clone()),
        pid: other.map_or(0, |other| other.pid),
    }
}

/// Reads the named jobs that this worker holds, each with the lease of its token if the beat has one.
async fn held(session: &mut Session, unit: &mut Unit, beat: &Heartbeat) -> Result<Vec<i64>, StoreError> {
    let held = |unit: &Unit, seq: i64| {
        unit.job(seq).is_some_and(|job| {
            job.state == JobState::Active
                && job.engagement_seq.is_none()
                && job.worker_id.as_ref().is_none_or(|holder| *holder == beat.worker)
                && !is_stale(job, beat.tokens.get(job.id.shown()).map(String::as_str))
        }) && is_of(unit, seq, beat.tenant.as_deref())
    };
    let tenant = beat.tenant.as_deref();
    let named = beat.jobs.iter().flat_map(|id| [id.clone(), JobId::chosen(id.as_str(), tenant)]);
    let named: BTreeSet<JobId> = named.collect();
    let rows =
        read_by(session, "read jobs", &sql::LOCK_JOBS, named.into_iter().collect(), JobRow::decode).await?;
    let mut seqs: Vec<i64> = rows.iter().map(|job| job.seq).collect();
    unit.take_in(session, rows).await?;
    seqs.retain(|seq| held(unit, *seq));
    let is_held = |id: &JobId| seqs.iter().any(|seq| unit.job(*seq).is_some_and(|job| job.id == *id));
    let open: BTreeSet<JobId> =
        beat.jobs.iter().filter(|id| tenant.is_none() && !is_held(id)).cloned().collect();
    if !open.is_empty() {
        // Their clients may have chosen the ids for their tenants.
        let keys = open.into_iter().collect();
        let rows = read_by(session, "read jobs", &sql::LOCK_CHOSEN_JOBS, keys, JobRow::decode).await?;
        seqs.extend(rows.iter().map(|job| job.seq));
        unit.take_in(session, rows).await?;
        seqs.retain(|seq| held(unit, *seq));
    }
    Ok(seqs)
}

/// Renews the reservations of these jobs.
fn extend(unit: &mut Unit, mut seqs: Vec<i64>, beat: &Heartbeat) -> Result<Vec<JobId>, StoreError> {
    let mut extended = Vec::new();
    let place = |seq: &i64| {
        let shown = unit.job(*seq).map(|job| job.id.to_string());
        beat.jobs.iter().position(|id| shown.as_deref() == Some(id.shown()))
    };
    seqs.sort_by_key(place);
    for seq in seqs {
        let job = unit.change_job(seq)?;
        let duration = beat.visibility_ms.or(job.lease_ms).unwrap_or(DEFAULT_VISIBILITY_MS);
        job.lease_expires_at = Some(beat.at.plus_ms(duration));
        if job.lease_ms.replace(duration) != Some(duration) {
            // The scheduler compares the end of a lease with its length, which has to be written as well.
            job.moved = true;
        }
        extended.push(job.id.clone());
    }
    if beat.visibility_ms.is_some() && !extended.is_empty() {
        unit.rings.push(Ring::Due);
    }
    Ok(extended)
}

/// Returns the directive in the meta of one of its jobs: `test_directive`, with which clients test how their
/// workers stop.
async fn asked_by_jobs(
    session: &mut Session,
    unit: &Unit,
    held: &[JobId],
) -> Result<Option<Directive>, StoreError> {
    let keys = held.iter().filter_map(|id| unit.seq_of(id)).collect();
    let decode = |row: &Row| rows::json::<Map<String, Value>>(row, "meta");
    let metas = read_by(session, "read directives", &sql::SELECT_DIRECTIVES_BY_JOB, keys, decode).await?;
    let requested = |meta: &Map<String, Value>| Directive::parse(meta.get("test_directive")?.as_str()?);
    Ok(metas.iter().find_map(requested))
}
