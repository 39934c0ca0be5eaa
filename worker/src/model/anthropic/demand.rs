//! A demanded form of the answer in the form of this provider: a tool that the model must call with its
//! answer.

use crate::model::http::WireNames;
use crate::model::{AskedCall, FinishReason, ModelAnswer, ModelRequest};
use serde_json::{Value, json};
use turnstone_domain::agent::ToolChoice;
use turnstone_domain::message::AttachedItem;

/// Our name for the tool. No tool of an agent has this name, because names hold no blanks.
const ANSWER: &str = "final answer";

/// The way in which the answer arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Demand {
    /// As text.
    Text,
    /// As the arguments of the tool.
    Tool,
    /// As the `value` in the tool's arguments, because arguments must be an object.
    Wrapped,
}

impl Demand {
    /// Returns the form of the answer to `request`. It is text if the schema needs wrapping but refers to
    /// itself, because such a schema cannot be wrapped. It is text as well if the answer must begin with a
    /// tool call. In both cases only the prompt demands the form.
    pub(super) fn of(request: &ModelRequest) -> Self {
        let Some(schema) = &request.output.schema else { return Self::Text };
        if request.tool_choice == ToolChoice::Required && !request.tools.is_empty() {
            return Self::Text;
        }
        match schema["type"].as_str() {
            Some("object") => Self::Tool,
            _ if points(schema) => Self::Text,
            _ => Self::Wrapped,
        }
    }

    /// Returns the names of the tools on offer, with the one for the answer.
    pub(super) fn names(self, request: &ModelRequest) -> WireNames {
        let own = (self != Self::Text).then_some(ANSWER);
        WireNames::of(request.tools.iter().map(|tool| tool.name.as_str()).chain(own))
    }

    /// Returns the definition of the tool, if the answer arrives by a tool.
    pub(super) fn tool(self, schema: Option<&Value>, names: &WireNames) -> Option<Value> {
        let schema = schema?;
        let input_schema = match self {
            Self::Text => return None,
            Self::Tool => schema.clone(),
            Self::Wrapped => {
                json!({"type": "object", "properties": {"value": schema}, "required": ["value"]})
            }
        };
        Some(json!({
            "name": names.wire(ANSWER),
            "description": "Gives the final answer. Call it once, when everything else is done, instead of writing the answer as text.",
            "input_schema": input_schema,
        }))
    }

    /// Returns the provider's name for the tool.
    pub(super) fn wire(self, names: &WireNames) -> String {
        names.wire(ANSWER)
    }

    /// Makes the call of the tool the text of an answer. Beside other calls it came too early: they run first.
    pub(super) fn read(self, mut answer: ModelAnswer) -> ModelAnswer {
        let is_given = |call: &AskedCall| self != Self::Text && call.name == ANSWER;
        if let Some(attached) = &mut answer.attached {
            let mut calls = answer.tool_calls.iter();
            let mut is_answer = |item: &AttachedItem| {
                matches!(item, AttachedItem::Call { .. }) && calls.next().is_some_and(is_given)
            };
            attached.items.retain(|item| !is_answer(item));
        }
        let (given, calls): (Vec<_>, Vec<_>) = answer.tool_calls.into_iter().partition(is_given);
        if let Some(given) = given.into_iter().next().filter(|_| calls.is_empty()) {
            answer.content = Some(self.text(given.arguments)).filter(|text| !text.is_empty());
            if answer.finish_reason == FinishReason::ToolUse {
                answer.finish_reason = FinishReason::Stop;
            }
        }
        ModelAnswer { tool_calls: calls, ..answer }
    }

    /// Returns the text of the answer in the tool's arguments.
    fn text(self, arguments: Value) -> String {
        match (self, arguments) {
            // Text that is no JSON is returned unchanged; its validation refuses it.
            (_, Value::String(text)) => text,
            (Self::Wrapped, Value::Object(mut fields)) if fields.contains_key("value") => {
                fields.remove("value").unwrap_or_default().to_string()
            }
            (_, arguments) => arguments.to_string(),
        }
    }
}

/// Returns true if a schema holds a reference.
fn points(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.contains_key("$ref") || fields.values().any(points),
        Value::Array(items) => items.iter().any(points),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::fixture::request;

    #[test]
    fn a_schema_is_sent_as_a_tool_where_possible() {
        let of = |schema: Value, choice: ToolChoice| {
            let mut request = request();
            (request.output.schema, request.tool_choice) = (Some(schema), choice);
            Demand::of(&request)
        };
        assert_eq!(of(json!({"type": "object"}), ToolChoice::Auto), Demand::Tool);
        assert_eq!(of(json!({"type": "array"}), ToolChoice::Auto), Demand::Wrapped);
        assert_eq!(of(json!({"enum": [1, 2]}), ToolChoice::None), Demand::Wrapped);
        let pointing = json!({"type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}});
        assert_eq!(of(pointing, ToolChoice::Auto), Demand::Text);
        assert_eq!(of(json!({"type": "object"}), ToolChoice::Required), Demand::Text);
        assert_eq!(Demand::of(&request()), Demand::Text);
    }

    #[test]
    fn the_answer_is_unwrapped() {
        assert_eq!(Demand::Tool.text(json!({"value": 1})), r#"{"value":1}"#);
        assert_eq!(Demand::Wrapped.text(json!({"value": [1]})), "[1]");
        assert_eq!(Demand::Wrapped.text(json!({"valeu": [1]})), r#"{"valeu":[1]}"#);
        assert_eq!(Demand::Tool.text(json!("{\"cut")), "{\"cut");
    }
}
