//! Circuit breakers: the writes. A row is locked, its state takes a step, and it is written back. Jobs that a breaker refused
//! wait for it in `breaker_waits` and are released as it closes.

use super::super::rows::{Fields, Inconsistency, JobRow, LeaseKey, NewBreaker, get};
use super::super::session::{Arg, Args, Row, Session, limit as row_limit};
use super::super::statement::{as_json, execute, read, read_by};
use super::super::unit::Unit;
use crate::breakers::{BreakerKey, BreakerStep, Stepped, Trouble};
use crate::{Ring, StoreError, sql};
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::breaker::{BreakerState, Passage};
use turnstone_domain::event::{EventBody, Reason};
use turnstone_domain::state::Trigger;
use turnstone_domain::{JobState, Timestamp};

/// The most jobs that one transaction of a step releases; the scheduler releases the others.
const AT_ONCE: usize = 200;

/// How long after a release the scheduler looks again at a half-open breaker, in milliseconds.
const LOOK_AGAIN_MS: i64 = 1_000;

/// A locked row.
struct Locked {
    name: String,
    state: BreakerState,
    release_at: Option<Timestamp>,
}

fn decode(row: &impl Fields) -> Result<Locked, Inconsistency> {
    let state: String = get(row, "state")?;
    // A state that cannot be read says nothing: the breaker is closed.
    let state = serde_json::from_str(&state).unwrap_or_default();
    Ok(Locked { name: get(row, "name")?, state, release_at: get(row, "release_at")? })
}

/// Reads the list of breakers.
pub(in super::super) fn trouble(row: &impl Fields) -> Result<Trouble, Inconsistency> {
    Ok(Trouble {
        key: BreakerKey::of(get(row, "name")?),
        failures: get(row, "failures")?,
        open_until: get(row, "open_until")?,
    })
}

/// Closes a breaker; returns whether there was anything to close.
pub(in super::super) async fn reset(
    session: &mut Session,
    unit: &mut Unit,
    key: &BreakerKey,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some(row) = lock(session, key).await? else { return Ok(false) };
    let was = !row.state.is_clear();
    let row = Locked { state: BreakerState::default(), ..row };
    release_and_write(session, unit, row, now, AT_ONCE).await?;
    Ok(was)
}

/// Closes every breaker that is open at `now`. After a step back of the clock the breakers would stay open for longer by the step;
/// a service that still fails opens its breaker again.
pub(in super::super) async fn close_open(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
) -> Result<(), StoreError> {
    let troubled = read(session, "read breakers", &sql::SELECT_BREAKERS, &[], trouble).await?;
    let is_open = |found: &Trouble| found.open_until.is_some_and(|until| until > now);
    for found in troubled.into_iter().filter(is_open) {
        reset(session, unit, &found.key, now).await?;
    }
    Ok(())
}

async fn lock(session: &mut Session, key: &BreakerKey) -> Result<Option<Locked>, StoreError> {
    let values = [key.as_str().into()];
    Ok(read(session, "lock a breaker", &sql::LOCK_BREAKER, &values, decode).await?.pop())
}

/// Ends the trial calls of jobs that are not under the lease any more: their workers died, or their jobs were cancelled.
async fn end_lost_trials(session: &mut Session, state: &mut BreakerState) -> Result<(), StoreError> {
    let trials = state.trials();
    if trials.is_empty() {
        return Ok(());
    }
    let trials = trials.into_iter().map(|(id, token)| LeaseKey { id, token }).collect();
    let decode = |row: &Row| get::<String>(row, "lease_token");
    let held =
        read_by(session, "check the leases of trial calls", &sql::SELECT_HELD_LEASES, trials, decode).await?;
    state.keep_trials(&held);
    Ok(())
}

pub(in super::super) async fn step(
    session: &mut Session,
    unit: &mut Unit,
    key: &BreakerKey,
    rule: &Breaker,
    step: &BreakerStep,
    now: Timestamp,
) -> Result<Stepped, StoreError> {
    if matches!(step, BreakerStep::Failed { .. }) {
        let row = NewBreaker { name: key.as_str().to_owned(), release_at: None, now };
        execute(session, "add a breaker", &sql::INSERT_BREAKERS, vec![row], &[]).await?;
    }
    let mut stepped = Stepped { passage: Passage::Free, opened_until: None };
    let Some(mut row) = lock(session, key).await? else { return Ok(stepped) };
    let was_open = row.state.open_until().is_some();
    match step {
        // Its call began before the breaker opened. To write the row would put off the release of waiting jobs.
        BreakerStep::Succeeded { .. } if was_open => return Ok(stepped),
        BreakerStep::Pass { lease } => {
            end_lost_trials(session, &mut row.state).await?;
            stepped.passage = row.state.pass(rule, lease, now);
            if stepped.passage != Passage::Trial {
                return Ok(stepped);
            }
        }
        BreakerStep::Failed { job, successes } => {
            let opened = row.state.failed(rule, job, *successes, now);
            stepped.opened_until = row.state.open_until().filter(|_| opened);
        }
        BreakerStep::Succeeded { successes } => row.state.succeeded(rule, *successes, now),
        BreakerStep::TrialSucceeded { job } => row.state.trial_succeeded(rule, job, now),
        BreakerStep::TrialNotMade { job } => row.state.trial_not_made(job),
    }
    match step {
        // Its place is for another job.
        BreakerStep::Failed { .. }
        | BreakerStep::TrialSucceeded { .. }
        | BreakerStep::TrialNotMade { .. }
            if was_open =>
        {
            release_and_write(session, unit, row, now, AT_ONCE).await?;
        }
        _ => write(session, unit, &row, look_at(&row.state, now, row.release_at.is_some()), now).await?,
    }
    Ok(stepped)
}

