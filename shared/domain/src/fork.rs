//! A fork: an engagement that shares another one's past up to a turn, and continues from there with something changed.
//!
//! The changes belong to the fork. Everything before the fork point belongs to the other engagement, and is read there.

mod recorded;

pub use recorded::{QUESTIONS, Recorded, RecordedCall, RecordedCheck};

use crate::agent::ModelRef;
use crate::checkpoint::{NormBody, PersistBody, Transaction};
use crate::message::{Role, StoredMessage};
use crate::session_state::StateSnapshot;
use crate::tool_call::ToolOutcome;
use crate::{AgentDefinition, Checkpoint, EngagementId, Phase};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// The fork point: the phases before it are shared, and this one is the first that runs anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ForkPoint {
    /// The turn, from 1.
    pub turn: i64,
    /// The first phase that is run anew.
    pub phase: Phase,
}

/// The changes of a fork against the engagement that it comes from.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ForkChanges {
    /// The agent's instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The one model that is called, by its provider's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider that is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Outcomes that replace those of recorded calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_results: BTreeMap<String, ToolOutcome>,
}

impl ForkChanges {
    /// Changes an agent.
    pub fn apply(&self, agent: &mut AgentDefinition) {
        if let Some(prompt) = &self.prompt {
            agent.instructions.clone_from(prompt);
        }
        if self.model.is_none() && self.provider.is_none() {
            return;
        }
        // A fork with another model shows what that model does, so there are no fallbacks.
        let mut first = agent.model.models.first().cloned();
        if let Some(model) = &self.model {
            let provider = first.and_then(|first| first.provider);
            first = Some(ModelRef { provider, model: model.clone() });
        }
        if let (Some(first), Some(provider)) = (&mut first, &self.provider) {
            first.provider = Some(provider.clone());
        }
        agent.model.models = first.into_iter().collect();
    }

    /// Returns the names of the changes, without their content.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let named = [("prompt", &self.prompt), ("model", &self.model), ("provider", &self.provider)];
        let set = named.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name.to_owned());
        set.chain(self.tool_results.keys().map(|call| format!("tool-result {call}"))).collect()
    }
}

/// The origin of a fork, and its changes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Origin {
    /// The engagement that it was forked from.
    pub engagement_id: EngagementId,
    /// The fork point.
    #[serde(flatten)]
    pub point: ForkPoint,
    /// True if its tools are called; otherwise recorded outcomes replace them.
    pub live_tools: bool,
    /// The changes.
    pub changes: ForkChanges,
}

/// Returns the number of a turn's messages that precede one of its phases.
///
/// NORM writes the inputs, INFER the answer, EXEC the outcomes. The checkpoint of NORM counts its messages; messages
/// between those and the answer belong to INFER.
#[must_use]
pub fn said_before(phase: Phase, checkpoints: &[Checkpoint], messages: &[StoredMessage]) -> usize {
    let inputs = checkpoints
        .iter()
        .find_map(Checkpoint::read::<NormBody>)
        .map_or(0, |norm| norm.messages)
        .min(messages.len());
    let after_answer = messages
        .iter()
        .skip(inputs)
        .position(|stored| stored.message.role == Role::Assistant)
        .map_or(inputs, |at| inputs + at + 1);
    let after_outcomes = messages
        .iter()
        .rposition(|stored| stored.message.role == Role::Tool)
        .map_or(after_answer, |at| (at + 1).max(after_answer));
    match phase {
        Phase::Init | Phase::Norm => 0,
        Phase::Resol | Phase::Infer => inputs,
        Phase::Exec => after_answer,
        Phase::Persist => after_outcomes,
        Phase::Emit => {
            let lost = checkpoints
                .iter()
                .filter_map(Checkpoint::read::<PersistBody>)
                .any(|persisted| persisted.status == Transaction::RolledBack);
            (after_outcomes + usize::from(lost)).min(messages.len())
        }
    }
}

