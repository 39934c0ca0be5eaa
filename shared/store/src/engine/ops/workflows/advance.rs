//! Going on: what waited for steps that have ended is enqueued, or the workflow ends.

use super::super::push::{self, Look, PushEntry};
use super::Ended;
use super::rows::Board;
use crate::engine::rows::{Inconsistency, StepKey, StepMet, StepRow, decode, get};
use crate::engine::session::{Row, Session};
use crate::engine::statement::{Writes, read, read_by};
use crate::engine::unit::Unit;
use crate::{StoreError, WaitingJob, damage, sql};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use turnstone_domain::event::{EventBody, WorkflowStep};
use turnstone_domain::ids::shown;
use turnstone_domain::workflow::{StepRole, StepState, WorkflowKind, WorkflowState};
use turnstone_domain::{JobState, NewJob, Timestamp};

/// Continues the workflows whose steps have ended.
pub(in crate::engine) async fn advance(
    session: &mut Session,
    unit: &mut Unit,
    ended: Vec<Ended>,
) -> Result<(), StoreError> {
    let seqs: BTreeSet<i64> = ended.iter().map(|end| end.workflow_seq).collect();
    let mut board = Board::lock(session, seqs.into_iter().collect()).await?;
    let ends: BTreeMap<(i64, i64), Ended> =
        ended.into_iter().map(|end| ((end.workflow_seq, end.step), end)).collect();
    let (action, keys) = (
        "read steps",
        ends.keys()
            .map(|(workflow_seq, step)| StepKey { workflow_seq: *workflow_seq, step: *step })
            .collect(),
    );
    let mut latest: HashMap<i64, Timestamp> = HashMap::new();
    for end in ends.values() {
        let at = latest.entry(end.workflow_seq).or_insert(end.at);
        *at = end.at.max(*at);
    }
    let steps = read_by(session, action, &sql::SELECT_WORKFLOW_STEPS_BY_KEY, keys, step).await?;
    let steps = readable(&mut board, steps, &latest);
    let mut met: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for step in &steps {
        let Some(end) = ends.get(&step.key()) else { continue };
        // A step that was retried by hand after its end does not count again.
        if step.state != StepState::Enqueued {
            continue;
        }
        let succeeded = end.state == JobState::Completed;
        record(&mut board, step, end, succeeded);
        if succeeded && step.role == StepRole::Member {
            step.next.iter().for_each(|next| *met.entry((step.workflow_seq, *next)).or_default() += 1);
        }
    }
    let ready = release(session, &board, met).await?;
    let mut ready = readable(&mut board, ready, &latest);
    for row in conclude(&mut board, &latest) {
        let found = callbacks(session, &board, row).await?;
        ready.extend(readable(&mut board, found, &latest));
    }
    start(session, unit, &mut board, ready, &latest).await?;
    board.flush(session, unit).await
}

/// A step that was read, with the number of its workflow.
type ReadStep = (i64, Result<StepRow, Inconsistency>);

fn step(row: &Row) -> Result<ReadStep, Inconsistency> {
    Ok((get(row, "workflow_seq")?, decode(row)))
}

/// Returns the steps that can be read. The workflow of another one has failed: nothing that waits for it could start.
fn readable(board: &mut Board, steps: Vec<ReadStep>, latest: &HashMap<i64, Timestamp>) -> Vec<StepRow> {
    let mut found = Vec::with_capacity(steps.len());
    for (seq, step) in steps {
        match step {
            Ok(step) => found.push(step),
            Err(wrong) => fail(board, seq, &wrong.into(), latest),
        }
    }
    found
}

/// Ends a workflow because of a step that cannot be read.
fn fail(board: &mut Board, seq: i64, error: &StoreError, latest: &HashMap<i64, Timestamp>) {
    tracing::error!(workflow = seq, %error, "a step cannot be read; its workflow has failed");
    damage::count(&error.to_string());
    board.end(seq, WorkflowState::Failed, latest.get(&seq).copied().unwrap_or_default());
}

fn record(board: &mut Board, step: &StepRow, end: &Ended, succeeded: bool) {
    let seq = step.workflow_seq;
    board.put(step.key(), if succeeded { StepState::Succeeded } else { StepState::Failed });
    if step.role != StepRole::Member {
        return;
    }
    board.count(seq, succeeded);
    let Some(workflow) = board.get(seq) else { return };
    let (workflow_id, queues, at_once) =
        (shown(&workflow.id).to_owned(), workflow.queues(), workflow.kind.fails_at_once());
    if succeeded {
        let done = WorkflowStep { workflow_id, step: step.step, queues };
        board.note(seq, &EventBody::WorkflowStepCompleted(done), end.at);
    } else if at_once {
        board.end(seq, WorkflowState::Failed, end.at);
    }
}

/// Steps that wait for nothing any more, of workflows that continue.
async fn release(
    session: &mut Session,
    board: &Board,
    met: BTreeMap<(i64, i64), i64>,
) -> Result<Vec<ReadStep>, StoreError> {
    let running = |seq: i64| board.get(seq).is_some_and(|row| row.is_running());
    let keys = met.keys().filter(|(seq, _)| running(*seq));
    let keys =
        keys.map(|(workflow_seq, step)| StepKey { workflow_seq: *workflow_seq, step: *step }).collect();
    let mut writes = Writes::default();
    let met =
        met.into_iter().map(|((workflow_seq, step), met)| StepMet { workflow_seq, step, met }).collect();
    writes.all("release steps", &sql::UPDATE_MET_WORKFLOW_STEPS, met);
    writes.run(session).await?;
    read_by(session, "read steps", &sql::SELECT_READY_WORKFLOW_STEPS, keys, step).await
}

