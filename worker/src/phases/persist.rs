//! PERSIST: state changes of the turn, atomic with its checkpoint (OSSA §1.6, RS-28 … RS-31).
//!
//! A turn that changed the agent's state waits here until that is durable, because another turn may have changed what it
//! has read; a turn that changed nothing waits for nothing.

use crate::turn::session_state::shown;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnstone_domain::agent::StateMode;
use turnstone_domain::error::FailureKind;
use turnstone_domain::session_state::StateChange;
use turnstone_domain::{EventName, Phase};

const VERSION: i64 = 2;

/// What PERSIST leaves: the record of the turn's transaction. Messages and the tool journal are rows that were written
/// when they became true.
#[derive(Debug, Serialize, Deserialize)]
pub struct PersistBody {
    /// Names the transaction in the audit.
    pub transaction_id: String,
    /// `committed`: what was rolled back has no checkpoint, only an event.
    pub status: String,
    /// How the agent keeps state.
    pub mode: StateMode,
    /// The kind of storage that the manifest names.
    pub storage: Option<String>,
    /// State changes, in order.
    pub changes: Vec<StateChange>,
}

/// Runs PERSIST.
///
/// # Errors
/// [`Stop::Fail`] when another turn changed the state that this one has read: nothing of it is committed then.
pub async fn run(turn: &mut Turn) -> Result<(), Stop> {
    let scope = turn.state_scope();
    if let Some(scope) = &scope {
        turn.recall_state(scope).await?;
    }
    let changes = turn.buffer.as_ref().map(|buffer| buffer.changes().to_vec()).unwrap_or_default();
    let commit = scope.zip(turn.buffer.as_ref()).and_then(|(scope, buffer)| buffer.commit(&scope));
    let body = PersistBody {
        transaction_id: turn.deps.ids.next(),
        status: "committed".to_owned(),
        mode: turn.agent.state.mode,
        storage: turn.agent.state.storage.clone(),
        changes,
    };
    let before = commit.is_some().then(|| turn.pending().clone());
    if !body.changes.is_empty() {
        let data = json!({"transaction_id": body.transaction_id, "changes": shown(&body.changes)});
        turn.event(EventName::StateChanged, data);
    }
    turn.complete_phase(Phase::Persist, VERSION, &body, (0, 0), Value::Null)?;
    let Some(before) = before else { return Ok(()) };
    turn.pending().state = commit;
    match turn.barrier().await {
        Err(Stop::Fail(error)) if error.kind == FailureKind::State => {
            turn.undo_phase(before);
            Err(Stop::Fail(error))
        }
        other => other,
    }
}
