//! EXEC of a node: its call is made as any call of an agent is, or the job waits for the user or the client.

use super::{admission, batch, stub};
use crate::flow;
use crate::flow::run::{Crew, FlowRun};
use crate::flow::tools::{ASK, RESULT, capability, to_client};
use crate::policy::{self, Act, Ruling};
use crate::state::journal::{self, Call};
use crate::state::{Bodies, Outbox, Stop, TurnHistory};
use serde::Deserialize as _;
use std::sync::Arc;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::question::{AskedUser, ClientCall, Question};
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{CallId, JobError, Wait};
use turnstone_specs::agent_spec::model::{NodeKind, Tool, ToolKind};

/// Makes the call of the node that the turn runs, if it has one; returns the calls that were made.
///
/// # Errors
/// As those of calls of an agent; [`Stop::Park`] until the user or the client has answered.
pub async fn run(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    run: &FlowRun,
) -> Result<Vec<CallId>, Stop> {
    let planned = bodies.inferred()?.node.as_ref().and_then(|planned| planned.call.clone());
    let Some((requested, node)) = planned.zip(run.node.as_ref()) else { return Ok(Vec::new()) };
    let calls = vec![requested.call_id.clone()];
    match &node.node.kind {
        NodeKind::InputMessageNode { .. } => wait_for_user(past, outbox, requested)?,
        NodeKind::AgentNode(_) if requested.name == ASK => wait_for_user(past, outbox, requested)?,
        NodeKind::ToolNode(tool) if matches!(tool.kind, ToolKind::ClientTool) => {
            let arguments =
                ClientCall::deserialize(&requested.arguments).map(|call| call.arguments).unwrap_or_default();
            let requested = RequestedCall { name: tool.head.name.clone(), arguments, ..requested };
            let call = past.call(0, requested);
            bodies.outcome = Some(by_client(past, outbox, tool, call).await?);
        }
        NodeKind::ParallelMapNode { .. } | NodeKind::ParallelFlowNode(_) => {
            bodies.outcome = Some(flow::run_parallel(past, outbox, run, &requested)?);
        }
        _ => {
            let mut call = past.call(0, requested);
            if !stub::answered(past, bodies, outbox, &mut call).await? {
                batch::run(past, bodies, outbox, vec![(0, call.asked)]).await?;
            }
        }
    }
    if matches!(node.node.kind, NodeKind::AgentNode(_)) {
        flow::say_consequence(past, bodies, outbox, run)?;
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
pub async fn call_client(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    tool: &Tool,
    call: Call,
) -> Result<(), Stop> {
    let call_id = call.asked.call_id.clone();
    let refusal = match call.journalled {
        None => admission::callable(bodies, outbox, &call).err(),
        Some(_) => None,
    };
    let outcome = match refusal {
        Some(refusal) => refusal,
        None => by_client(past, outbox, tool, call).await?,
    };
    past.say(outbox, Message::tool(call_id, outcome.for_model()));
    Ok(())
}

/// The result of a tool of the client, cast to its outputs.
async fn by_client(
    past: &TurnHistory,
    outbox: &mut Outbox,
    tool: &Tool,
    mut call: Call,
) -> Result<ToolOutcome, Stop> {
    match past.row(&call.asked.call_id).and_then(|row| row.outcome.clone()) {
        Some(ToolOutcome::Success { output }) if output.get(RESULT).is_some() => {
            return Ok(ToolOutcome::Success { output: output[RESULT].clone() });
        }
        Some(other) => return Ok(other),
        None => {}
    }
    if call.journalled.is_none() {
        journal::called(outbox, &call);
    }
    let arguments = to_client(tool, &call.asked.arguments);
    let asked = RequestedCall { call_id: call.asked.call_id.clone(), name: ASK.to_owned(), arguments };
    let mut question = Call { asked, position: call.position, journalled: call.journalled, stub_of: None };
    journal::plan(outbox, &mut question, true);
    call.journalled = question.journalled;
    let act = Act::Call { call: &call, capability: &capability(tool), idempotent: true };
    if let Ruling::Deny(refusal) = policy::may(past, outbox, act).await? {
        journal::note_outcome(outbox, &call, &refusal.clone().into(), false);
        return Ok(refusal);
    }
    Err(park(question)?)
}

/// Takes the user's message into the conversation, or parks until there is one.
///
/// # Errors
/// [`Stop::Park`] until the user has answered.
fn wait_for_user(past: &mut TurnHistory, outbox: &mut Outbox, requested: RequestedCall) -> Result<(), Stop> {
    if let Some(outcome) = past.row(&requested.call_id).and_then(|row| row.outcome.as_ref()) {
        if let ToolOutcome::Success { output } = outcome {
            let said = output.as_object().and_then(|answers| answers.values().next());
            let said = said.map(flow::text).unwrap_or_default();
            past.say(outbox, Message::text(Role::User, said));
        }
        return Ok(());
    }
    let mut call = past.call(0, requested);
    if call.journalled.is_none() {
        journal::called(outbox, &call);
    }
    journal::plan(outbox, &mut call, true);
    Err(park(call)?)
}

fn park(call: Call) -> Result<Stop, Stop> {
    let question = Question::read(&call.asked.arguments)
        .map_err(|why| Stop::from(JobError::new(FailureKind::Internal, why).for_good()))?;
    let requested = AskedUser { call_id: call.asked.call_id, question, exposes: serde_json::Map::new() };
    Ok(Wait::Input(requested).into())
}

/// The end of EXEC: calls that control the run take effect, or the job waits for the user.
///
/// Nothing here waits for a commit, so that after a crash everything happens again or nothing does.
///
/// # Errors
/// [`Stop::Park`] until the user has answered; [`Stop::Fail`] when the flow cannot take the outcome.
pub fn conclude(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    run: &FlowRun,
) -> Result<(), Stop> {
    match bodies.inferred()?.node.as_ref().and_then(|planned| planned.call.clone()) {
        Some(requested) => wait_for_user(past, outbox, requested),
        None => flow::say_consequence(past, bodies, outbox, run),
    }
}
