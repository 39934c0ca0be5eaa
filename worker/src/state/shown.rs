//! The part of a text that may leave the worker in events, errors, spans and results.
//!
//! Filters of the agent redact personal data (RS-23). An agent with an output guardrail holds back its model's words until
//! the guardrail has passed them (OAS-43).

use super::claimed::Claimed;
use serde::Serialize;
use serde_json::{Value, to_value};
use turnstone_domain::error::FailureKind;
use turnstone_domain::screen::personal;
use turnstone_domain::{JobError, RawJson, Settlement};

/// The fields of events that may hold a model's words.
const SAID: [&str; 11] = [
    "changes",
    "file",
    "handled",
    "input",
    "media_type",
    "message",
    "output",
    "output_bytes",
    "sha256",
    "tool_calls",
    "tool_calls_cut",
];

impl Claimed {
    /// Returns the settlement of a completed job. No event shows the result when another agent's guardrail
    /// decides about it (OAS-43).
    #[must_use]
    pub fn complete(&self, result: &Value) -> Settlement {
        Settlement::Complete {
            result: RawJson::of(result),
            withheld: self.agent.guardrails.is_shown_by_its_caller(),
        }
    }

    /// Removes a model's words from an event, when they may not be shown before a guardrail has passed them
    /// (OAS-43).
    pub fn hold_back(&self, data: &mut Value) {
        if !self.agent.guardrails.hold_back() {
            return;
        }
        if let Value::Object(fields) = data {
            let name = fields.get("name").and_then(Value::as_str);
            if name.is_some_and(|name| self.agent.capability(name).is_none()) {
                fields.shift_remove("name");
            }
            SAID.iter().for_each(|name| drop(fields.shift_remove(*name)));
        }
    }

    /// Returns an error without its sentence, if the sentence may quote a model.
    #[must_use]
    pub fn unquoted(&self, error: JobError) -> JobError {
        use FailureKind::{Delegation, Model, OutputSchema, Policy, Tool, ToolInput, ToolNotFound};
        let quotes = matches!(
            error.kind,
            Delegation | Model | OutputSchema | Policy | Tool | ToolInput | ToolNotFound
        );
        let is_guardrails = error.details.contains_key("guardrail");
        if !self.agent.guardrails.hold_back() || !quotes || is_guardrails {
            return error;
        }
        let message = "the engagement failed before its answer had passed the checks for what is shown; the audit says where";
        JobError { message: message.to_owned(), cause: None, ..error }
    }

    /// Redacts the data of an event, if the agent demands that personal data is redacted or blocked.
    pub fn screen_event(&self, data: &mut Value) {
        self.agent.safety.redact(data);
    }

    /// Returns the part of a text that a span may carry, which is the same as for an event.
    #[must_use]
    pub fn screened(&self, mut said: Value) -> Value {
        self.screen_event(&mut said);
        said
    }

    /// Redacts the message and details of an error.
    #[must_use]
    pub fn screen_error(&self, mut error: JobError) -> JobError {
        for rule in self.agent.safety.leaving().filter(|rule| rule.changes()) {
            personal::replace(&rule.kinds, &mut error.message);
            error.details.values_mut().for_each(|fact| {
                personal::redact(&rule.kinds, fact);
            });
        }
        error
    }

    /// Returns the facts of an event, without those that its readers may not see.
    pub fn shown<F: Serialize>(&self, facts: &F) -> serde_json::Result<RawJson> {
        if !self.agent.safety.holds_back() && !self.agent.guardrails.hold_back() {
            return RawJson::written(facts);
        }
        let mut facts = to_value(facts)?;
        self.screen_event(&mut facts);
        self.hold_back(&mut facts);
        Ok(RawJson::of(&facts))
    }
}
