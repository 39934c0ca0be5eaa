//! The words of models that may be shown outside: the one rule for every endpoint of an engagement (OAS-35, OAS-43).
//!
//! With an output guardrail, an answer is shown once it has passed, and words that the guardrail never checked are not: a text
//! beside tool calls, their arguments, an answer that was sent back, a summary. Of a delegate that works for a guarded or a
//! restricting agent, only its caller shows words. The audit has everything.

use crate::api::App;
use crate::reply::Failure;
use serde_json::json;
use std::collections::BTreeSet;
use turnstone_domain::checkpoint::EmitBody;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::message::{Role, StoredMessage};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{AgentDefinition, Phase};

/// Turns that are searched for answers that have passed.
const TURNS: u32 = 1000;
/// Replaces a text that is not shown.
pub(crate) const WITHHELD: &str = "(withheld)";

/// The part of an engagement that may be shown.
pub(crate) enum Visible {
    /// All of it.
    All,
    /// The answers of these turns, and the rest of the turns until the last of them.
    Answers(BTreeSet<i64>),
    /// Nothing.
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
        if agent.guardrails.is_shown_by_its_caller() {
            return Ok(Self::Nothing);
        }
        if !agent.guardrails.hold_back() {
            return Ok(Self::All);
        }
        let turns = app.api.store.views.checkpoints_of(&engagement.id, Phase::Emit, TURNS).await?;
        let passed = |emit: EmitBody| emit.released;
        let passed = turns.iter().filter(|row| row.checkpoint.read::<EmitBody>().is_some_and(passed));
        Ok(Self::Answers(passed.map(|row| row.checkpoint.turn).collect()))
    }

    /// Returns true if a turn may be shown; 0 is that of messages of earlier engagements.
    pub(crate) fn has(&self, turn: i64) -> bool {
        match self {
            Self::All => true,
            Self::Answers(turns) => turn <= turns.last().copied().unwrap_or(0),
            Self::Nothing => turn <= 0,
        }
    }

    /// Returns true if inputs may be shown before their turns are: a user wrote them, and no model.
    pub(crate) fn has_inputs(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Removes the words of a message that no guardrail has checked.
    pub(crate) fn withhold(&self, stored: &mut StoredMessage) {
        let Self::Answers(turns) = self else { return };
        let message = &mut stored.message;
        let is_models = message.role == Role::Assistant || message.summary.is_some();
        let has_passed =
            turns.contains(&stored.turn) && message.tool_calls.is_empty() && message.summary.is_none();
        if !is_models || has_passed {
            return;
        }
        message.parts.clear();
        if !message.content.is_empty() {
            WITHHELD.clone_into(&mut message.content);
        }
        message.tool_calls.iter_mut().for_each(|call| call.arguments = json!({}));
    }

    /// Removes the arguments of a call that no guardrail has checked.
    pub(crate) fn withhold_input(&self, call: &mut ToolCall) {
        if !matches!(self, Self::All) {
            call.input = json!({});
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

    #[test]
    fn words_beside_an_answer_that_passed_stay_hidden() {
        let call = RequestedCall {
            call_id: CallId("c".into()),
            name: "search".into(),
            arguments: json!({"q": "secret"}),
        };
        let asking = Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "I look for it") };
        let passed = Visible::Answers([3].into());
        assert!(passed.has(1) && passed.has(3) && !passed.has(4) && passed.has_inputs());
        let shown = |turn, message: &Message| {
            let mut stored = stored(turn, message.clone());
            passed.withhold(&mut stored);
            stored.message
        };
        let hidden = shown(1, &asking);
        assert_eq!((hidden.content.as_str(), &hidden.tool_calls[0].arguments), (WITHHELD, &json!({})));
        assert_eq!(shown(2, &Message::text(Role::Assistant, "sent back")).content, WITHHELD);
        assert_eq!(shown(3, &Message::text(Role::Assistant, "the answer")).content, "the answer");
        assert_eq!(shown(1, &Message::text(Role::User, "hello")).content, "hello");
        let mut free = stored(1, asking.clone());
        Visible::All.withhold(&mut free);
        assert_eq!(free.message, asking);
        assert!(!Visible::Nothing.has(1) && Visible::Nothing.has(0) && !Visible::Nothing.has_inputs());
    }
}
