//! PERSIST: state changes of the turn, atomic with its checkpoint (OSSA §1.6, RS-28 … RS-31).
//!
//! A turn that changed the agent's state waits here until the change is durable, because another turn may
//! have changed the state that it read. A turn without changes waits for nothing.

use crate::flow::{self, NodeResult, TeamStep};
use crate::turn::session_state::shown;
use crate::turn::state::Turn;
use crate::turn::stop::{Stop, state_conflict};
use crate::turn::trace;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use tracing::Instrument;
use turnstone_domain::agent::StateMode;
use turnstone_domain::error::FailureKind;
use turnstone_domain::session_state::StateChange;
use turnstone_domain::{EventName, Phase};

const VERSION: i64 = 2;
/// Versions of the body that this worker reads; version 1 had no state.
pub const VERSIONS: &[i64] = &[1, 2];

/// The result of PERSIST: the record of the turn's transaction. Messages and the tool journal are rows of
/// their own, written as they arose.
#[derive(Debug, Serialize, Deserialize)]
pub struct PersistBody {
    /// The id of the transaction in the audit.
    pub transaction_id: String,
    /// The result of the changes.
    #[serde(default)]
    pub status: Transaction,
    /// The mode in which the agent keeps state.
    #[serde(default)]
    pub mode: StateMode,
    /// The kind of storage that the manifest names.
    #[serde(default)]
    pub storage: Option<String>,
    /// State changes, in order.
    pub changes: Vec<StateChange>,
    /// The result of a node of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeResult>,
    /// The step of the agents of a node that is not done yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<TeamStep>,
}

/// The result of a turn's changes (RS-31).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transaction {
    /// They are committed with the checkpoint that records it.
    #[default]
    Committed,
    /// Another turn had changed the state that this one read.
    RolledBack,
}

/// Runs PERSIST. If another turn has changed the state that this one read, none of its changes is committed.
/// The turn ends, and fails when it is complete.
///
/// # Errors
/// [`Stop::Store`] and [`Stop::LeaseLost`].
pub async fn run(turn: &mut Turn) -> Result<(), Stop> {
    let scope = turn.state_scope();
    if let Some(scope) = &scope {
        turn.secure().await?;
        Box::pin(turn.recall_state(scope)).await?;
    }
    let changes = turn.buffer.as_ref().map(|buffer| buffer.changes().to_vec()).unwrap_or_default();
    let commit = scope.zip(turn.buffer.as_ref()).and_then(|(scope, buffer)| buffer.commit(&scope));
    let (node, step) = flow::effect(turn)?;
    let mut body = PersistBody {
        transaction_id: turn.deps.ids.next(),
        status: Transaction::Committed,
        mode: turn.agent.state.mode,
        storage: turn.agent.state.storage.clone(),
        changes,
        node,
        step,
    };
    let before = commit.is_some().then(|| turn.pending().clone());
    if !body.changes.is_empty() {
        let data = json!({"transaction_id": body.transaction_id, "changes": shown(&body.changes)});
        turn.event(EventName::StateChanged, data);
    }
    turn.complete_phase(Phase::Persist, VERSION, &body)?;
    if let Some(before) = before {
        turn.pending().state = commit;
        let span = trace::state_save(turn);
        match Box::pin(turn.barrier()).instrument(span).await {
            Err(Stop::Fail(error)) if error.kind == FailureKind::State => {
                turn.undo_phase(before);
                turn.lose_state();
                body.status = Transaction::RolledBack;
                turn.complete_phase(Phase::Persist, VERSION, &body)?;
            }
            other => other?,
        }
    }
    turn.persisted = Some(Arc::new(body));
    Ok(())
}

/// Checks that the changes of a complete turn were committed.
///
/// # Errors
/// [`Stop::Fail`] when they were rolled back, or when the checkpoint of PERSIST cannot be read.
pub fn committed(turn: &mut Turn) -> Result<(), Stop> {
    match turn.persisted()?.status {
        Transaction::Committed => Ok(()),
        Transaction::RolledBack => Err(state_conflict().into()),
    }
}
