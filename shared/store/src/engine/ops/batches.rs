//! Batches: closed by a client, ended by the scheduler.

use super::super::batches::of_closed;
use super::super::journal::Journal;
use super::super::rows::get;
use super::super::session::{Args, Row, Session, limit as row_limit};
use super::super::statement::{Writes, read, read_readable};
use super::super::unit::Unit;
use super::push;
use crate::{Ring, StoreError, sql};
use turnstone_domain::event::{BatchOutcome, EventBody};
use turnstone_domain::{JobState, Timestamp};

/// Closes the batch of a tag; returns false when no job has it.
pub(in super::super) async fn close(
    session: &mut Session,
    tag: &str,
    tenant: Option<&str>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let values = [tag.into(), tenant.into()];
    let found =
        read(session, "look for a batch", &sql::SELECT_BATCH_JOB, &values, |row| get::<i64>(row, "job_seq"));
    if found.await?.is_empty() {
        return Ok(false);
    }
    let values = [tag.into(), tenant.unwrap_or_default().into(), now.0.into()];
    session.execute("close a batch", &sql::INSERT_BATCH, Args::Values(&values)).await?;
    Ok(true)
}

/// Notes the end of closed batches whose jobs have all ended, each with an event.
pub(in super::super) async fn end(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let decode = |row: &Row| Ok((get::<String>(row, "tag")?, get::<String>(row, "tenant")?));
    let values = [row_limit(limit).into()];
    // A damaged row keeps no other batch from its end.
    let (action, text) = ("look for ended batches", &sql::LOCK_ENDED_BATCHES);
    let ended = read_readable(session, action, text, &values, decode).await?;
    for (tag, tenant) in &ended {
        let number = push::number(session).await?;
        let (mut journal, mut writes) = (Journal::default(), Writes::default());
        journal.lone(number, &EventBody::BatchEnded(outcome(session, tag, tenant).await?), now);
        journal.flush(session, &mut writes)?;
        writes.run(session).await?;
        let values = [tag.as_str().into(), tenant.as_str().into(), number.into(), now.0.into()];
        session.execute("end a batch", &sql::UPDATE_ENDED_BATCH, Args::Values(&values)).await?;
        unit.rings.push(Ring::Events(tag.clone()));
    }
    Ok(ended.len())
}

/// Returns the data of the event: how many jobs ended in each state.
async fn outcome(session: &mut Session, tag: &str, tenant: &str) -> Result<BatchOutcome, StoreError> {
    let decode = |row: &Row| Ok((get::<JobState>(row, "state")?, get::<i64>(row, "jobs")?));
    let (action, values) = ("count jobs of a batch", of_closed(tag, tenant));
    let states = read(session, action, &sql::SELECT_BATCH_STATES, &values, decode).await?;
    let of = |state: JobState| states.iter().find(|(found, _)| *found == state).map_or(0, |(_, jobs)| *jobs);
    Ok(BatchOutcome {
        subject: tag.to_owned(),
        tag: tag.to_owned(),
        jobs: states.iter().map(|(_, jobs)| jobs).sum(),
        completed: of(JobState::Completed),
        discarded: of(JobState::Discarded),
        cancelled: of(JobState::Cancelled),
    })
}
