//! EXEC: runs the tool calls that the model requested, in the order of its requests, or in parallel when all of them
//! allow it (OSSA §1.5).
//!
//! A barrier precedes and follows every call: the intent is durable before the request is sent, and the outcome before any
//! step relies on it. After a crash, a call that was sent and has no outcome is repeated only if it is idempotent.
//! Otherwise a reviewer decides. There is never a blind retry.
//!
//! | stage of a tool call | file |
//! |---|---|
//! | 1. a fork reuses the outcome on record | `stub` |
//! | 2. name, arguments and sequence are checked | `admission` |
//! | 3. restrictions of the capability hold, reviewers approve | `policy/restriction` |
//! | 4. the circuit breaker lets it through | `circuit` |
//! | 5. the intent is journalled and paid for, in one barrier | `state/journal`, `state/pay` |
//! | 6. the request is sent, under the identity of the call | `send`, `identity`, `remote_calls` |
//! | 7. a failure is repeated or handled | `remedy`, `tries` |
//! | 8. files are checked and kept | `artifacts` |
//! | 9. the outcome is journalled and reaches the model | `tool_outcome` |
//!
//! `batch` runs the stages for all calls of an answer, and `again` for a call of an earlier turn. Other kinds of calls share
//! stages 1 to 3 and 9. `ask` is a question to the user, and `delegate` a call of another agent of this server.
//! `state_call` reads and changes the agent's own state. `node` is a step of a flow, or a tool of the client. Each adds
//! its outcome to the conversation as a message of the role `tool`, or parks the job.

mod admission;
mod again;
mod artifacts;
mod ask;
mod batch;
mod circuit;
mod context;
mod delegate;
mod delegate_failure;
pub mod delegates;
mod identity;
mod node;
mod remedy;
mod remote_calls;
mod send;
pub mod state_call;
mod stub;
mod tool_outcome;
mod tries;

pub use again::again;
pub use delegate::{handed_over, took_over};

use crate::flow;
use crate::state::{Stop, Turn};
use admission::MAX_CALLS;
use tokio_util::sync::CancellationToken;
use turnstone_domain::checkpoint::ExecBody;
use turnstone_domain::message::RequestedCall;

/// Runs EXEC: gives every call of the model's answer its outcome. After a crash or a park it runs again from its start, and
/// skips the calls that have an outcome.
///
/// # Errors
/// [`Stop::Park`] when a reviewer, the user or a delegate has to answer first. [`Stop::Fail`] when calls repeat too often
/// (`short_circuit`), a reviewer rejected, or a handler of the document aborts. [`Stop::Drain`] when the worker drains
/// while a call waits for its next try.
pub async fn run(turn: &mut Turn, draining: &CancellationToken) -> Result<(), Stop> {
    if turn.node().is_some() {
        stub::recalled(&mut turn.past);
        let calls = Box::pin(node::run(turn, draining)).await?;
        return turn.outbox.complete_phase(&ExecBody { calls });
    }
    let requested =
        turn.past.conversation.answer().map(|answer| answer.tool_calls.clone()).unwrap_or_default();
    let body = ExecBody { calls: requested.iter().map(|call| call.call_id.clone()).collect() };
    stub::recalled(&mut turn.past);
    if !requested.is_empty() {
        Box::pin(run_calls(turn, requested, draining)).await?;
    }
    node::conclude(turn)?;
    turn.outbox.complete_phase(&body)
}

/// Runs the calls that have no outcome yet.
async fn run_calls(
    turn: &mut Turn,
    requested: Vec<RequestedCall>,
    draining: &CancellationToken,
) -> Result<(), Stop> {
    let all = requested.clone();
    let mut open: Vec<_> = requested.into_iter().enumerate().collect();
    // A fork reuses recorded outcomes one after the other, in the order of its calls.
    let parallel = turn.past.fork.is_none()
        && open.len() > 1
        && open.len() <= MAX_CALLS
        && !open
            .iter()
            .any(|(_, requested)| ask::is_one(&turn.outbox.claimed, &turn.bodies, &requested.name))
        && admission::may_be_parallel(&turn.outbox.claimed, &turn.past, &turn.bodies, &open);
    open.retain(|(_, requested)| {
        !turn.past.conversation.has_outcome(&requested.call_id)
            && !flow::controls(turn.crew(), &requested.name)
    });
    if parallel {
        return batch::run(turn, open, MAX_CALLS, draining).await;
    }
    for (position, requested) in open {
        if let Some(tool) = node::client_tool(turn.crew(), &requested.name) {
            node::call_client(
                &mut turn.past,
                &mut turn.bodies,
                &mut turn.outbox,
                &tool,
                requested,
                position,
                MAX_CALLS,
            )?;
        } else if state_call::is_one(&turn.outbox.claimed.agent, &requested.name) {
            state_call::run(&mut turn.past, &mut turn.outbox, position, requested, position < MAX_CALLS)
                .await?;
        } else if stub::answered(turn, position, &requested).await? {
            continue;
        } else if ask::is_one(&turn.outbox.claimed, &turn.bodies, &requested.name) {
            ask::run(turn, position, requested, position < MAX_CALLS).await?;
        } else if delegate::is_one(&turn.outbox.claimed, &turn.past, &requested) {
            delegate::run(turn, position, &all).await?;
        } else {
            batch::run(turn, vec![(position, requested)], MAX_CALLS, draining).await?;
        }
    }
    Ok(())
}