/// Returns an agent's state at a point: the commits of PERSIST before it, and the current values of keys that the
/// engagement never changed.
///
/// `persisted` are all checkpoints of PERSIST, oldest first.
#[must_use]
pub fn state_at(point: ForkPoint, now: &StateSnapshot, persisted: &[Checkpoint]) -> BTreeMap<String, Value> {
    let mut state: BTreeMap<String, Value> =
        now.entries.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
    let mut touched = HashSet::new();
    for done in persisted {
        let Some(body) = done.read::<PersistBody>().filter(|body| body.status == Transaction::Committed)
        else {
            continue;
        };
        let shared = done.turn < point.turn || (done.turn == point.turn && point.phase > Phase::Persist);
        for change in body.changes {
            let first = touched.insert(change.key.clone());
            let value = match (shared, first) {
                (true, _) => change.new_value,
                (false, true) => change.previous_value,
                (false, false) => continue,
            };
            match value {
                Value::Null => state.remove(&change.key),
                value => state.insert(change.key, value),
            };
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::session_state::StateEntry;
    use crate::{Spent, Timestamp};
    use serde_json::json;

    fn done(turn: i64, phase: Phase, body: Value) -> Checkpoint {
        let (version, duration_ms, tokens_in, tokens_out) = (1, 0, 0, 0);
        let (at, spent) = (Timestamp(0), Spent::default());
        Checkpoint { turn, phase, version, body, duration_ms, tokens_in, tokens_out, at, spent }
    }

    #[test]
    fn what_was_said_is_cut_at_the_phase() {
        let say = |role, text: &str| StoredMessage {
            seq: 1,
            turn: 1,
            message: Message::text(role, text),
            created_at: Timestamp(0),
        };
        let messages = [
            say(Role::User, "in"),
            say(Role::System, "made again"),
            say(Role::Assistant, "call"),
            say(Role::Tool, "out"),
            say(Role::System, "not accepted"),
        ];
        let norm = [done(1, Phase::Norm, json!({"messages": 1}))];
        let cut = Phase::ALL.map(|phase| said_before(phase, &norm, &messages));
        assert_eq!(cut, [0, 0, 1, 1, 3, 4, 4]);
        assert_eq!(said_before(Phase::Exec, &[], &[]), 0);
    }

    #[test]
    fn the_state_is_that_of_the_point() {
        let change = |key: &str, old: Value, new: Value| json!({"key": key, "previous_value": old, "new_value": new, "operation": "set", "timestamp": 0});
        let changed = |turn, changes: Value| {
            done(turn, Phase::Persist, json!({"transaction_id": "t", "changes": changes}))
        };
        let entry = |key: &str, value: Value| StateEntry {
            key: key.into(),
            value,
            version: 1,
            updated_at: Timestamp(0),
            expires_at: None,
        };
        let now = StateSnapshot {
            version: 3,
            entries: vec![entry("a", json!(3)), entry("of another", json!(0)), entry("late", json!(1))],
        };
        let history = [
            changed(1, json!([change("a", json!(null), json!(1)), change("gone", json!(null), json!("x"))])),
            changed(2, json!([change("a", json!(1), json!(2)), change("gone", json!("x"), json!(null))])),
            changed(3, json!([change("a", json!(2), json!(3)), change("late", json!(null), json!(1))])),
        ];
        let at =
            |turn, phase| serde_json::to_value(state_at(ForkPoint { turn, phase }, &now, &history)).unwrap();
        assert_eq!(at(1, Phase::Init), json!({"of another": 0}));
        assert_eq!(at(2, Phase::Infer), json!({"a": 1, "gone": "x", "of another": 0}));
        assert_eq!(at(2, Phase::Emit), json!({"a": 2, "of another": 0}));
        assert_eq!(at(4, Phase::Init), json!({"a": 3, "late": 1, "of another": 0}));
    }
}
