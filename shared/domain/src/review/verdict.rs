//! An agent's answer to a review (OAS-A9).

use super::ReviewKind;
use crate::CallId;
use serde_json::Value;

/// The verdict of an agent that reviews.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// True if it clearly approved.
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

impl Verdict {
    /// Reads an answer: `{"approve": …, "reason": …}`, or a text that begins with APPROVE. Anything else confirms nothing.
    #[must_use]
    pub fn of(answer: &Value) -> Self {
        let no = |reason| Self { approve: false, reason };
        let text = match answer {
            Value::Object(fields) if fields.contains_key("approve") => {
                let reason = fields.get("reason").and_then(Value::as_str).map(str::to_owned);
                return Self { approve: fields["approve"] == true, reason };
            }
            Value::Object(fields) => fields.get("text").and_then(Value::as_str),
            other => other.as_str(),
        };
        let Some(text) = text.map(str::trim) else { return no(None) };
        let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text);
        let inner = inner.strip_suffix("```").unwrap_or(inner);
        if let Ok(fields @ Value::Object(_)) = serde_json::from_str(inner) {
            return if fields.get("approve").is_some() { Self::of(&fields) } else { no(None) };
        }
        let (first, rest) = text.split_once(|c: char| !c.is_alphanumeric()).unwrap_or((text, ""));
        let rest = rest.trim_matches(|c: char| c.is_whitespace() || ":.,-".contains(c));
        Self { approve: first == "APPROVE", reason: Some(rest.to_owned()).filter(|rest| !rest.is_empty()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// OAS-32: only a clear yes confirms.
    #[test]
    fn only_a_clear_yes_confirms() {
        for (answer, approves) in [
            (json!({"approve": true}), true),
            (json!("{\"approve\": true, \"reason\": \"cheap\"}"), true),
            (json!("```json\n{\"approve\": true}\n```"), true),
            (json!({"text": "{\"approve\": true}", "shown": 1}), true),
            (json!("APPROVE: it is cheap"), true),
            (json!({"approve": "true"}), false),
            (json!({"approve": false}), false),
            (json!("{\"approve\": 1}"), false),
            (json!("REJECT"), false),
            (json!("approved, I think"), false),
            (json!("I APPROVE"), false),
            (json!("{\"ok\": true}"), false),
            (json!(true), false),
            (json!(""), false),
        ] {
            assert_eq!(Verdict::of(&answer).approve, approves, "{answer}");
        }
        assert_eq!(Verdict::of(&json!("APPROVE: it is cheap")).reason.as_deref(), Some("it is cheap"));
        let dear = Verdict::of(&json!("{\"approve\": false, \"reason\": \"dear\"}"));
        assert_eq!(dear.reason.as_deref(), Some("dear"));
    }

    #[test]
    fn the_call_of_a_review_is_known_by_its_id() {
        let call = call_of_review(&CallId("c-1".into()), ReviewKind::Output);
        assert_eq!(call.as_str(), "c-1/review/output");
        assert!(is_call_of_review(call.as_str()) && !is_call_of_review("c-1"));
    }
}
