//! Members of a request that a model refuses, because it does not know them.

use serde_json::{Map, Value};

/// The names of the bound on the answer.
const BOUNDS: [&str; 2] = ["max_tokens", "max_completion_tokens"];
/// Words of a refusal that is about a name, and not about its value.
const ABOUT_A_NAME: [&str; 9] = [
    "unsupported",
    "not supported",
    "unknown",
    "unrecognized",
    "unrecognised",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra",
];

fn is_about_a_name(refusal: &str) -> bool {
    let refusal = refusal.to_lowercase();
    ABOUT_A_NAME.iter().any(|words| refusal.contains(words))
}

/// Sends the bound under its other name, if the refusal is about the one that was sent.
pub(super) fn swap_bound(body: &mut Value, refusal: &str) -> bool {
    let Some(body) = body.as_object_mut().filter(|_| is_about_a_name(refusal)) else { return false };
    let Some(sent) = BOUNDS.into_iter().find(|name| body.contains_key(*name)) else { return false };
    let Some(bound) = body.get(sent).cloned().filter(|_| refusal.contains(sent)) else { return false };
    body.remove(sent);
    body.extend(BOUNDS.into_iter().filter(|name| *name != sent).map(|name| (name.to_owned(), bound.clone())));
    true
}

/// Removes members from the assistant's messages and their calls that the refusal names.
pub(super) fn drop_members(body: &mut Value, refusal: &str) -> bool {
    let Some(messages) = body["messages"].as_array_mut().filter(|_| is_about_a_name(refusal)) else {
        return false;
    };
    let mut any = false;
    for message in messages.iter_mut().filter(|message| message["role"] == "assistant") {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten();
        for call in calls.filter_map(Value::as_object_mut) {
            any |= drop_named(call, &["id", "type", "function"], refusal);
        }
        if let Some(message) = message.as_object_mut() {
            any |= drop_named(message, &["role", "content", "tool_calls"], refusal);
        }
    }
    any
}

fn drop_named(members: &mut Map<String, Value>, own: &[&str], refusal: &str) -> bool {
    let before = members.len();
    members.retain(|name, _| own.contains(&name.as_str()) || !refusal.contains(name.as_str()));
    members.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_refused_name_is_changed() {
        let body = || {
            json!({"max_tokens": 9, "messages": [{"role": "user", "reasoning": "kept"},
            {"role": "assistant", "content": null, "reasoning": "r", "extra": 1,
             "tool_calls": [{"id": "c", "extra": 2, "function": {}}]}]})
        };
        let mut swapped = body();
        let refusal =
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.";
        assert!(swap_bound(&mut swapped, refusal) && !drop_members(&mut swapped, refusal));
        assert_eq!((&swapped["max_completion_tokens"], swapped.get("max_tokens")), (&json!(9), None));
        assert!(
            !swap_bound(&mut body(), "max_tokens must be at most 4096"),
            "a wrong value is no wrong name"
        );
        let mut dropped = body();
        assert!(drop_members(&mut dropped, "property 'messages.1.reasoning' is unsupported"));
        assert_eq!(dropped["messages"][0]["reasoning"], "kept");
        assert_eq!(
            (dropped["messages"][1].get("reasoning"), &dropped["messages"][1]["extra"]),
            (None, &json!(1))
        );
        assert!(!drop_members(&mut body(), "invalid reasoning"));
    }
}
