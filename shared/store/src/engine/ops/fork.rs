//! Fork: an engagement that continues from a turn of another one. Complete turns are read where they are. Of the
//! turn at which they part, the phases before the point are copied, because they belong to the turn that the fork
//! ends.

use super::super::rows::{self, EngagementRow, ForkRow, NewScope, ScopeVersion, StateKey};
use super::super::session::Session;
use super::super::statement::{Writes, as_json, read, read_by};
use super::super::unit::Unit;
use super::past::{self, Turns, Twin};
use crate::{ForkRefusal, NewFork};
use crate::{Ring, StoreError, sql};
use std::collections::BTreeMap;
use turnstone_domain::agent::{Admission, StateMode};
use turnstone_domain::checkpoint::InferBody;
use turnstone_domain::event::{EventBody, Forked};
use turnstone_domain::fork::{said_before, state_at};
use turnstone_domain::record::NewIds;
use turnstone_domain::session_state::{Scope, StateEntry, StateSnapshot};
use turnstone_domain::{AgentDefinition, CallId, Checkpoint, Ids, JobId, Phase};

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
    let mut part = match part(session, unit, &parent, fork).await? {
        Ok(part) => part,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if let Some(refusal) = unusable(session, &parent, fork).await? {
        return Ok(Err(refusal));
    }
    let twin = Twin {
        like: parent.seq,
        job: &fork.job,
        engagement: &fork.engagement,
        by: fork.by.as_deref(),
        at: fork.at,
    };
    let mut job = twin.job(session, unit).await?;
    if let Some(engagement) = &mut job.engagement {
        fork.changes.apply(&mut engagement.agent);
        if fork.changes.prompt.is_some() && engagement.agent.admitted == Some(Admission::Registered) {
            // No registered agent has this prompt, which is one of the forking principal.
            engagement.agent.admitted = Some(Admission::Checked);
        }
    }
    let (seq, sums) = twin.share(session, unit, &job, fork.point.turn).await?;
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
    part.number(sums.messages);
    let messages = i64::try_from(part.messages.len()).unwrap_or(i64::MAX);
    let end = part.checkpoints.last().map(|done| (done.turn, done.phase));
    let end = end.or_else(|| past::last_complete(fork.point.turn - 1));
    unit.took_over(seq, fork.point.turn - 1, sums.messages.saturating_add(messages), end);
    let mut position = twin.position(session, unit, fork.point.turn).await?;
    if let Some(infer) = part.checkpoints.iter().find_map(Checkpoint::read::<InferBody>) {
        position.model_used = Some(infer.model);
    }
    own(&mut part, ids);
    part.write(session, seq).await?;
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
    let Some(seq) = unit.read_job(session, &job, None).await? else { return Ok(None) };
    Ok(unit.engagement_of(seq).cloned().map(|row| Parent { seq, agent, row }))
}

/// Gives the copied calls to the fork, which paid for none of it and called nothing: they replace its own.
fn own(part: &mut Turns, ids: &dyn Ids) {
    let old: Vec<CallId> = part.calls.iter().map(|call| call.call_id.clone()).collect();
    part.rename(&mut NewIds::new(), ids);
    for (call, of) in part.calls.iter_mut().zip(old) {
        // No outcome of another call replaces a note.
        call.stub_of = (!call.is_note()).then_some(of);
    }
    part.checkpoints = std::mem::take(&mut part.checkpoints).into_iter().map(past::unpaid).collect();
}

/// Returns what the turn has before the point, or why it cannot be forked there.
async fn part(
    session: &mut Session,
    unit: &Unit,
    parent: &Parent,
    fork: &NewFork,
) -> Result<Result<Turns, ForkRefusal>, StoreError> {
    let turn = fork.point.turn;
    let stands = unit.job(parent.seq).and_then(|job| job.position.as_ref()).map_or(1, |at| at.turn);
    let newest = stands.min(parent.row.engagement.turns + 1);
    if turn > newest {
        return Ok(Err(ForkRefusal::NoTurn { newest }));
    }
    let mut part = Turns::read(session, parent.seq, (turn, turn + 1)).await?;
    let done = fork.point.phase.index();
    if part.checkpoints.len() < done {
        let furthest = Phase::resume_after(part.checkpoints.len()).unwrap_or(Phase::Emit);
        return Ok(Err(ForkRefusal::NoPhase { furthest }));
    }
    part.messages.truncate(said_before(fork.point.phase, &part.checkpoints, &part.messages));
    part.checkpoints.truncate(done);
    if fork.point.phase <= Phase::Exec {
        part.calls.clear();
    }
    Ok(Ok(part))
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
    let mut persisted = past::of_phase(session, &fork.from, Phase::Persist).await?;
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
