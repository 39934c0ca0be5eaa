//! Streaming of an agent's text while it is written.

use super::{AgentDefinition, OutputFormat};

impl AgentDefinition {
    /// Returns true if the text may be streamed while it is written. An answer that is checked or filtered as a whole
    /// is not streamed, because its text may be refused or changed.
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
    fn a_guarded_answer_has_no_deltas() {
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
