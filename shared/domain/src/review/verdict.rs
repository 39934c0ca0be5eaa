//! An agent's answer to a review (OAS-A9).

use super::ReviewKind;
use crate::CallId;
use crate::json::{self, RawJson};
use serde::Deserialize;
use serde_json::Value;

/// The verdict of an agent that reviews.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// True if it approved in the exact form.
    pub approve: bool,
    /// Why.
    pub reason: Option<String>,
}

/// The separator between the id of a call and the kind of an agent's review about it.
const BETWEEN: &str = "/review/";

/// Returns the id of the call under which an agent reviews a call.
#[must_use]
pub fn call_of_review(about: &CallId, kind: ReviewKind) -> CallId {
    CallId(format!("{}{BETWEEN}{}", about.as_str(), kind.as_str()))
}

/// Returns true if this is such a call.
#[must_use]
pub fn is_call_of_review(call_id: &str) -> bool {
    call_id.contains(BETWEEN)
}

/// The only form of an answer that decides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExactForm {
    approve: bool,
    #[serde(default)]
    reason: Option<String>,
}

impl Verdict {
    /// Reads the result of a reviewing agent: one JSON object `{"approve": …, "reason": …}`, as a value or as the whole
    /// text. Any other answer confirms nothing. An object with a member that stands twice, at any depth, is another
    /// answer.
    #[must_use]
    pub fn of(answer: &RawJson) -> Self {
        let exact = json::unambiguous(answer.as_str()).ok().and_then(|value| of_value(&value));
        exact.map_or_else(Self::unreadable, |ExactForm { approve, reason }| Self { approve, reason })
    }

    fn unreadable() -> Self {
        let why = "its answer is not exactly {\"approve\": true or false, \"reason\": a text}, and nothing else confirms";
        Self { approve: false, reason: Some(why.to_owned()) }
    }
}

fn of_value(answer: &Value) -> Option<ExactForm> {
    match answer {
        Value::Object(fields) if fields.contains_key("approve") => ExactForm::deserialize(answer).ok(),
        // An agent that exposes values returns its text beside them.
        Value::Object(fields) => of_text(fields.get("text")?.as_str()?),
        Value::String(text) => of_text(text),
        _ => None,
    }
}

fn of_text(text: &str) -> Option<ExactForm> {
    let value = json::unambiguous(json::unfenced(text)).ok().filter(Value::is_object)?;
    ExactForm::deserialize(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(answer: &Value) -> Verdict {
        Verdict::of(&RawJson::of(answer))
    }

    /// OAS-32: only the exact form confirms.
    #[test]
    fn only_the_exact_form_confirms() {
        for answer in [
            json!({"approve": true}),
            json!({"approve": true, "reason": null}),
            json!("{\"approve\": true, \"reason\": \"cheap\"}"),
            json!(" {\"reason\": \"cheap\", \"approve\": true}\n"),
            json!("```json\n{\"approve\": true}\n```"),
            json!({"text": "{\"approve\": true}", "shown": 1}),
        ] {
            assert!(of(&answer).approve, "{answer}");
        }
        for text in [
            // Members that stand twice, at any depth and in any spelling.
            r#"{"approve": false, "approve": true}"#,
            r#"{"approve": true, "approve": true}"#,
            r#"{"\u0061pprove": false, "approve": true}"#,
            r#"{"approve": true, "reason": "a", "reason": "b"}"#,
            r#"{"approve": true, "reason": {"a": 1, "a": 2}}"#,
            // Other values and members.
            r#"{"approve": 1}"#,
            r#"{"approve": "true"}"#,
            r#"{"approve": [true]}"#,
            r#"{"approve": null}"#,
            r#"{"Approve": true}"#,
            r#"{"APPROVE": true}"#,
            r#"{"approve": TRUE}"#,
            r#"{"approve": true, "reason": 1}"#,
            r#"{"approve": true, "but": "never"}"#,
            r#"{"verdict": {"approve": true}}"#,
            r#"[{"approve": true}]"#,
            r#"[true, "cheap"]"#,
            r#"{"text": "{\"approve\": true}"}"#,
            "true",
            "\"APPROVE\"",
            // Texts around the object.
            r#"{"approve": true} but never above 500"#,
            r#"I refuse: {"approve": true}"#,
            r#"{"approve": true}{"approve": false}"#,
            "```json\n{\"approve\": true}\n```\nNo.",
            "No.\n```json\n{\"approve\": true}\n```",
            "```json\n{\"approve\": true}",
            "```yaml\n{\"approve\": true}\n```",
            "```\n```json\n{\"approve\": true}\n```\n```",
            // Words.
            "APPROVE",
            "APPROVE? never",
            "APPROVE: it is cheap",
            "approved, I think",
            "I APPROVE",
            "yes",
            "",
        ] {
            assert!(!of(&text.into()).approve, "{text}");
            if let Ok(value) = RawJson::from_text(text.to_owned()) {
                let is_wrapped = text.starts_with("{\"text\"");
                assert_eq!(Verdict::of(&value).approve, is_wrapped, "{text} as a value");
            }
        }
    }

    #[test]
    fn a_verdict_keeps_its_reason() {
        let dear = of(&json!("{\"approve\": false, \"reason\": \"dear\"}"));
        assert_eq!((dear.approve, dear.reason.as_deref()), (false, Some("dear")));
        assert!(of(&json!("REJECT")).reason.is_some_and(|why| why.contains("not exactly")));
    }

    #[test]
    fn the_call_of_a_review_is_known_by_its_id() {
        let call = call_of_review(&CallId("c-1".into()), ReviewKind::Output);
        assert_eq!(call.as_str(), "c-1/review/output");
        assert!(is_call_of_review(call.as_str()) && !is_call_of_review("c-1"));
    }
}
