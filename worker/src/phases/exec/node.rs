//! EXEC of a node: its call is made as any call of an agent is, or the job waits for the user or the client.

use super::{admission, batch, stub};
use crate::flow;
use crate::flow::run::Crew;
use crate::flow::tools::{ASK, RESULT, capability, to_client};
use crate::policy::restriction::{self, Checked};
use crate::state::journal::{self, Call};
use crate::state::{Bodies, Outbox, Stop, Turn, TurnHistory};
use serde::Deserialize as _;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::question::{AskedUser, ClientCall, Question};
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{CallId, JobError, Wait};
use turnstone_specs::agent_spec::model::{NodeKind, Tool, ToolKind};

/// Makes the call of the node, if it has one; returns the calls that were made.
///
/// # Errors
/// As those of calls of an agent; [`Stop::Park`] until the user or the client has answered.
pub async fn run(turn: &mut Turn, draining: &CancellationToken) -> Result<Vec<CallId>, Stop> {
    let planned = turn.bodies.inferred()?.node.as_ref().and_then(|planned| planned.call.clone());
    let Some(requested) = planned else { return Ok(Vec::new()) };
    let calls = vec![requested.call_id.clone()];
    let node = turn.node().map(|current| Arc::clone(&current.node));
    match node.as_ref().map(|node| &node.kind) {
        Some(NodeKind::InputMessageNode { .. }) => {
            wait_for_user(&mut turn.past, &mut turn.outbox, requested)?
        }
        Some(NodeKind::AgentNode(_)) if requested.name == ASK => {
            wait_for_user(&mut turn.past, &mut turn.outbox, requested)?
        }
        Some(NodeKind::ToolNode(tool)) if matches!(tool.kind, ToolKind::ClientTool) => {
            let arguments =
                ClientCall::deserialize(&requested.arguments).map(|call| call.arguments).unwrap_or_default();
            let outcome = by_client(
                &turn.past,
                &mut turn.outbox,
                tool,
                RequestedCall { name: tool.head.name.clone(), arguments, ..requested },
                0,
            )?;
            if let Some(node) = turn.flow.as_mut().and_then(|run| run.node.as_mut()) {
                node.outcome = Some(outcome);
            }
        }
        Some(NodeKind::ParallelMapNode { .. } | NodeKind::ParallelFlowNode(_)) => {
            flow::run_parallel(turn, &requested)?
        }
        _ if stub::answered(turn, 0, &requested).await? => {}
        _ => batch::run(turn, vec![(0, requested)], 1, draining).await?,
    }
    if matches!(node.as_ref().map(|node| &node.kind), Some(NodeKind::AgentNode(_))) {
        flow::say_consequence(turn)?;
    }
    Ok(calls)
}

/// Returns the tool of the client that the agent of the turn calls by this name.
pub fn client_tool(crew: Option<&Crew>, name: &str) -> Option<Arc<Tool>> {
    let is_it = |tool: &&Arc<Tool>| tool.head.name == name && matches!(tool.kind, ToolKind::ClientTool);
    crew?.team.agent()?.tools.iter().find(is_it).cloned()
}

/// Passes the result of a tool of the client to the model of an agent, or parks until there is one.
///
/// # Errors
/// [`Stop::Park`] until the client has answered, or a reviewer has.
pub fn call_client(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    tool: &Tool,
    requested: RequestedCall,
    position: usize,
    allowed: usize,
) -> Result<(), Stop> {
    let call_id = requested.call_id.clone();
    let call = Call { asked: requested.clone(), position, journalled: None, stub_of: None };
    let is_new = !past.recalled_calls.iter().any(|row| row.call_id == call_id);
    let refusal = admission::callable(bodies, outbox, &call, position < allowed).err().filter(|_| is_new);
    let outcome = match refusal {
        Some(refusal) => refusal,
        None => by_client(past, outbox, tool, requested, position)?,
    };
    past.say(outbox, Message::tool(call_id, outcome.for_model()));
    Ok(())
}

/// The result of a tool of the client, cast to its outputs.
fn by_client(
    past: &TurnHistory,
    outbox: &mut Outbox,
    tool: &Tool,
    requested: RequestedCall,
    position: usize,
) -> Result<ToolOutcome, Stop> {
    let row = past.recalled_calls.iter().find(|row| row.call_id == requested.call_id);
    let journalled = row.map(|row| row.state);
    if let Some(outcome) = row.and_then(|row| row.outcome.clone()) {
        return Ok(match outcome {
            ToolOutcome::Success { output } if output.get(RESULT).is_some() => {
                ToolOutcome::Success { output: output[RESULT].clone() }
            }
            other => other,
        });
    }
    let arguments = to_client(tool, &requested.arguments);
    let question = RequestedCall { call_id: requested.call_id.clone(), name: ASK.to_owned(), arguments };
    let original = Call { asked: requested, position, journalled, stub_of: None };
    let mut call = Call { asked: question, position, journalled, stub_of: None };
    if journalled.is_none() {
        journal::called(outbox, &original);
    }
    journal::plan(outbox, &mut call, true);
    let confirmed = Call { journalled: call.journalled, ..original };
    if let Checked::Denied(refusal) = restriction::before(past, outbox, &confirmed, &capability(tool), true)?
    {
        journal::note_outcome(outbox, &confirmed, &refusal, None, 0, false);
        return Ok(refusal);
    }
    Err(park(call)?)
}

/// Takes the user's message into the conversation, or parks until there is one.
///
/// # Errors
/// [`Stop::Park`] until the user has answered.
pub fn wait_for_user(
    past: &mut TurnHistory,
    outbox: &mut Outbox,
    requested: RequestedCall,
) -> Result<(), Stop> {
    let row = past.recalled_calls.iter().find(|row| row.call_id == requested.call_id).cloned();
    let journalled = row.as_ref().map(|row| row.state);
    if let Some(outcome) = row.and_then(|row| row.outcome) {
        if let ToolOutcome::Success { output } = &outcome {
            let said = output.as_object().and_then(|answers| answers.values().next());
            let said = said.map(flow::text).unwrap_or_default();
            past.say(outbox, Message::text(Role::User, said));
        }
        return Ok(());
    }
    let mut call = Call { asked: requested, position: 0, journalled, stub_of: None };
    if call.journalled.is_none() {
        journal::called(outbox, &call);
    }
    journal::plan(outbox, &mut call, true);
    Err(park(call)?)
}

fn park(call: Call) -> Result<Stop, Stop> {
    let question = Question::read(&call.asked.arguments).map_err(|why| {
        Stop::from(JobError { retryable: false, ..JobError::new(FailureKind::Internal, why) })
    })?;
    let requested = AskedUser { call_id: call.asked.call_id, question, exposes: serde_json::Map::new() };
    Ok(Stop::Park(Box::new(Wait::Input(requested))))
}

/// The end of EXEC: calls that control the run take effect, or the job waits for the user.
///
/// Nothing here waits for a commit, so that after a crash everything happens again or nothing does.
///
/// # Errors
/// [`Stop::Park`] until the user has answered; [`Stop::Fail`] when the flow cannot take the outcome.
pub fn conclude(turn: &mut Turn) -> Result<(), Stop> {
    let asks = turn.bodies.inferred()?.node.as_ref().and_then(|planned| planned.call.clone());
    if turn.crew().is_none() {
        return Ok(());
    }
    if let Some(requested) = asks {
        return wait_for_user(&mut turn.past, &mut turn.outbox, requested);
    }
    flow::say_consequence(turn)
}
