//! Enqueue: job, envelope, engagement, budget and `job.enqueued` in one transaction.

mod bounds;
mod continuing;
mod delegation;
pub(in super::super) mod idempotency;
mod limits;
mod look;
mod rows;
mod tenants;
mod unique;

use super::super::limited::LimitedQueues;
use super::super::session::Session;
use super::super::unit::Unit;
use crate::{Pushed, Ring, StoreError};
use bounds::Bounds;
use continuing::{Continued, Open};
use delegation::Places;
pub(in super::super) use look::Look;
use rows::{Rows, first_state};
use std::collections::HashSet;
use tenants::Allowances;
use turnstone_domain::agent::delegation::DelegationMode;
use turnstone_domain::{CallId, JobId, JobState, NewJob, Timestamp};
use unique::{Alike, Verdict};

/// A job to be enqueued, and the step of a workflow that it is, if it is one.
#[derive(Clone, Copy)]
pub(in super::super) struct PushEntry<'a> {
    pub job: &'a NewJob,
    pub step: Option<(i64, i64)>,
    /// The place in a tree of engagements, if it works for another job.
    pub delegation: Option<&'a DelegationPlace>,
    /// The engagement into which it carries a further input, if it does.
    pub continues: Option<&'a Open>,
}

/// The place of a new engagement in a tree.
#[derive(Clone)]
pub(in super::super) struct DelegationPlace {
    /// The job that it works for.
    pub parent_seq: i64,
    /// The same, as clients know it.
    pub parent: JobId,
    /// The engagement of that job.
    pub parent_engagement_seq: i64,
    /// Below the root.
    pub depth: i64,
    /// The deepest that it and those below it may be.
    pub max_depth: u32,
    /// The budget that all of the tree share. Its row counts the jobs of the tree.
    pub budget_seq: i64,
    /// The jobs for which it counts in the tree.
    pub jobs: u32,
    /// The budgets that delegates above it have of their own.
    pub limited_by: Vec<String>,
    /// The call that it answers; `None` for a job that was pushed from outside.
    pub call_id: Option<CallId>,
    /// The parent's turn.
    pub turn: i64,
    /// On which terms.
    pub mode: DelegationMode,
    /// The longest it may take, in milliseconds.
    pub timeout_ms: Option<i64>,
}

/// The answers to several pushes, in their order.
type Answers = Vec<Result<Vec<Pushed>, StoreError>>;

/// Enqueues one job and takes it in; returns its number.
pub(in super::super) async fn one(
    session: &mut Session,
    unit: &mut Unit,
    job: &NewJob,
) -> Result<i64, StoreError> {
    let mut own = Unit::default();
    let pushed = apply(session, &mut own, &[std::slice::from_ref(job)], None).await?;
    pushed.into_iter().collect::<Result<Vec<_>, _>>()?;
    unit.absorb(own);
    let seq = unit.read_job(session, &job.id, None).await?;
    seq.ok_or_else(|| StoreError::Inconsistent {
        table: "jobs",
        column: "id",
        row: job.id.to_string(),
        message: "the row that was just written is missing".to_owned(),
    })
}

/// Applies all pushes without reading anything first, if none of them needs more than the statement that writes them: see
/// [`Look::spared`].
///
/// # Errors
/// Also when an id is taken, or a queue has a rule that is not known yet: then [`apply`] gives the answers.
pub(in super::super) async fn apply_unread(
    session: &mut Session,
    unit: &mut Unit,
    pushes: &[&[NewJob]],
    limited: &LimitedQueues,
) -> Result<Option<Answers>, StoreError> {
    let jobs: Vec<&NewJob> = pushes.iter().copied().flatten().collect();
    let Some(look) = Look::spared(session, &jobs, limited) else { return Ok(None) };
    let entry = |job| PushEntry { job, step: None, delegation: None, continues: None };
    let entries: Vec<Vec<PushEntry<'_>>> =
        pushes.iter().map(|jobs| jobs.iter().map(entry).collect()).collect();
    enqueue(session, unit, look, &entries).await.map(Some)
}

/// Applies all pushes; each is taken whole or not at all, and one that is refused writes nothing. `limited` learns which of
/// their queues have rules.
pub(in super::super) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    pushes: &[&[NewJob]],
    limited: Option<&LimitedQueues>,
) -> Result<Answers, StoreError> {
    let places = Places::find(session, pushes).await?;
    let continued = Continued::find(session, pushes).await?;
    // After engagements are held: their inputs are worked on in the order of their numbers.
    let jobs: Vec<&NewJob> = pushes.iter().copied().flatten().collect();
    let look = Look::take(session, &jobs, 0).await?;
    if let Some(limited) = limited {
        look.teach(&jobs, limited);
    }
    let refusal = |jobs: &&[NewJob]| {
        look.refusal(jobs).or_else(|| places.refusal(jobs)).or_else(|| continued.refusal(jobs))
    };
    let refusals: Vec<Option<StoreError>> = pushes.iter().map(refusal).collect();
    let mut allowed: Vec<&[NewJob]> = Vec::with_capacity(pushes.len());
    for (jobs, refused) in pushes.iter().zip(&refusals) {
        allowed.extend(refused.is_none().then_some(*jobs));
    }
    let taken = {
        let entry =
            |job| PushEntry { job, step: None, delegation: places.of(job), continues: continued.of(job) };
        let entries: Vec<Vec<PushEntry<'_>>> =
            allowed.iter().map(|jobs| jobs.iter().map(entry).collect()).collect();
        enqueue(session, unit, look, &entries).await?
    };
    let mut reported = Vec::new();
    for (jobs, pushed) in allowed.iter().zip(&taken) {
        reported.extend(jobs.iter().zip(pushed.iter().flatten()));
    }
    places.tell(session, unit, &reported).await?;
    let mut taken = taken.into_iter();
    let answer = |refused: Option<StoreError>| refused.map(Err).or_else(|| taken.next());
    Ok(refusals.into_iter().filter_map(answer).collect())
}

