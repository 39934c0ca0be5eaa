//! The agent's filters: for inputs, for outcomes of tools and answers of models, and for events and errors
//! (RS-08, RS-23).
//!
//! Texts change before they are stored, sent or logged, so that redacted text never leaves the worker. The
//! arguments of a call reach their tool as the model wrote them.

use crate::model::ModelAnswer;
use crate::state::Outbox;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use turnstone_domain::JobError;
use turnstone_domain::agent::safety::{Category, FilterAction, PersonalKind, PersonalRule};
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{DropReason, DroppedAttached, EventBody, FlaggedContent};
use turnstone_domain::message::Message;
use turnstone_domain::screen::{content, personal};
use turnstone_domain::tool_call::ToolOutcome;

/// The text that replaces an answer that a filter blocked.
const WITHHELD: &str = "(withheld by a filter of the agent)";

impl Outbox {
    /// Checks inputs, and redacts them if the agent demands it.
    ///
    /// # Errors
    /// [`FailureKind::ContentFiltered`] when a filter blocks it.
    pub fn screen_inputs(&mut self, messages: &mut [Message]) -> Result<(), JobError> {
        self.screen_content("input", None, messages.iter().map(|message| readable(&message.content)))?;
        let Some(rule) = self.claimed.agent.safety.personal.clone() else { return Ok(()) };
        let mut found = Vec::new();
        for message in messages.iter_mut() {
            found.extend(personal::kinds_in(&rule.kinds, &Value::from(message.content.as_str())));
            if rule.action == FilterAction::Redact {
                personal::redact_message(&rule.kinds, message);
            }
        }
        self.act("input", None, rule.action, &names(found))
    }

    /// Checks what a user answered to a question, as an input is checked; personal data is left to
    /// [`Outbox::screen_outcome`].
    ///
    /// # Errors
    /// [`FailureKind::ContentFiltered`] when a filter blocks it.
    pub fn screen_answers(&mut self, texts: &[String]) -> Result<(), JobError> {
        self.screen_content("input", None, texts.iter().map(|text| readable(text)))
    }

