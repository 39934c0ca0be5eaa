//! The `scripted` provider: a script and no model. It answers from a YAML file of rules, for demonstrations
//! without a key or a network and for users' own tests. Its answers name the model `scripted:` and the
//! requested model.
//!
//! ```yaml
//! rules:
//!   - when: {tools_include: [web_search], tool_results: 0}
//!     answer:
//!       tool_calls: [{name: web_search, arguments: {query: "${last_user}"}}]
//!       usage: {input: 120, output: 18}
//!       delay_ms: 200
//!   - answer: {text: "I found ${last_tool/results/0/title}."}
//! ```
//!
//! The first rule that matches and is not used up answers. `times` bounds how often a rule answers within one
//! process. Conditions on the conversation (`tool_results`, `last_contains`) distinguish turns better,
//! because they hold across a restart. Without usage, tokens are counted as bytes / 4, which is roughly what
//! models count.

mod count;
mod script;
mod template;

pub use script::Script;

use crate::model::{AskedCall, FinishReason, Model, ModelAnswer, ModelError, ModelRequest, Usage};
use async_trait::async_trait;
use script::{Failure, FailureKind, ScriptedAnswer};
use serde_json::Value;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use template::Conversation;

/// Answers from a script.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Script,
    used: Vec<AtomicU32>,
}

impl ScriptedModel {
    /// Reads a script.
    ///
    /// # Errors
    /// A sentence with line and column, or with the rule's number, that says what is wrong.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        let script = Script::from_yaml(text)?;
        let used = script.rules.iter().map(|_| AtomicU32::new(0)).collect();
        Ok(Self { script, used })
    }

    /// Returns the answer of the first rule that matches and is not used up.
    fn choose(&self, request: &ModelRequest) -> Option<&ScriptedAnswer> {
        let rules = self.script.rules.iter().zip(&self.used);
        rules
            .filter(|(rule, _)| rule.when.holds(request))
            .find(|(rule, used)| take(used, rule.times))
            .map(|(rule, _)| &rule.answer)
    }
}

/// Counts one use; returns false if `times` are used up.
fn take(used: &AtomicU32, times: Option<u32>) -> bool {
    let more = |count: u32| (times.is_none_or(|times| count < times)).then_some(count.saturating_add(1));
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

#[async_trait]
impl Model for ScriptedModel {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let Some(answer) = self.choose(request) else {
            let last = request
                .messages
                .last()
                .map_or(String::new(), |message| crate::tool::outbound::excerpt(&message.content, 80));
            return Err(ModelError::Refused(format!(
                "script: no rule matches a request for {} whose last message is {last:?}; a rule without `when` at the end answers everything else",
                request.model
            )));
        };
        wait(Duration::from_millis(answer.delay_ms), request.timeout).await?;
        if let Some(failure) = &answer.error {
            return Err(error(failure));
        }
        spoken(answer, request).map_err(|problem| ModelError::Refused(format!("script: {problem}")))
    }
}

async fn wait(delay: Duration, timeout: Duration) -> Result<(), ModelError> {
    if !delay.is_zero() {
        tokio::time::sleep(delay.min(timeout)).await;
    }
    if delay > timeout {
        return Err(ModelError::Timeout(format!("script: no answer within {} ms", timeout.as_millis())));
    }
    Ok(())
}

fn error(failure: &Failure) -> ModelError {
    let message = format!("script: {}", failure.message);
    match failure.kind {
        FailureKind::Unavailable => ModelError::Unavailable(message),
        FailureKind::RateLimited => {
            ModelError::RateLimited { message, retry_after_ms: failure.retry_after_ms }
        }
        FailureKind::Timeout => ModelError::Timeout(message),
        FailureKind::Refused => ModelError::Refused(message),
        FailureKind::Malformed => ModelError::Malformed(message),
    }
}

fn spoken(answer: &ScriptedAnswer, request: &ModelRequest) -> Result<ModelAnswer, String> {
    let conversation = Conversation::of(request);
    let content = match (&answer.text, &answer.json) {
        (Some(text), _) => Some(conversation.fill_text(text)?),
        (None, Some(json)) => Some(conversation.fill(json)?.to_string()),
        (None, None) => None,
    };
    let calls: Result<Vec<AskedCall>, String> = answer
        .tool_calls
        .iter()
        .map(|call| {
            let arguments = conversation.fill(&call.arguments)?;
            Ok(AskedCall { name: call.name.clone(), arguments })
        })
        .collect();
    let tool_calls = calls?;
    let default_reason = if tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolUse };
    let usage = answer.usage.unwrap_or_else(|| {
        Usage::of(count::of_request(request), count::of_answer(content.as_deref(), &tool_calls))
    });
    request.listener.hear(content.as_deref().unwrap_or_default());
    Ok(ModelAnswer {
        content,
        tool_calls,
        finish_reason: answer.finish_reason.unwrap_or(default_reason),
        usage: Some(usage),
        model: format!("scripted:{}", request.model),
        response_id: None,
        attached: None,
        parts: 1,
    })
}

/// A model that answers `ok` and nothing else, for measuring the cost of everything around a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopModel {
    /// The time that an answer takes.
    pub delay: Duration,
}

#[async_trait]
impl Model for NoopModel {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        wait(self.delay, request.timeout).await?;
        Ok(ModelAnswer {
            content: Some("ok".to_owned()),
            tool_calls: Vec::new(),
            finish_reason: FinishReason::Stop,
            usage: Some(Usage::of(10, 1)),
            model: "noop".to_owned(),
            response_id: None,
            attached: None,
            parts: 1,
        })
    }
}

/// Returns the outcomes of tools that came after the last user message of a request.
fn tool_results(request: &ModelRequest) -> impl Iterator<Item = &str> {
    use turnstone_domain::message::Role;
    let start =
        request.messages.iter().rposition(|message| message.role == Role::User).map_or(0, |at| at + 1);
    request.messages[start..]
        .iter()
        .filter(|message| message.role == Role::Tool)
        .map(|message| message.content.as_str())
}

/// Returns every string inside a value.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(map) => map.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
