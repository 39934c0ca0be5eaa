//! Workers report themselves; a name belongs to one of them at a time.

use super::super::rows;
use super::super::session::{Args, Session};
use super::super::statement::{as_json, read};
use super::upkeep::ADOPTED_MS;
use crate::{Directive, StoreError, WorkerBeat, sql};

/// Writes a beat, and returns the directive for the worker. The inner error is the caller's alone: its name is taken.
pub(in super::super) async fn beat(
    session: &mut Session,
    beat: &WorkerBeat,
    silent_ms: i64,
) -> Result<Result<Option<Directive>, StoreError>, StoreError> {
    let queues = as_json(&beat.queues)?;
    let silent_since = beat.seen_at.plus_ms(-silent_ms);
    let values = [
        beat.name.as_str().into(),
        beat.instance.as_str().into(),
        beat.host.as_str().into(),
        beat.pid.into(),
        beat.version.as_str().into(),
        queues.as_str().into(),
        beat.slots.into(),
        beat.busy.into(),
        beat.state.as_str().into(),
        beat.started_at.0.into(),
        beat.seen_at.0.into(),
        silent_since.0.into(),
        beat.seen_at.plus_ms(WorkerBeat::EVERY_MS + ADOPTED_MS).0.into(),
    ];
    let text = &sql::INSERT_WORKER_BEAT;
    if let Some(directive) = read(session, "report a worker", text, &values, rows::directive).await?.pop() {
        return Ok(Ok(directive));
    }
    let name = [beat.name.as_str().into()];
    let mut others =
        read(session, "look for a worker", &sql::SELECT_WORKERS, &name, rows::decode::<WorkerBeat>).await?;
    let other = others.pop();
    Ok(Err(StoreError::WorkerNameTaken {
        name: beat.name.clone(),
        host: other.as_ref().map_or_else(|| "an unknown host".to_owned(), |other| other.host.clone()),
        pid: other.map_or(0, |other| other.pid),
    }))
}

/// Takes a worker off the list.
pub(in super::super) async fn leave(
    session: &mut Session,
    name: &str,
    instance: &str,
) -> Result<(), StoreError> {
    let values = [name.into(), instance.into()];
    session
        .execute("take a worker off the list", &sql::DELETE_WORKER, Args::Values(&values))
        .await
        .map(|_| ())
}
