//! Fork: an engagement that continues from a turn of another one. Complete turns are read where they are. Of the
//! turn at which they part, the phases before the point are copied, because they belong to the turn that the fork
//! ends.

use super::super::journal;
use super::super::rows::{self, EngagementRow, ForkRow, JobRow, NewScope, ScopeVersion, StateKey};
use super::super::session::{Args, Session};
use super::super::statement::{Writes, as_json, read, read_by};
use super::super::unit::Unit;
use super::control::branch::{Wanted, like};
use super::control::copy::{self, Beginning, Past, copy_beginning};
use super::push;
use crate::{ForkRefusal, NewFork};
use crate::{Ring, StoreError, sql};
use std::collections::BTreeMap;
use turnstone_domain::agent::StateMode;
use turnstone_domain::checkpoint::{EmitBody, InferBody};
use turnstone_domain::event::{EventBody, Forked};
use turnstone_domain::fork::{said_before, state_at};
use turnstone_domain::message::StoredMessage;
use turnstone_domain::session_state::{Scope, StateEntry, StateSnapshot};
use turnstone_domain::turn_write::Position;
use turnstone_domain::{AgentDefinition, Checkpoint, Ids, JobId, Phase};

/// The engagement that is forked.
struct Parent {
    seq: i64,
    agent: AgentDefinition,
    row: EngagementRow,
}

