//! PERSIST: state changes of the turn, atomic with its checkpoint (OSSA §1.6, RS-28 … RS-31).
//!
//! A turn that changed the agent's state waits here until the change is durable, because another turn may
//! have changed the state that it read. A turn without changes waits for nothing.

use crate::flow;
use crate::flow::run::FlowRun;
use crate::state::bodies::PersistBody;
use crate::state::stop::state_conflict;
use crate::state::{Bodies, Outbox, Stop, TurnHistory, shown_changes, trace};
use std::sync::Arc;
use tracing::Instrument;
use turnstone_domain::Identified;
use turnstone_domain::checkpoint::Transaction;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, StateCommitted};
use turnstone_domain::session_state::Operation;
use turnstone_telemetry::names;

/// Runs PERSIST. If another turn has changed the state that this one read, none of its changes is committed.
/// The turn ends, and fails when it is complete.
///
/// # Errors
/// [`Stop::Store`] and [`Stop::LeaseLost`].
pub async fn run(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
) -> Result<(), Stop> {
    let scope = past.state_scope(&outbox.claimed);
    if let Some(scope) = &scope {
        outbox.secure().await?;
        if past.recalled_calls.iter().any(|call| Operation::is_one(&call.name)) {
            Box::pin(past.look_at_state(&outbox.claimed, scope)).await?;
        }
    }
    let changes = past.buffer.as_ref().map(|buffer| buffer.changes().to_vec()).unwrap_or_default();
    let commit = scope.zip(past.buffer.as_ref()).and_then(|(scope, buffer)| buffer.commit(&scope));
    let (node, step) = flow::effect(past, bodies, flow)?;
    let mut body = PersistBody {
        transaction_id: outbox.id_of(Identified::StateTransaction),
        status: Transaction::Committed,
        mode: outbox.claimed.agent.state.mode,
        storage: outbox.claimed.agent.state.storage.clone(),
        changes,
        node,
        step,
    };
    let before = commit.is_some().then(|| outbox.pending.clone());
    if !body.changes.is_empty() {
        let (transaction_id, changes) = (body.transaction_id.clone(), shown_changes(&body.changes));
        outbox.event(&EventBody::StateChanged(StateCommitted { transaction_id, changes }));
    }
    outbox.complete_phase(&body)?;
    if let Some(before) = before {
        outbox.pending.state = commit;
        // Beside the turn, as the conventions demand.
        let parent = &outbox.claimed.trace.invoke;
        let span = trace::with_state(&outbox.claimed, tracing::info_span!(parent: parent, names::STATE_SAVE));
        match Box::pin(outbox.barrier()).instrument(span).await {
            Err(Stop::Fail(error)) if error.kind == FailureKind::State => {
                outbox.undo_phase(before);
                past.lose_state(outbox);
                body.status = Transaction::RolledBack;
                outbox.complete_phase(&body)?;
            }
            other => other?,
        }
    }
    bodies.persisted = Some(Arc::new(body));
    Ok(())
}

/// Checks that the changes of a complete turn were committed.
///
/// # Errors
/// [`Stop::Fail`] when they were rolled back, or when the checkpoint of PERSIST cannot be read.
pub fn committed(bodies: &mut Bodies) -> Result<(), Stop> {
    match bodies.persisted()?.status {
        Transaction::Committed => Ok(()),
        Transaction::RolledBack => Err(state_conflict().into()),
    }
}