/// A new number for an event that belongs to no job.
pub(in super::super) async fn number(session: &mut Session) -> Result<i64, StoreError> {
    Look::take(session, &[], 1).await?.numbers.pop().ok_or(StoreError::Closed)
}

/// The same as [`apply`], after a look for these jobs.
pub(in super::super) async fn enqueue(
    session: &mut Session,
    unit: &mut Unit,
    look: Look,
    pushes: &[Vec<PushEntry<'_>>],
) -> Result<Answers, StoreError> {
    let Look { numbers, mut taken, mut bounded, placed, .. } = look;
    bounded.retain(|queue| pushes.iter().flatten().any(|entry| entry.job.queue == *queue));
    let mut bounds = Bounds::read(session, bounded).await?;
    let mut allowances = Allowances::read(session, pushes).await?;
    let mut alike = Alike::read(session, pushes).await?;
    let mut rows = Rows::new(numbers, placed);
    let mut answers = Vec::with_capacity(pushes.len());
    let mut accepted = Vec::new();
    for entries in pushes {
        let fits = plan(&taken, &alike, entries)
            .and_then(|(plan, after)| allowances.refusal(entries, &plan).map_or(Ok((plan, after)), Err));
        answers.push(match fits {
            Err(refused) => Err(refused),
            Ok((plan, after)) => match bounds.admit(entries, &plan) {
                Err(refused) => Err(refused),
                Ok(()) => {
                    alike.take_over(after);
                    allowances.take(entries, &plan);
                    accepted.extend(entries.iter().map(|entry| entry.job));
                    let mut pushed = carry_out(unit, &mut rows, &mut taken, entries, plan)?;
                    bounds.tell(entries, &mut pushed);
                    Ok(pushed)
                }
            },
        });
    }
    rows.flush(session).await?;
    limits::remember(session, &accepted).await?;
    allowances.write(session).await?;
    alike.end_replaced(session, unit).await?;
    Ok(answers)
}

/// Decides what happens to each job of a push, or returns why nothing does.
fn plan(
    taken: &HashSet<String>,
    alike: &Alike,
    entries: &[PushEntry<'_>],
) -> Result<(Vec<Verdict>, unique::After), StoreError> {
    let mut own = HashSet::with_capacity(entries.len());
    for id in entries.iter().map(|entry| entry.job.id.as_str()) {
        if taken.contains(id) || !own.insert(id) {
            return Err(StoreError::DuplicateJob(id.into()));
        }
    }
    let mut after = alike.unchanged();
    let plan = entries.iter().map(|entry| alike.judge(&mut after, entry)).collect::<Result<_, _>>()?;
    Ok((plan, after))
}

fn carry_out(
    unit: &mut Unit,
    rows: &mut Rows,
    taken: &mut HashSet<String>,
    entries: &[PushEntry<'_>],
    plan: Vec<Verdict>,
) -> Result<Vec<Pushed>, StoreError> {
    let mut pushed = Vec::with_capacity(entries.len());
    for (entry, verdict) in entries.iter().zip(plan) {
        pushed.push(match verdict {
            Verdict::Other(id, state) => Pushed { id, state, deduplicated: true, pressure: None },
            Verdict::Take(run_at) => take(unit, rows, taken, entry, run_at)?,
        });
    }
    // One is enough for readers of all events. No reader follows a job that did not exist.
    let newest = pushed.iter().rfind(|pushed| !pushed.deduplicated);
    unit.rings.extend(newest.map(|pushed| Ring::Events(pushed.id.0.clone())));
    Ok(pushed)
}

fn take(
    unit: &mut Unit,
    rows: &mut Rows,
    taken: &mut HashSet<String>,
    entry: &PushEntry<'_>,
    run_at: Timestamp,
) -> Result<Pushed, StoreError> {
    let job = entry.job;
    taken.insert(job.id.0.clone());
    let state = rows.add(entry, run_at)?;
    // No notification for plain jobs: their workers fetch.
    if state == JobState::Available && job.engagement.is_some() {
        unit.rings.push(Ring::Available);
    }
    if state == JobState::Scheduled || job.expires_at.is_some() {
        unit.rings.push(Ring::Due);
    }
    Ok(Pushed { id: job.id.clone(), state, deduplicated: false, pressure: None })
}
