//! The parts of a prompt beside the conversation (RS-16, RS-17).

use crate::state::{Claimed, TurnHistory};
use std::sync::Arc;
use turnstone_domain::agent::{AgentDefinition, Example, OutputFormat};
use turnstone_domain::message::{Message, Role};

/// Returns the system prompt: the agent's role verbatim (RS-16), then its template, then the demanded form of
/// the answer.
pub fn system(agent: &AgentDefinition) -> String {
    let output = &agent.output;
    let form = match (&output.schema, output.format) {
        (Some(schema), _) => {
            format!(
                "Your final answer must be one JSON value, without any text around it, that matches this JSON Schema: {schema}"
            )
        }
        (None, OutputFormat::Json) => {
            "Your final answer must be one JSON value, without any text around it.".to_owned()
        }
        (None, OutputFormat::Markdown) => "Write your final answer in Markdown.".to_owned(),
        (None, OutputFormat::Text) => String::new(),
    };
    let template = agent.prompts.system.as_deref().unwrap_or_default();
    let parts = [agent.instructions.as_str(), template, form.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Returns the examples as exchanges, and then the conversation (RS-17). The examples are no part of its
/// window.
pub fn messages(claimed: &Claimed, past: &TurnHistory) -> Vec<Arc<Message>> {
    let examples = claimed.agent.prompts.examples.iter().flat_map(exchange).map(Arc::new);
    examples.chain(past.conversation.messages(&claimed.agent.memory)).collect()
}

fn exchange(example: &Example) -> [Message; 2] {
    let requested = match &example.context {
        Some(context) => format!("{context}\n\n{}", example.input),
        None => example.input.clone(),
    };
    [Message::text(Role::User, requested), Message::text(Role::Assistant, example.output.as_str())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::agent::Prompts;

    /// RS-16: the role comes first and verbatim, also with a template.
    #[test]
    fn the_role_stands_first_and_verbatim() {
        let prompts = Prompts { system: Some("Be brief.".into()), examples: Vec::new() };
        let role = "You are  {{literal}}\n a desk.".to_owned();
        let mut agent = AgentDefinition { instructions: role.clone(), prompts, ..AgentDefinition::default() };
        assert_eq!(system(&agent), format!("{role}\n\nBe brief."));
        agent.output.format = OutputFormat::Markdown;
        assert!(system(&agent).starts_with(&format!("{role}\n\nBe brief.\n\nWrite")));
        assert_eq!(system(&AgentDefinition::default()), "");
    }
}
