//! The script: rules, their conditions and their answers, as written in YAML.

use super::template;
use super::{strings, tool_results};
use crate::model::{FinishReason, ModelRequest, Usage};
use serde::Deserialize;
use serde_json::Value;
use turnstone_domain::message::Role;

/// A list of rules; the first that matches answers.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The rules, in order.
    pub(super) rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// All of these must hold; without any, the rule always matches.
    #[serde(default)]
    pub(super) when: Conditions,
    /// The most answers of the rule within one process; unlimited if absent.
    pub(super) times: Option<u32>,
    /// The answer.
    pub(super) answer: ScriptedAnswer,
}

/// Conditions on a request. Texts are compared case-sensitively.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Conditions {
    /// The model asked for is this one.
    model: Option<String>,
    /// The system prompt contains this.
    system_contains: Option<String>,
    /// The role of the last message.
    last_role: Option<Role>,
    /// The last message contains this.
    last_contains: Option<String>,
    /// Some user message contains this.
    user_contains: Option<String>,
    /// The number of tool messages after the last user message.
    tool_results: Option<usize>,
    /// At least these tools are offered.
    #[serde(default)]
    tools_include: Vec<String>,
}

/// An answer: text, or JSON, or tool calls (with or without text), or a failure.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedAnswer {
    /// The text, with templates.
    pub(super) text: Option<String>,
    /// The text as JSON; its strings may hold templates.
    pub(super) json: Option<Value>,
    /// The tool calls that it requests.
    #[serde(default)]
    pub(super) tool_calls: Vec<ScriptedCall>,
    /// The tokens of the answer. Default: bytes / 4.
    pub(super) usage: Option<Usage>,
    /// The reason why the answer ends. Default: `tool_use` with tool calls, else `stop`.
    pub(super) finish_reason: Option<FinishReason>,
    /// The time that the answer takes, in milliseconds.
    #[serde(default)]
    pub(super) delay_ms: u64,
    /// The call fails instead.
    pub(super) error: Option<Failure>,
}

/// A tool call.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedCall {
    /// The tool's name.
    pub(super) name: String,
    /// Its arguments; their strings may hold templates.
    #[serde(default = "no_arguments")]
    pub(super) arguments: Value,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// A failure of the provider.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    /// Its kind.
    pub(super) kind: FailureKind,
    /// Its message.
    #[serde(default = "no_reason")]
    pub(super) message: String,
    /// With `rate_limited`: the delay that the provider demands, in milliseconds.
    pub(super) retry_after_ms: Option<u64>,
}

fn no_reason() -> String {
    "the script says so".to_owned()
}

/// The ways in which a provider fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailureKind {
    Unavailable,
    RateLimited,
    Timeout,
    Refused,
    Malformed,
}

impl Script {
    /// Reads a script. Unknown and duplicate keys are errors.
    ///
    /// # Errors
    /// A sentence with line and column, or with the rule's number, that says what is wrong.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        let options = serde_saphyr::options! { with_snippet: false };
        let script: Self =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
        if script.rules.is_empty() {
            return Err("the script has no rules".to_owned());
        }
        for (number, rule) in script.rules.iter().enumerate() {
            rule.answer.check().map_err(|problem| format!("rule {}: {problem}", number + 1))?;
        }
        Ok(script)
    }
}

impl ScriptedAnswer {
    fn check(&self) -> Result<(), String> {
        let kinds = [self.text.is_some(), self.json.is_some(), self.error.is_some()]
            .into_iter()
            .filter(|given| *given)
            .count();
        if kinds > 1 {
            return Err("an answer has one of text, json and error".to_owned());
        }
        if kinds == 0 && self.tool_calls.is_empty() {
            return Err("an answer needs one of text, json, tool_calls and error".to_owned());
        }
        if self.error.is_some() && !self.tool_calls.is_empty() {
            return Err("an answer with an error cannot have tool_calls".to_owned());
        }
        let values = self.json.iter().chain(self.tool_calls.iter().map(|call| &call.arguments));
        values.flat_map(strings).chain(self.text.as_deref()).try_for_each(template::check)
    }
}

impl Conditions {
    /// Returns true if all of them hold.
    pub(super) fn holds(&self, request: &ModelRequest) -> bool {
        let last = request.messages.last();
        let within =
            |needle: &Option<String>, found: &dyn Fn(&str) -> bool| needle.as_deref().is_none_or(found);
        self.model.as_ref().is_none_or(|model| *model == request.model)
            && within(&self.system_contains, &|needle| request.system.contains(needle))
            && self.last_role.is_none_or(|role| last.is_some_and(|message| message.role == role))
            && within(&self.last_contains, &|needle| {
                last.is_some_and(|message| message.content.contains(needle))
            })
            && within(&self.user_contains, &|needle| {
                request
                    .messages
                    .iter()
                    .any(|message| message.role == Role::User && message.content.contains(needle))
            })
            && self.tool_results.is_none_or(|count| tool_results(request).count() == count)
            && self.tools_include.iter().all(|name| request.tools.iter().any(|tool| tool.name == *name))
    }
}