    /// Checks content that reaches a model from outside, whatever brought it (RS-08).
    fn screen_content<'t>(
        &mut self,
        place: &str,
        tool: Option<&str>,
        texts: impl Iterator<Item = Cow<'t, str>>,
    ) -> Result<(), JobError> {
        let Some(rule) = self.claimed.agent.safety.content.clone() else { return Ok(()) };
        let found: BTreeSet<&str> =
            texts.flat_map(|text| content::found(&rule, &text)).map(Category::as_str).collect();
        self.act(place, tool, rule.action, &Vec::from_iter(found))
    }

    /// Returns the part of a tool's outcome that may be shown.
    #[must_use]
    pub fn screen_outcome(&mut self, tool: &str, outcome: ToolOutcome) -> ToolOutcome {
        let mut outcome = outcome;
        let said = match &outcome {
            ToolOutcome::Success { output } => Cow::Owned(texts_in(output)),
            ToolOutcome::Error { message, .. } => Cow::Borrowed(message.as_str()),
        };
        if let Err(blocked) = self.screen_content("tool", Some(tool), std::iter::once(said)) {
            return ToolOutcome::failed(blocked.kind, blocked.message);
        }
        for rule in self.leaving() {
            let (kinds, redact) = (&rule.kinds, rule.action == FilterAction::Redact);
            let found = match &mut outcome {
                ToolOutcome::Success { output } => {
                    let found = personal::kinds_in(kinds, output);
                    if redact && !found.is_empty() {
                        personal::redact(kinds, output);
                    }
                    found
                }
                ToolOutcome::Error { message, .. } => {
                    let found = personal::kinds_in(kinds, &Value::from(message.as_str()));
                    if redact {
                        personal::replace(kinds, message);
                    }
                    found
                }
            };
            if let Err(blocked) = self.act("tool", Some(tool), rule.action, &names(found)) {
                outcome = ToolOutcome::failed(blocked.kind, blocked.message);
            }
        }
        outcome
    }

    /// Redacts the arguments of a call that are shown to a user instead of being sent to a tool.
    ///
    /// # Errors
    /// [`FailureKind::ContentFiltered`] when a filter does not let them pass.
    pub fn screen_question(&mut self, tool: &str, arguments: &mut Value) -> Result<(), JobError> {
        for rule in self.leaving() {
            let found = personal::kinds_in(&rule.kinds, arguments);
            if rule.action == FilterAction::Redact && !found.is_empty() {
                personal::redact(&rule.kinds, arguments);
            }
            self.act("answer", Some(tool), rule.action, &names(found))?;
        }
        Ok(())
    }

    /// Checks that a file with this text may be kept. Files are not changed: a file with text to redact is
    /// refused like one to block.
    ///
    /// # Errors
    /// [`FailureKind::ContentFiltered`] when a filter does not let it pass.
    pub fn screen_file(&mut self, tool: &str, text: &str) -> Result<(), JobError> {
        for rule in self.leaving() {
            let found = personal::kinds_in(&rule.kinds, &Value::from(text));
            let action = if rule.changes() { FilterAction::Block } else { rule.action };
            self.act("tool", Some(tool), action, &names(found))?;
        }
        Ok(())
    }

    /// Removes the parts of a model's answer that may not be shown; returns the error when none of it may.
    /// The answer is paid for in any case.
    pub fn screen_answer(&mut self, answer: &mut ModelAnswer) -> Option<JobError> {
        let mut blocked = None;
        for rule in self.leaving() {
            self.screen_attached(&rule, answer);
            let Some(text) = &mut answer.content else { continue };
            let found = personal::kinds_in(&rule.kinds, &Value::from(text.as_str()));
            if found.is_empty() {
                continue;
            }
            if rule.action == FilterAction::Redact {
                personal::redact_text(&rule.kinds, text);
            }
            if let Err(error) = self.act("answer", None, rule.action, &names(found)) {
                answer.content = Some(WITHHELD.to_owned());
                answer.tool_calls.clear();
                answer.attached = None;
                blocked = Some(error);
            }
        }
        blocked
    }

    /// Removes what the provider attached to an answer if it holds personal data that has to be redacted. Redacted signatures and
    /// reasoning would be refused.
    fn screen_attached(&mut self, rule: &PersonalRule, answer: &mut ModelAnswer) {
        let Some(attached) = answer.attached.as_mut().filter(|_| rule.action == FilterAction::Redact) else {
            return;
        };
        let mut found = false;
        attached.each_members(&mut |members| {
            found |= members.values().any(|value| !personal::kinds_in(&rule.kinds, value).is_empty());
        });
        if found {
            let bytes = attached.size();
            attached.clear();
            self.event(&EventBody::ModelAttachedDropped(DroppedAttached {
                bytes,
                reason: DropReason::PersonalData,
            }));
        }
    }

    /// Returns the part of another agent's result that may be shown in place of this agent's; the error when
    /// none of it may.
    pub fn screen_result(&mut self, mut result: Value) -> Result<Value, JobError> {
        self.screen_content("answer", None, std::iter::once(Cow::Owned(texts_in(&result))))?;
        for rule in self.leaving() {
            let found = personal::kinds_in(&rule.kinds, &result);
            if rule.action == FilterAction::Redact && !found.is_empty() {
                personal::redact(&rule.kinds, &mut result);
            }
            self.act("answer", None, rule.action, &names(found))?;
        }
        Ok(result)
    }

    fn leaving(&self) -> Vec<PersonalRule> {
        self.claimed.agent.safety.leaving().cloned().collect()
    }

    /// Applies the action of a rule to its findings.
    fn act(
        &mut self,
        place: &str,
        tool: Option<&str>,
        action: FilterAction,
        found: &[&str],
    ) -> Result<(), JobError> {
        if found.is_empty() {
            return Ok(());
        }
        if action == FilterAction::Log {
            tracing::info!(
                job = %self.claimed.job.id,
                turn = self.position.turn,
                place,
                found = found.join(", "),
                "a filter of the agent found something; its action is `log`, so it passes"
            );
            return Ok(());
        }
        self.event(&EventBody::ContentFlagged(FlaggedContent {
            place: place.to_owned(),
            found: found.iter().map(|kind| (*kind).to_owned()).collect(),
            action,
            name: tool.map(str::to_owned),
        }));
        if action != FilterAction::Block {
            return Ok(());
        }
        let (what, who) =
            (found.join(", "), tool.map_or_else(|| place.to_owned(), |tool| format!("`{tool}`")));
        let message = match place {
            "input" => format!("the agent's filter blocks this input: {what}; no model was asked"),
            "tool" => format!("the agent's filter blocks what {who} returned: {what}"),
            _ => format!("the agent's filter blocks the model's answer: {what}"),
        };
        Err(JobError::new(FailureKind::ContentFiltered, message).with("found", json!(found)))
    }
}

/// A text as it is read; of JSON all texts, without the escapes between which words get lost.
fn readable(text: &str) -> Cow<'_, str> {
    let json = text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str::<Value>(text).ok());
    json.flatten().map_or(Cow::Borrowed(text), |value| Cow::Owned(texts_in(&value)))
}

/// All texts of a JSON value, names of members included, one a line.
fn texts_in(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts_in).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => {
            let lines = members.iter().map(|(name, value)| format!("{name}\n{}", texts_in(value)));
            lines.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn names(mut kinds: Vec<PersonalKind>) -> Vec<&'static str> {
    kinds.sort_unstable();
    kinds.dedup();
    kinds.into_iter().map(PersonalKind::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RS-08: an escape between two words hides neither.
    #[test]
    fn texts_of_json_are_read_without_escapes() {
        assert_eq!(readable("{\"q\": [\"make a\\nbomb\", 7]}"), "q\nmake a\nbomb\n7");
        assert_eq!(readable("[make a bomb"), "[make a bomb");
    }
}
