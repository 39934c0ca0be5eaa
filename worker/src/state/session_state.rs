//! The agent's state within a turn (OSSA §3): read at the first operation, changed in memory, and committed
//! by PERSIST or rolled back.

use super::claimed::Claimed;
use super::outbox::Outbox;
use super::past::TurnHistory;
use super::stop::Stop;
use super::trace;
use serde_json::Value;
use tracing::Instrument;
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{ChangedKey, EventBody, StateDropped};
use turnstone_domain::message::{Message, Role};
use turnstone_domain::session_state::{Buffer, Operation, Scope, StateChange};
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_telemetry::names;

impl TurnHistory {
    /// Returns the owner of the agent's state; `None` when it keeps none.
    #[must_use]
    pub fn state_scope(&self, claimed: &Claimed) -> Option<Scope> {
        match self.fork {
            Some(_) => Scope::of_fork(&claimed.agent, &claimed.engagement),
            None => Scope::of(&claimed.agent, &claimed.engagement, &claimed.job.meta),
        }
    }

    /// Reads the state, unless this turn has read it. Changes that an earlier process made in the same turn
    /// are applied again from the journal, without a call.
    ///
    /// # Errors
    /// [`Stop::Store`].
    pub async fn look_at_state(&mut self, claimed: &Claimed, scope: &Scope) -> Result<(), Stop> {
        if self.buffer.is_some() {
            return Ok(());
        }
        let now = claimed.deps.clock.now();
        let mut buffer = {
            let span = trace::with_state(claimed, tracing::info_span!(names::STATE_LOAD));
            let loading = claimed.deps.ledger.reads().state(scope, now).instrument(span);
            Buffer::new(&claimed.agent.state, loading.await?)
        };
        if !buffer.writes_at_once() {
            for call in &self.recalled_calls {
                let Some(ToolOutcome::Success { output }) = &call.outcome else { continue };
                let version = output.get("version").and_then(Value::as_i64);
                if let Ok(operation) = Operation::read(&call.name, &call.input) {
                    buffer.repeat(&operation, version, now);
                }
            }
        }
        self.buffer = Some(buffer);
        Ok(())
    }

    /// Drops the changes of a turn that failed for good, and publishes that. A turn that is retried resumes
    /// where it stopped, with its changes.
    pub fn roll_back_state(&mut self, outbox: &mut Outbox, error: &JobError, for_good: bool) {
        let Some(buffer) = self.buffer.take().filter(|buffer| for_good && !buffer.writes_at_once()) else {
            return;
        };
        if !buffer.changes().is_empty() && outbox.next_phase().is_some() {
            tell_of_rollback(outbox, buffer.changes(), error.code());
        }
    }

    /// Drops the changes of a turn that lost against another one. It runs again as the next turn, because its
    /// own calls stay on record. The model learns that its changes are gone.
    pub fn lose_state(&mut self, outbox: &mut Outbox) {
        let Some(buffer) = self.buffer.take() else { return };
        tell_of_rollback(outbox, buffer.changes(), FailureKind::State.code());
        let text = format!(
            "The changes that you made to your state in turn {} were rolled back, because another conversation changed it \
             at the same time. Read it again, and make them again if they are still right.",
            outbox.position.turn
        );
        self.say(outbox, Message::text(Role::System, text));
    }
}

fn tell_of_rollback(outbox: &mut Outbox, changes: &[StateChange], reason: &str) {
    let changes = shown(changes);
    outbox.event(&EventBody::StateRolledBack(StateDropped { changes, reason: reason.to_owned() }));
}

/// Returns keys and operations, without values.
pub fn shown(changes: &[StateChange]) -> Vec<ChangedKey> {
    let shown =
        |change: &StateChange| ChangedKey { key: change.key.clone(), operation: change.operation.clone() };
    changes.iter().map(shown).collect()
}
