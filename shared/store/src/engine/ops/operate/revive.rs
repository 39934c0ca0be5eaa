//! A job is tried again because an operator says so: `discarded → available` from its first attempt, `retryable →
//! available` before its time.

use super::super::admission;
use crate::engine::columns::Columns;
use crate::engine::rows::{QueueName, get};
use crate::engine::session::{Arg, Args, Row, Session};
use crate::engine::statement::{Writes, as_json, execute, read};
use crate::engine::unit::Unit;
use crate::{ActionOutcome, Ring, StoreError, sql};
use std::collections::BTreeMap;
use turnstone_domain::event::{EventBody, Reason};
use turnstone_domain::state::Trigger;
use turnstone_domain::{JobId, JobState, Overrides, Timestamp};

/// Tries one job again: id, tenant, and whether it has to be a dead letter.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    (id, tenant, dead_letter): (&JobId, Option<&str>, bool),
    overrides: &Overrides,
    at: Timestamp,
) -> Result<ActionOutcome, StoreError> {
    let Some(seq) = unit.read_job(session, id, tenant).await? else { return Ok(ActionOutcome::NotFound) };
    let Some(job) = unit.job(seq) else { return Ok(ActionOutcome::NotFound) };
    let previous = job.state;
    if dead_letter && !job.is_dead_letter() {
        return Ok(ActionOutcome::NotFound);
    }
    match again(session, unit, seq, (overrides, &mut Revived::new()), at).await? {
        Again::Done => {}
        Again::Not => return Ok(ActionOutcome::Refused(previous)),
        Again::Alike(other) => return Ok(ActionOutcome::NotUnique(other)),
    }
    unit.flush(session).await?;
    Ok(ActionOutcome::Done { previous })
}

/// The outcome of trying a job again.
pub(super) enum Again {
    /// It is available.
    Done,
    /// Its state does not allow it.
    Not,
    /// It has to be unique, and this one lives.
    Alike(JobId),
}

/// Jobs that live again since this transaction began, by what of them has to be unique.
pub(super) type Revived = BTreeMap<String, JobId>;

/// Returns the living job that forbids a job that has ended to live again (OJS unique jobs §3). No other process
/// may make one before this transaction ends.
async fn alike(
    session: &mut Session,
    (seq, id): (i64, JobId),
    revived: &mut Revived,
) -> Result<Option<JobId>, StoreError> {
    let decode = |row: &Row| Ok((get::<String>(row, "unique_key")?, get::<Option<String>>(row, "id")?));
    let (action, text) = ("look for a job that is alike", &sql::SELECT_LIVING_DUPLICATE);
    let Some((key, _)) = read(session, action, text, &[seq.into()], decode).await?.pop() else {
        return Ok(None);
    };
    let text_of_keys = &sql::LOCK_UNIQUE_KEYS;
    let keys = Args::Rows(Columns::of(vec![key.clone()], text_of_keys)?, &[]);
    session.rows("lock unique keys", text_of_keys, keys).await?;
    let found = read(session, action, text, &[seq.into()], decode).await?.pop().and_then(|(_, other)| other);
    if let Some(other) = found.map(JobId).or_else(|| revived.get(&key).cloned()) {
        return Ok(Some(other));
    }
    revived.insert(key, id);
    Ok(None)
}

/// Returns true when the engagement of a job got a further input after it.
async fn has_later(session: &mut Session, seq: i64) -> Result<bool, StoreError> {
    let (action, text) = ("look for further inputs", &sql::SELECT_LATER_INPUT);
    let later = read(session, action, text, &[seq.into()], |row| get::<i64>(row, "later")).await?;
    Ok(later.into_iter().any(|later| later > 0))
}

/// Makes a job that was taken in available. The caller flushes the unit before the next job of the same key.
///
/// # Errors
/// [`StoreError::NotRegistered`] for an import that may not run here; nothing was written then.
pub(super) async fn again(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    (overrides, revived): (&Overrides, &mut Revived),
    at: Timestamp,
) -> Result<Again, StoreError> {
    if let Some(job) = unit.job(seq)
        && matches!(job.state, JobState::Discarded | JobState::Retryable)
        && let Some(row) = unit.engagement_of(seq)
    {
        admission::admit_again(session, (row.seq, &row.digest), job.tenant.as_deref()).await?;
    }
    let job = unit.change_job(seq)?;
    match job.state {
        JobState::Retryable => job.step(Trigger::RetryDue, at)?,
        // The conversation has gone on without it.
        JobState::Discarded if has_later(session, seq).await? => return Ok(Again::Not),
        JobState::Discarded => {
            let job = unit.change_job(seq)?;
            if let Some(other) = alike(session, (seq, job.id.clone()), revived).await? {
                return Ok(Again::Alike(other));
            }
            let job = unit.change_job(seq)?;
            job.step(Trigger::Revive, at)?;
            job.attempt = 0;
            job.failures = 0;
            job.lapses = 0;
            job.started_at = None;
            job.retry_delay_ms = None;
            if let Some(position) = &mut job.position {
                (position.asks, position.raise_until, position.outages) = (None, None, 0);
            }
            execute(session, "forget errors", &sql::DELETE_ERRORS, vec![seq], &[]).await?;
            // Reviews that were rejected, or expired, are asked again.
            let of_job = [seq.into()];
            session.execute("ask reviewers anew", &sql::UPDATE_SPENT_REVIEWS, Args::Values(&of_job)).await?;
        }
        _ => return Ok(Again::Not),
    }
    let job = unit.change_job(seq)?;
    job.run_at = at;
    let queue = overrides.queue.as_deref().unwrap_or(&job.queue).to_owned();
    let values = [
        seq.into(),
        queue.as_str().into(),
        overrides.priority.unwrap_or(job.priority).into(),
        Arg::Int(overrides.timeout_ms.or(job.timeout_ms)),
        // What had to end before a time that has passed would end again at once.
        Arg::Int(job.expires_at.filter(|expires_at| *expires_at > at).map(|expires_at| expires_at.0)),
    ];
    session.execute("try a job again", &sql::UPDATE_REVIVED_JOB, Args::Values(&values)).await?;
    if queue != job.queue {
        let mut writes = Writes::default();
        writes.insert_missing("remember queues", vec![QueueName { name: queue.to_owned(), created_at: at }]);
        writes.run(session).await?;
    }
    if let Some(policy) = &overrides.retry {
        let policy = as_json(policy)?;
        let values = [seq.into(), policy.as_str().into()];
        session.execute("change a retry policy", &sql::UPDATE_ENVELOPE_RETRY, Args::Values(&values)).await?;
    }
    unit.note(seq, EventBody::JobAvailable(Reason::of("manual_retry")), at)?;
    unit.rings.push(Ring::Available);
    Ok(Again::Done)
}
