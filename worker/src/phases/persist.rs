//! PERSIST: state changes of the turn, atomic with its checkpoint (OSSA §1.6).

use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnstone_domain::Phase;

const VERSION: i64 = 1;

/// What PERSIST leaves. Agents of this version have no state of their own, so the list of changes is empty; messages
/// and the tool journal are rows that were written when they became true.
#[derive(Debug, Serialize, Deserialize)]
pub struct PersistBody {
    /// Names the transaction in the audit.
    pub transaction_id: String,
    /// State changes, in order.
    pub changes: Vec<Value>,
}

/// Runs PERSIST.
///
/// # Errors
/// None that a test could provoke; the signature is that of every phase.
pub fn run(turn: &mut Turn) -> Result<(), Stop> {
    let body = PersistBody { transaction_id: turn.deps.ids.next(), changes: Vec::new() };
    turn.complete_phase(Phase::Persist, VERSION, &body, (0, 0), Value::Null)
}