/// Ends the workflows whose members have all ended; returns the batches among them.
fn conclude(board: &mut Board, latest: &HashMap<i64, Timestamp>) -> Vec<i64> {
    let over: Vec<(i64, WorkflowKind, bool)> = board
        .all()
        .filter(|row| row.is_running() && row.ended == row.members)
        .map(|row| (row.seq, row.kind, row.succeeded == row.members))
        .collect();
    let mut batches = Vec::new();
    for (seq, kind, succeeded) in over {
        let Some(at) = latest.get(&seq) else { continue };
        board.end(seq, if succeeded { WorkflowState::Completed } else { WorkflowState::Failed }, *at);
        if kind == WorkflowKind::Batch {
            batches.push(seq);
        }
    }
    batches
}

/// Returns the steps that a batch enqueues at its end.
async fn callbacks(session: &mut Session, board: &Board, seq: i64) -> Result<Vec<ReadStep>, StoreError> {
    let (action, values) = ("read callbacks", [seq.into()]);
    let mut found = read(session, action, &sql::SELECT_WORKFLOW_CALLBACKS, &values, step).await?;
    let completed = board.get(seq).is_some_and(|row| row.state == WorkflowState::Completed);
    let outcome = if completed { StepRole::OnSuccess } else { StepRole::OnFailure };
    found.retain(|(_, step)| {
        step.as_ref().map_or(true, |step| step.role == StepRole::OnComplete || step.role == outcome)
    });
    Ok(found)
}

/// Enqueues steps. One that is refused (its id is taken by now, or it would not be unique) has failed.
async fn start(
    session: &mut Session,
    unit: &mut Unit,
    board: &mut Board,
    mut ready: Vec<StepRow>,
    latest: &HashMap<i64, Timestamp>,
) -> Result<(), StoreError> {
    if ready.is_empty() {
        return Ok(());
    }
    let results = results(session, &ready).await?;
    let mut jobs = Vec::with_capacity(ready.len());
    ready.retain(|step| {
        let at = latest.get(&step.workflow_seq).copied().unwrap_or_default();
        match job(step, &results, at) {
            Ok(job) => jobs.push(job),
            Err(error) => {
                fail(board, step.workflow_seq, &error, latest);
                return false;
            }
        }
        true
    });
    if ready.is_empty() {
        return Ok(());
    }
    let entries: Vec<Vec<PushEntry<'_>>> = ready
        .iter()
        .zip(&jobs)
        .map(|(step, job)| vec![PushEntry { job, step: Some(step.key()), delegation: None, continues: None }])
        .collect();
    let look = Look::take(session, &jobs.iter().collect::<Vec<_>>(), 0).await?;
    let pushed = push::enqueue(session, unit, look, &entries).await?;
    for (step, pushed) in ready.iter().zip(pushed) {
        let Err(refused) = pushed else {
            board.put(step.key(), StepState::Enqueued);
            continue;
        };
        tracing::warn!(workflow = step.workflow_seq, step = step.step, error = %refused, "a step could not be enqueued");
        board.put(step.key(), StepState::Failed);
        if step.role == StepRole::Member {
            board.count(step.workflow_seq, false);
            let at = latest.get(&step.workflow_seq).copied().unwrap_or_default();
            board.end(step.workflow_seq, WorkflowState::Failed, at);
        }
    }
    Ok(())
}

/// The results of all that these steps need.
async fn results(
    session: &mut Session,
    ready: &[StepRow],
) -> Result<HashMap<(i64, i64), String>, StoreError> {
    let keys: BTreeSet<(i64, i64)> =
        ready.iter().flat_map(|step| step.needs.iter().map(|need| (step.workflow_seq, *need))).collect();
    let keys = keys.into_iter().map(|(workflow_seq, step)| StepKey { workflow_seq, step }).collect();
    let found = read_by(session, "read results", &sql::SELECT_WORKFLOW_RESULTS, keys, |row| {
        Ok(((get(row, "workflow_seq")?, get(row, "step")?), get::<String>(row, "result")?))
    });
    Ok(found.await?.into_iter().collect())
}

/// The job of a step as it is enqueued at `at`: relative times count from then.
fn job(step: &StepRow, results: &HashMap<(i64, i64), String>, at: Timestamp) -> Result<NewJob, StoreError> {
    let unreadable = |error: serde_json::Error| StoreError::Unreadable {
        column: format!("job of workflow_steps {}/{}", step.workflow_seq, step.step),
        message: error.to_string(),
    };
    let waiting: WaitingJob = serde_json::from_str(&step.job).map_err(unreadable)?;
    let mut job = waiting.job;
    let waited = at.since(job.created_at);
    job.run_at = if waiting.run_relative { job.run_at.plus_ms(waited) } else { job.run_at.max(at) };
    if waiting.expiry_relative {
        job.expires_at = job.expires_at.map(|expires| expires.plus_ms(waited));
    }
    job.created_at = at;
    if !step.needs.is_empty() {
        let result = |need: &i64| {
            let found = results.get(&(step.workflow_seq, *need));
            found.cloned().unwrap_or_else(|| "null".to_owned())
        };
        job.terms.parent_results = Some(step.needs.iter().map(result).collect());
    }
    Ok(job)
}
