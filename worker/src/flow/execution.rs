//! EXEC of a node: its call is made as any call of an agent is, or the job waits for the user or the client.

use crate::phases::exec::batch;
use crate::phases::exec::call::{self, Call};
use crate::phases::exec::stub;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::question::{AskedUser, Question};
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{CallId, JobError, Wait};
use turnstone_specs::agent_spec::model::{NodeKind, ToolKind};

/// Makes the call of the node, if it has one; returns the calls that were made.
///
/// # Errors
/// As those of calls of an agent; [`Stop::Park`] until the user or the client has answered.
pub async fn run(turn: &mut Turn, draining: &CancellationToken) -> Result<Vec<CallId>, Stop> {
    let planned = turn.inferred()?.node.as_ref().and_then(|planned| planned.call.clone());
    let Some(asked) = planned else { return Ok(Vec::new()) };
    let calls = vec![asked.call_id.clone()];
    let node = turn.node().map(|current| Arc::clone(&current.node));
    match node.as_ref().map(|node| &node.kind) {
        Some(NodeKind::InputMessageNode { .. }) => wait(turn, asked, true).await?,
        Some(NodeKind::ToolNode(tool)) if matches!(tool.kind, ToolKind::ClientTool) => {
            wait(turn, asked, false).await?;
        }
        _ if stub::answered(turn, 0, &asked).await? => {}
        _ => batch::run(turn, vec![(0, asked)], 1, draining).await?,
    }
    Ok(calls)
}

/// Takes the answer, or parks until there is one. A user's answer is part of the conversation.
async fn wait(turn: &mut Turn, asked: RequestedCall, is_said: bool) -> Result<(), Stop> {
    let row = turn.recalled_calls.iter().find(|row| row.call_id == asked.call_id).cloned();
    let journalled = row.as_ref().map(|row| row.state);
    if let Some(outcome) = row.and_then(|row| row.outcome) {
        if let (true, ToolOutcome::Success { output }) = (is_said, &outcome) {
            let said = output.as_object().and_then(|answers| answers.values().next());
            let said = said.map(super::text).unwrap_or_default();
            turn.say(Message::text(Role::User, said));
        }
        return Ok(());
    }
    let question = Question::read(&asked.arguments).map_err(|why| {
        Stop::from(JobError { retryable: false, ..JobError::new(FailureKind::Internal, why) })
    })?;
    let mut call = Call { asked, position: 0, journalled, stub_of: None };
    if call.journalled.is_none() {
        call::called(turn, &call);
    }
    call::plan(turn, &mut call, true);
    let call_id = call.asked.call_id.clone();
    Err(Stop::Park(Box::new(Wait::Input(AskedUser { call_id, question, exposes: serde_json::Map::new() }))))
}
