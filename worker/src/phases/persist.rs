//! PERSIST: state changes of the turn, atomic with its checkpoint (OSSA §1.6, RS-28 … RS-31).
//!
//! A turn that changed the agent's state waits here until the change is durable, because another turn may
//! have changed the state that it read. A turn without changes waits for nothing.

use crate::flow;
use crate::state::bodies::PersistBody;
use crate::state::stop::state_conflict;
use crate::state::{Bodies, Stop, Turn, shown_changes, trace};
use std::sync::Arc;
use tracing::Instrument;
use turnstone_domain::checkpoint::Transaction;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, StateCommitted};

/// Runs PERSIST. If another turn has changed the state that this one read, none of its changes is committed.
/// The turn ends, and fails when it is complete.
///
/// # Errors
/// [`Stop::Store`] and [`Stop::LeaseLost`].
pub async fn run(turn: &mut Turn) -> Result<(), Stop> {
    let scope = turn.past.state_scope(&turn.outbox.claimed);
    if let Some(scope) = &scope {
        turn.outbox.secure().await?;
        Box::pin(turn.past.recall_state(&turn.outbox.claimed, scope)).await?;
    }
    let changes = turn.past.buffer.as_ref().map(|buffer| buffer.changes().to_vec()).unwrap_or_default();
    let commit = scope.zip(turn.past.buffer.as_ref()).and_then(|(scope, buffer)| buffer.commit(&scope));
    let (node, step) = flow::effect(turn)?;
    let mut body = PersistBody {
        transaction_id: turn.outbox.claimed.deps.ids.next(),
        status: Transaction::Committed,
        mode: turn.outbox.claimed.agent.state.mode,
        storage: turn.outbox.claimed.agent.state.storage.clone(),
        changes,
        node,
        step,
    };
    let before = commit.is_some().then(|| turn.outbox.pending.clone());
    if !body.changes.is_empty() {
        let (transaction_id, changes) = (body.transaction_id.clone(), shown_changes(&body.changes));
        turn.outbox.event(&EventBody::StateChanged(StateCommitted { transaction_id, changes }));
    }
    turn.outbox.complete_phase(&body)?;
    if let Some(before) = before {
        turn.outbox.pending.state = commit;
        let span = trace::state_save(&turn.outbox.claimed);
        match Box::pin(turn.outbox.barrier()).instrument(span).await {
            Err(Stop::Fail(error)) if error.kind == FailureKind::State => {
                turn.outbox.undo_phase(before);
                turn.past.lose_state(&mut turn.outbox);
                body.status = Transaction::RolledBack;
                turn.outbox.complete_phase(&body)?;
            }
            other => other?,
        }
    }
    turn.bodies.persisted = Some(Arc::new(body));
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