pub(in super::super) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    fork: &NewFork,
    ids: &dyn Ids,
) -> Result<Result<(), ForkRefusal>, StoreError> {
    let Some(parent) = find(session, unit, fork).await? else { return Ok(Err(ForkRefusal::NoEngagement)) };
    if parent.row.inputs > 1 {
        return Ok(Err(ForkRefusal::SeveralInputs));
    }
    let part = match part(session, unit, &parent, fork).await? {
        Ok(part) => part,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if let Some(refusal) = unusable(session, &parent, fork).await? {
        return Ok(Err(refusal));
    }
    let seq = enqueue(session, unit, &parent, fork).await?;
    let values = [seq.into(), parent.seq.into(), fork.point.turn.into(), part.after.into()];
    session.execute("share a past", &sql::INSERT_INHERITANCES, Args::Values(&values)).await?;
    let mut writes = Writes::default();
    let row = ForkRow {
        engagement_seq: seq,
        parent_id: fork.from.clone(),
        at_turn: fork.point.turn,
        phase: fork.point.phase,
        live_tools: fork.live_tools,
        changes: as_json(&fork.changes)?,
        created_at: fork.at,
    };
    writes.insert("write a fork", vec![row]);
    writes.run(session).await?;
    state(session, unit, &parent, fork, seq).await?;
    let position = position(session, unit, &parent, fork, &part).await?;
    let messages = i64::try_from(part.messages.len()).unwrap_or(i64::MAX);
    unit.took_over(seq, fork.point.turn - 1, part.after.saturating_add(messages));
    copy_beginning(session, part, Past { job_seq: seq, engagement_seq: seq }, ids).await?;
    unit.change_job(seq)?.position = Some(position);
    let forked = Forked {
        forked_from: fork.from.clone(),
        at_turn: fork.point.turn,
        phase: fork.point.phase,
        live_tools: fork.live_tools,
        set: fork.changes.names(),
    };
    unit.note(seq, EventBody::EngagementForked(forked), fork.at)?;
    unit.rings.push(Ring::Available);
    unit.flush(session).await?;
    Ok(Ok(()))
}

/// Takes in the engagement; retention does not delete it until this is committed.
async fn find(session: &mut Session, unit: &mut Unit, fork: &NewFork) -> Result<Option<Parent>, StoreError> {
    let values = [fork.from.as_str().into(), fork.tenant.as_deref().into()];
    let (action, text) = ("read an engagement", &sql::SELECT_ENGAGEMENT_BY_ID);
    let mut found: Vec<(AgentDefinition, JobId)> = read(session, action, text, &values, |row| {
        Ok((rows::json(row, "definition")?, JobId(rows::get(row, "job_id")?)))
    })
    .await?;
    let Some((agent, job)) = found.pop() else { return Ok(None) };
    let rows = read_by(session, "read a job", &sql::LOCK_JOBS, vec![job.clone()], JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    let Some(seq) = unit.seq_of(&job) else { return Ok(None) };
    Ok(unit.engagement_of(seq).cloned().map(|row| Parent { seq, agent, row }))
}

/// Returns what the turn has before the point, or why it cannot be forked there.
async fn part(
    session: &mut Session,
    unit: &Unit,
    parent: &Parent,
    fork: &NewFork,
) -> Result<Result<Beginning, ForkRefusal>, StoreError> {
    let turn = fork.point.turn;
    let stands = unit.job(parent.seq).and_then(|job| job.position.as_ref()).map_or(1, |at| at.turn);
    let newest = stands.min(parent.row.engagement.turns + 1);
    if turn > newest {
        return Ok(Err(ForkRefusal::NoTurn { newest }));
    }
    let values = [parent.seq.into(), turn.into(), (turn + 1).into()];
    let text = &sql::SELECT_CHECKPOINTS_OF_TURNS;
    let all = read(session, "read checkpoints", text, &values, journal::checkpoints).await?;
    let all: Vec<Checkpoint> = all.into_iter().flatten().collect();
    let done = fork.point.phase.index();
    if all.len() < done {
        let furthest = Phase::resume_after(all.len()).unwrap_or(Phase::Emit);
        return Ok(Err(ForkRefusal::NoPhase { furthest }));
    }
    let messages = messages(session, parent, turn).await?;
    let after = messages.first().map_or(parent.row.messages, |first| first.seq - 1);
    let said = said_before(fork.point.phase, &all, &messages);
    let calls = if fork.point.phase > Phase::Exec {
        read(session, "read the tool journal", &sql::SELECT_TOOL_CALLS_OF_TURNS, &values, rows::decode)
            .await?
    } else {
        Vec::new()
    };
    let checkpoints = all.into_iter().take(done).collect();
    let messages = messages.into_iter().take(said).collect();
    Ok(Ok(Beginning { checkpoints, messages, calls, after }))
}

async fn messages(
    session: &mut Session,
    parent: &Parent,
    turn: i64,
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut messages: Vec<StoredMessage> = Vec::new();
    loop {
        let after = messages.last().map_or(0, |last| last.seq);
        let page = copy::page(session, parent.seq, (turn, turn + 1), after).await?;
        if page.is_empty() {
            return Ok(messages);
        }
        messages.extend(page);
    }
}

/// The checkpoints of one phase of the engagement that is forked, newest first.
async fn of_phase(
    session: &mut Session,
    fork: &NewFork,
    phase: Phase,
) -> Result<Vec<Checkpoint>, StoreError> {
    let values = [fork.from.as_str().into(), number(phase).into(), i64::MAX.into()];
    let (action, text) = ("read checkpoints", &sql::SELECT_CHECKPOINTS_OF_PHASE);
    let found = read(session, action, text, &values, journal::checkpoints).await?;
    Ok(found.into_iter().flatten().filter(|done| done.phase == phase).collect())
}

/// The number of a phase as it is stored.
fn number(phase: Phase) -> i64 {
    i64::try_from(phase.index()).unwrap_or(i64::MAX)
}

/// Why what is to be changed cannot be.
async fn unusable(
    session: &mut Session,
    parent: &Parent,
    fork: &NewFork,
) -> Result<Option<ForkRefusal>, StoreError> {
    let changes = &fork.changes;
    if changes.provider.is_some() && changes.model.is_none() && parent.agent.model.models.is_empty() {
        return Ok(Some(ForkRefusal::NoModel));
    }
    for id in changes.tool_results.keys() {
        let values = [parent.seq.into(), id.as_str().into()];
        let (action, text) = ("look for a call", &sql::SELECT_FORK_CALL_TURN);
        let found = read(session, action, text, &values, |row| rows::get::<i64>(row, "turn")).await?;
        let Some(turn) = found.first().copied() else { return Ok(Some(ForkRefusal::NoCall(id.clone()))) };
        let point = fork.point;
        if turn < point.turn || (turn == point.turn && point.phase > Phase::Exec) {
            return Ok(Some(ForkRefusal::CallBefore { call: id.clone(), turn }));
        }
    }
    Ok(None)
}

/// Enqueues the fork's job as the other one was, with a budget of its own; returns its number.
async fn enqueue(
    session: &mut Session,
    unit: &mut Unit,
    parent: &Parent,
    fork: &NewFork,
) -> Result<i64, StoreError> {
    let wanted = Wanted {
        like: parent.seq,
        root: parent.seq,
        name: None,
        segments: Vec::new(),
        at_turn: fork.point.turn,
        position: None,
        contents: Vec::new(),
        held: false,
        job: &fork.job,
        engagement: &fork.engagement,
        by: fork.by.as_deref(),
        at: fork.at,
    };
    let (mut job, _) = like(session, unit, &wanted).await?;
    if let Some(engagement) = &mut job.engagement {
        fork.changes.apply(&mut engagement.agent);
    }
    let mut pushing = Unit::default();
    let pushed = push::apply(session, &mut pushing, &[std::slice::from_ref(&job)], None).await?;
    pushed.into_iter().collect::<Result<Vec<_>, _>>()?;
    unit.absorb(pushing);
    let keys = vec![fork.job.clone()];
    let rows = read_by(session, "read a job", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    unit.seq_of(&fork.job).ok_or_else(|| StoreError::Inconsistent {
        table: "jobs",
        column: "id",
        row: fork.job.to_string(),
        message: "the row that was just written is missing".to_owned(),
    })
}

/// Gives the fork the state that the agent had at the point, in a scope of its own.
async fn state(
    session: &mut Session,
    unit: &Unit,
    parent: &Parent,
    fork: &NewFork,
    seq: i64,
) -> Result<(), StoreError> {
    let Some(row) = unit.engagement_of(seq) else { return Ok(()) };
    let Some(own) = Scope::of_fork(&parent.agent, &row.engagement) else { return Ok(()) };
    let now = snapshot(session, unit, parent, fork).await?;
    let mut persisted = of_phase(session, fork, Phase::Persist).await?;
    persisted.reverse();
    let state: BTreeMap<_, _> = state_at(fork.point, &now, &persisted);
    if state.is_empty() {
        return Ok(());
    }
    let ttl = parent.agent.state.ttl_seconds;
    let expires_at = ttl.map(|seconds| fork.at.plus_ms(seconds.saturating_mul(1000)));
    let mut keys = Vec::with_capacity(state.len());
    for (key, value) in state {
        let (scope, content) = (own.name.clone(), as_json(&value)?);
        keys.push(StateKey { scope, name: key, content, version: 1, updated_at: fork.at, expires_at });
    }
    let mut writes = Writes::default();
    writes.insert_missing("open states", vec![NewScope::of(&own.name, Some(seq), fork.at)]);
    writes.run(session).await?;
    let mut writes = Writes::default();
    let version = ScopeVersion { name: own.name, version: 1, at: fork.at };
    writes.all("write states", &sql::UPDATE_STATE_SCOPES, vec![version]);
    writes.insert_over("write keys of states", keys);
    writes.run(session).await
}

/// The state of the engagement that is forked, as it is now.
async fn snapshot(
    session: &mut Session,
    unit: &Unit,
    parent: &Parent,
    fork: &NewFork,
) -> Result<StateSnapshot, StoreError> {
    let own = Scope::of_fork(&parent.agent, &parent.row.engagement);
    let scope = if parent.agent.state.mode == StateMode::LongRunning {
        let job = unit.job(parent.seq).map(|job| job.id.0.clone()).unwrap_or_default();
        let values = [job.as_str().into()];
        let is_fork =
            read(session, "look for a fork", &sql::SELECT_FORK_OF_JOB, &values, rows::origin).await?;
        let keys = vec![parent.seq];
        let sent =
            read_by(session, "read envelopes", &sql::SELECT_ENVELOPES_BY_JOB, keys, rows::envelope).await?;
        let meta = sent.into_iter().next().map(|(_, _, envelope)| envelope.meta).unwrap_or_default();
        if is_fork.is_empty() { Scope::of(&parent.agent, &parent.row.engagement, &meta) } else { own }
    } else {
        own
    };
    let Some(scope) = scope else { return Ok(StateSnapshot::default()) };
    let values = [scope.name.as_str().into(), fork.at.0.into()];
    let found = read(session, "read a state", &sql::SELECT_STATE_OF_SCOPE, &values, |row| {
        Ok(match rows::get::<Option<String>>(row, "name")? {
            None => None,
            Some(key) => Some(StateEntry {
                key,
                value: rows::json(row, "content")?,
                version: rows::get(row, "version")?,
                updated_at: rows::get(row, "updated_at")?,
                expires_at: rows::get(row, "expires_at")?,
            }),
        })
    });
    Ok(StateSnapshot { version: 0, entries: found.await?.into_iter().flatten().collect() })
}

/// The position of the fork's job.
async fn position(
    session: &mut Session,
    unit: &Unit,
    parent: &Parent,
    fork: &NewFork,
    part: &Beginning,
) -> Result<Position, StoreError> {
    let turn = fork.point.turn;
    let stands = unit.job(parent.seq).and_then(|job| job.position.clone()).unwrap_or_default();
    if stands.turn == turn {
        // What its origin waits for, and how long it has waited, are the origin's.
        return Ok(Position { asks: None, raise_until: None, outages: 0, ..stands });
    }
    let reported = of_phase(session, fork, Phase::Emit).await?;
    let before: Vec<bool> = reported
        .iter()
        .filter(|done| done.turn < turn)
        .map(|done| done.read::<EmitBody>().is_some_and(|emit| emit.tool_calls > 0))
        .collect();
    let count = |wanted: bool| u32::try_from(before.iter().filter(|tools| **tools == wanted).count());
    let model = part.checkpoints.iter().find_map(Checkpoint::read::<InferBody>).map(|infer| infer.model);
    Ok(Position {
        turn,
        tool_turns: count(true).unwrap_or(u32::MAX),
        reasks: count(false).unwrap_or(u32::MAX).min(1),
        begins: 0,
        handoff_agent: None,
        asks: None,
        granted: stands.granted,
        model_used: model.or(stands.model_used),
        raise_until: None,
        outages: 0,
    })
}