/// When the scheduler looks at the jobs that wait for a breaker.
fn look_at(state: &BreakerState, now: Timestamp, more_wait: bool) -> Option<Timestamp> {
    match state.open_until() {
        Some(until) if now < until => Some(until),
        Some(_) => Some(now.plus_ms(LOOK_AGAIN_MS)),
        None => more_wait.then_some(now),
    }
}

async fn write(
    session: &mut Session,
    unit: &mut Unit,
    row: &Locked,
    release_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let name = row.name.as_str();
    if row.state.is_clear() && release_at.is_none() {
        let values = [name.into()];
        return session
            .execute("delete a breaker", &sql::DELETE_BREAKER, Args::Values(&values))
            .await
            .map(|_| ());
    }
    if release_at.is_some() {
        unit.rings.push(Ring::Due);
    }
    let state = as_json(&row.state)?;
    let values = [
        name.into(),
        state.as_str().into(),
        row.state.failures().into(),
        Arg::Int(row.state.open_until().map(|at| at.0)),
        Arg::Int(release_at.map(|at| at.0)),
        now.0.into(),
    ];
    session.execute("write a breaker", &sql::UPDATE_BREAKER, Args::Values(&values)).await.map(|_| ())
}

/// Releases as many waiting jobs as the breaker lets through, and writes it; returns how many.
async fn release_and_write(
    session: &mut Session,
    unit: &mut Unit,
    mut row: Locked,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    end_lost_trials(session, &mut row.state).await?;
    let room = row.state.room(now).unwrap_or(limit).min(limit);
    let (released, more_wait) = match room {
        0 => (0, true),
        room => release(session, unit, &row, room, now).await?,
    };
    write(session, unit, &row, look_at(&row.state, now, more_wait), now).await?;
    Ok(released)
}

/// `retryable → available` for waiting jobs, those first that have not failed lately; returns how many, and whether others
/// may wait.
async fn release(
    session: &mut Session,
    unit: &mut Unit,
    row: &Locked,
    room: usize,
    now: Timestamp,
) -> Result<(usize, bool), StoreError> {
    let failing = row.state.failing_jobs();
    let wanted = room.saturating_add(failing.len());
    let values = [row.name.as_str().into(), row_limit(wanted).into()];
    let decode = |row: &Row| Ok((JobRow::decode(row)?, get::<i64>(row, "waits_since")?));
    let waits = read(session, "read waiting jobs", &sql::SELECT_BREAKER_WAITS, &values, decode).await?;
    let more_wait = waits.len() >= wanted;
    // A job that was claimed since waits for something else, if it waits.
    let (mut still, gone): (Vec<_>, Vec<_>) =
        waits.into_iter().partition(|(job, since)| job.state == JobState::Retryable && job.attempt == *since);
    still.sort_by_key(|(job, _)| (failing.contains(job.id.0.as_str()), job.seq));
    let left = still.len() > room;
    still.truncate(room);
    let released: Vec<i64> = still.iter().map(|(job, _)| job.seq).collect();
    let done: Vec<i64> = released.iter().copied().chain(gone.iter().map(|(job, _)| job.seq)).collect();
    if done.is_empty() {
        return Ok((0, more_wait || left));
    }
    let mut own = Unit::default();
    own.take_in(session, still.into_iter().map(|(job, _)| job).collect()).await?;
    for seq in &released {
        own.change_job(*seq)?.step(Trigger::RetryDue, now)?;
        own.note(*seq, EventBody::JobAvailable(Reason::of("breaker")), now)?;
        own.rings.push(Ring::Available);
    }
    own.flush(session).await?;
    unit.absorb(own);
    execute(session, "delete waits", &sql::DELETE_BREAKER_WAITS, done, &[]).await?;
    Ok((released.len(), more_wait || left))
}

/// Releases waiting jobs of breakers that are half-open or closed; returns how many.
pub(in super::super) async fn release_due(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let values = [now.0.into(), row_limit(limit).into()];
    let rows = read(session, "lock due breakers", &sql::LOCK_BREAKERS_DUE, &values, decode).await?;
    let mut released = 0;
    for row in rows {
        released += release_and_write(session, unit, row, now, limit.saturating_sub(released)).await?;
    }
    Ok(released)
}
