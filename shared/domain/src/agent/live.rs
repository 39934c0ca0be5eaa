//! Whether an agent may be heard while it still speaks.

use super::{AgentDefinition, OutputFormat};

impl AgentDefinition {
    /// Whether its text may be told while it is written. Not when the whole answer is checked before it counts as one: what
    /// the check would refuse, and what a filter changes, must not have been heard.
    #[must_use]
    pub fn speaks_live(&self) -> bool {
        self.output.schema.is_none()
            && self.output.format != OutputFormat::Json
            && !self.safety.holds_back()
            && !self.guardrails.hold_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::safety::{FilterAction, PersonalKind, PersonalRule};
    use crate::agent::{OutputContract, Safety};

    #[test]
    fn an_answer_that_is_checked_first_is_not_heard_before() {
        let with = |schema: Option<serde_json::Value>, format| {
            let output = OutputContract { schema, format };
            AgentDefinition { output, ..AgentDefinition::default() }.speaks_live()
        };
        assert!(with(None, OutputFormat::Text) && with(None, OutputFormat::Markdown));
        assert!(!with(None, OutputFormat::Json));
        assert!(!with(Some(serde_json::json!({})), OutputFormat::Text));
        let rule = |action| Some(PersonalRule { kinds: PersonalKind::ALL.to_vec(), action });
        for (action, heard) in
            [(FilterAction::Redact, false), (FilterAction::Block, false), (FilterAction::Warn, true)]
        {
            let safety = Safety { output: rule(action), ..Safety::default() };
            assert_eq!(AgentDefinition { safety, ..AgentDefinition::default() }.speaks_live(), heard);
        }
    }
}
