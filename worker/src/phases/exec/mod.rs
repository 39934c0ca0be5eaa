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
//! | 3. restrictions of the capability hold, reviewers approve | `policy/restriction`, `approvals` |
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
mod approvals;
mod artifacts;
mod ask;
mod batch;
mod circuit;
mod context;
mod delegate;
mod delegate_failure;
pub mod delegates;
mod flight;
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
use crate::flow::run::Crew;
use crate::state::journal::Call;
use crate::state::{Bodies, Outbox, Stop, Turn, TurnHistory};
use admission::MAX_CALLS;
use turnstone_domain::checkpoint::ExecBody;
use turnstone_domain::message::RequestedCall;

/// Runs EXEC: gives every call of the model's answer its outcome. After a crash or a park it runs again from its start, and
/// skips the calls that have an outcome.
///
/// # Errors
/// [`Stop::Park`] when a reviewer, the user or a delegate has to answer first. [`Stop::Fail`] when calls repeat too often
/// (`short_circuit`), a reviewer rejected, or a handler of the document aborts. [`Stop::Drain`] when the worker drains
/// while a call waits for its next try.
pub async fn run(turn: &mut Turn) -> Result<(), Stop> {
    let Turn { past, bodies, outbox, flow } = turn;
    stub::recalled(past);
    let run = flow.as_deref();
    let calls = match run.filter(|run| run.node.is_some()) {
        Some(run) => Box::pin(node::run(past, bodies, outbox, run)).await?,
        None => {
            let requested = past.conversation.answer().map(|answer| answer.tool_calls.clone());
            let requested = requested.unwrap_or_default();
            let crew = run.and_then(|run| run.crew.as_ref());
            if !requested.is_empty() {
                Box::pin(run_calls(past, bodies, outbox, crew, &requested)).await?;
            }
            if let (Some(run), Some(_)) = (run, crew) {
                node::conclude(past, bodies, outbox, run)?;
            }
            requested.into_iter().map(|call| call.call_id).collect()
        }
    };
    outbox.complete_phase(&ExecBody { calls })
}

/// Runs the calls that have no outcome yet.
async fn run_calls(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    crew: Option<&Crew>,
    requested: &[RequestedCall],
) -> Result<(), Stop> {
    // A fork reuses recorded outcomes one after the other, in the order of its calls.
    let parallel = past.fork.is_none()
        && (2..=MAX_CALLS).contains(&requested.len())
        && !requested.iter().any(|call| ask::is_one(&outbox.claimed, bodies, &call.name))
        && admission::may_be_parallel(&outbox.claimed, past, bodies, requested);
    let open: Vec<(usize, RequestedCall)> = requested
        .iter()
        .enumerate()
        .filter(|(_, call)| {
            !past.conversation.has_outcome(&call.call_id) && !flow::controls(crew, &call.name)
        })
        .map(|(position, call)| (position, call.clone()))
        .collect();
    if parallel {
        return batch::run(past, bodies, outbox, open).await;
    }
    for (at, (position, asked)) in open.iter().enumerate() {
        let call = past.call(*position, asked.clone());
        if let Err(stop) = run_call(past, bodies, outbox, crew, call, requested).await {
            return Err(approvals::ask_ahead(past, bodies, outbox, (stop, crew), &open[at + 1..]).await);
        }
    }
    Ok(())
}

/// Runs one call of the answer.
async fn run_call(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    crew: Option<&Crew>,
    mut call: Call,
    requested: &[RequestedCall],
) -> Result<(), Stop> {
    let name = &call.asked.name;
    if let Some(tool) = node::client_tool(crew, name) {
        return node::call_client(past, bodies, outbox, &tool, call).await;
    }
    if state_call::is_one(&outbox.claimed.agent, name) {
        return state_call::run(past, outbox, call).await;
    }
    if stub::answered(past, bodies, outbox, &mut call).await? {
        return Ok(());
    }
    if ask::is_one(&outbox.claimed, bodies, &call.asked.name) {
        return ask::run(past, bodies, outbox, call).await;
    }
    if delegate::is_one(&outbox.claimed, past, &call.asked) {
        return delegate::run(past, bodies, outbox, call, requested).await;
    }
    batch::run(past, bodies, outbox, vec![(call.position, call.asked)]).await
}
