//! The words of models that may be shown outside: the one rule for every endpoint of an engagement (OAS-35, OAS-43).
//!
//! With an output guardrail, an answer is shown once it has passed. Words that the guardrail never checked are not: a text
//! beside tool calls, their arguments and outcomes, an answer that was sent back, a summary, the state of a session. Of a
//! delegate that works for a guarded or a restricting agent, only its caller shows words. The audit has everything.

use crate::api::App;
use crate::reply::Failure;
use serde_json::json;
use std::collections::BTreeSet;
use turnstone_domain::agent::safety::Safety;
use turnstone_domain::checkpoint::EmitBody;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::message::{Role, StoredMessage};
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};
use turnstone_domain::{AgentDefinition, Checkpoint, Phase};

/// Turns that are searched for answers that have passed.
const TURNS: u32 = 1000;
/// Replaces a text that is not shown.
pub(crate) const WITHHELD: &str = "(withheld)";

/// The part of an engagement that may be shown.
pub(crate) struct Visible {
    turns: Turns,
    /// The filters of what leaves (RS-23).
    safety: Safety,
    /// The names of tools that no model made up.
    tools: BTreeSet<String>,
}

/// The turns of an engagement that may be shown.
enum Turns {
    /// All of them.
    All,
    /// The answers of these turns, and the rest of the turns until the last of them without words of models.
    Answers(BTreeSet<i64>),
    /// None.
    Nothing,
}

impl Visible {
    /// Returns the part of an engagement of this agent that may be shown now.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn of(
        app: &App,
        engagement: &Engagement,
        agent: &AgentDefinition,
    ) -> Result<Self, Failure> {
        let safety = agent.safety.clone();
        let tools = agent.capabilities.iter().map(|capability| capability.name.clone()).collect();
        if agent.guardrails.is_shown_by_its_caller() {
            return Ok(Self { turns: Turns::Nothing, safety, tools });
        }
        if !agent.guardrails.hold_back() {
            return Ok(Self { turns: Turns::All, safety, tools });
        }
        let turns = app.api.store.views.checkpoints_of(&engagement.id, Phase::Emit, TURNS).await?;
        let passed = |emit: EmitBody| emit.released;
        let passed = turns.iter().filter(|row| row.checkpoint.read::<EmitBody>().is_some_and(passed));
        Ok(Self { turns: Turns::Answers(passed.map(|row| row.checkpoint.turn).collect()), safety, tools })
    }

    /// Returns true if a turn may be shown; 0 is that of messages of earlier engagements.
    pub(crate) fn has(&self, turn: i64) -> bool {
        match &self.turns {
            Turns::All => true,
            Turns::Answers(turns) => turn <= turns.last().copied().unwrap_or(0),
            Turns::Nothing => turn <= 0,
        }
    }

    /// Returns true if inputs may be shown before their turns are: a user wrote them, and no model.
    pub(crate) fn has_inputs(&self) -> bool {
        !matches!(self.turns, Turns::Nothing)
    }

    /// Returns true if the values that a model wrote into the state of its session may be shown.
    pub(crate) fn has_state(&self) -> bool {
        matches!(self.turns, Turns::All)
    }

    /// Removes the words of a message that no guardrail has checked, and personal data.
    pub(crate) fn withhold(&self, stored: &mut StoredMessage) {
        let message = &mut stored.message;
        self.safety.redact_message(message);
        let Turns::Answers(turns) = &self.turns else { return };
        // No guardrail reads them.
        message.attached = None;
        let is_said = message.role != Role::User || message.summary.is_some();
        // Recalled messages passed the guardrail in their own engagements.
        let has_passed = (turns.contains(&stored.turn) || stored.turn <= 0)
            && message.role == Role::Assistant
            && message.tool_calls.is_empty()
            && message.summary.is_none();
        if !is_said || has_passed {
            return;
        }
        message.parts.clear();
        if !message.content.is_empty() {
            WITHHELD.clone_into(&mut message.content);
        }
        for call in &mut message.tool_calls {
            call.arguments = json!({});
            self.withhold_name(&mut call.name);
        }
    }

    /// Removes the name of a tool that a model made up.
    fn withhold_name(&self, name: &mut String) {
        if !self.tools.contains(name) {
            WITHHELD.clone_into(name);
        }
    }

    /// Removes the values that a model wrote from a checkpoint; no body has other words of it.
    pub(crate) fn withhold_values(&self, checkpoint: &mut Checkpoint) {
        for member in ["changes", "node"] {
            if let Some(said) = checkpoint.body.get_mut(member) {
                self.safety.redact(said);
            }
        }
        if checkpoint.phase == Phase::Persist && !self.has_state() {
            checkpoint.body["changes"] = json!([]);
        }
    }

    /// Removes the words of a call that no guardrail has checked: its arguments, and its outcome, which may quote them or be
    /// another agent's answer.
    pub(crate) fn withhold_call(&self, call: &mut ToolCall) {
        self.safety.redact(&mut call.input);
        if self.has_state() {
            return;
        }
        call.input = json!({});
        self.withhold_name(&mut call.name);
        call.withheld |= call.outcome.is_some();
        if let Some(ToolOutcome::Error { message, .. }) = &mut call.outcome {
            WITHHELD.clone_into(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::CallId;
    use turnstone_domain::Timestamp;
    use turnstone_domain::message::{Message, RequestedCall};

    fn stored(turn: i64, message: Message) -> StoredMessage {
        StoredMessage { seq: 1, turn, message, created_at: Timestamp(0) }
    }

    fn visible_of(turns: Turns) -> Visible {
        Visible { turns, safety: Safety::default(), tools: BTreeSet::new() }
    }

    #[test]
    fn words_beside_an_answer_that_passed_stay_hidden() {
        let call = RequestedCall {
            call_id: CallId("c".into()),
            name: "search".into(),
            arguments: json!({"q": "secret"}),
        };
        let asking = Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "I look for it") };
        let passed = visible_of(Turns::Answers([3].into()));
        assert!(passed.has(1) && passed.has(3) && !passed.has(4) && passed.has_inputs());
        let shown = |turn, message: &Message| {
            let mut stored = stored(turn, message.clone());
            passed.withhold(&mut stored);
            stored.message
        };
        let asked = shown(1, &asking);
        assert_eq!((asked.content.as_str(), &asked.tool_calls[0].arguments), (WITHHELD, &json!({})));
        assert_eq!(asked.tool_calls[0].name, WITHHELD, "no capability has this name");
        assert_eq!(shown(2, &Message::text(Role::Assistant, "sent back")).content, WITHHELD);
        assert_eq!(shown(3, &Message::text(Role::Assistant, "the answer")).content, "the answer");
        assert_eq!(shown(1, &Message::text(Role::User, "hello")).content, "hello");
        let mut free = stored(1, asking.clone());
        visible_of(Turns::All).withhold(&mut free);
        assert_eq!(free.message, asking);
        let hidden = visible_of(Turns::Nothing);
        assert!(!hidden.has(1) && hidden.has(0) && !hidden.has_inputs());
    }
}
