//! JSON in the text of a model that was asked for nothing else: in a Markdown fence, between words, or after its thinking.

use crate::json::unambiguous;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

/// The most brackets of a text at which a value is looked for.
const MOST_BRACKETS: usize = 256;
/// The end of a model's thinking. Some servers send the thinking with the answer, and some without its beginning.
const THOUGHT: [&str; 2] = ["</think>", "</thinking>"];

/// Returns the text after a model's thinking.
#[must_use]
pub fn after_thinking(text: &str) -> &str {
    let ends = THOUGHT.iter().filter_map(|end| text.rfind(end).map(|at| at + end.len()));
    text[ends.max().unwrap_or(0)..].trim()
}

/// Returns the only JSON value of a text that fits. The whole text comes first, then fences, then values between words.
///
/// # Errors
/// A part of a sentence: what is wrong with the text, or that several values fit.
pub fn find(text: &str, fits: &dyn Fn(&Value) -> Result<(), String>) -> Result<Value, String> {
    let whole = check(text.trim(), fits);
    let text = after_thinking(text);
    let problem = match whole.or_else(|_| check(text, fits)) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    let mut in_fences = fences(text).into_iter().peekable();
    let nearest = match in_fences.peek() {
        // A fence that holds JSON of another form says more about the answer than the text around it.
        Some(fenced) => check(fenced, fits).err().unwrap_or(problem),
        None => problem,
    };
    let mut found: Vec<Value> = Vec::new();
    for part in in_fences.chain(values(text)) {
        if let Ok(value) = check(part, fits)
            && !found.contains(&value)
        {
            found.push(value);
        }
    }
    match found.len() {
        0 => Err(nearest),
        1 => found.pop().ok_or(nearest),
        several => Err(format!("it holds {several} JSON values of the demanded form, and must be one")),
    }
}

fn check(text: &str, fits: &dyn Fn(&Value) -> Result<(), String>) -> Result<Value, String> {
    let value = unambiguous(text)?;
    fits(&value).map(|()| value)
}

/// Returns what is in the Markdown fences of a text, without the names of languages.
fn fences(text: &str) -> Vec<&str> {
    let inside = text.split("```").skip(1).step_by(2).take(MOST_BRACKETS);
    let without_name = |inside: &'_ str| -> usize {
        let named = inside.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inside.len());
        match inside[named..].starts_with(char::is_whitespace) {
            true => named,
            false => 0,
        }
    };
    inside
        .map(|inside| {
            let inside = inside.strip_prefix("json").unwrap_or(inside);
            let named = &inside[without_name(inside)..];
            // A scalar is no name of a language.
            if unambiguous(inside.trim()).is_ok() { inside.trim() } else { named.trim() }
        })
        .collect()
}

/// Returns the objects and lists of a text, each as a whole.
fn values(text: &str) -> Vec<&str> {
    let (mut found, mut end, mut tried) = (Vec::new(), 0, 0);
    for (at, _) in text.match_indices(['{', '[']) {
        if at < end {
            continue;
        }
        tried += 1;
        if tried > MOST_BRACKETS {
            break;
        }
        let mut values = Deserializer::from_str(&text[at..]).into_iter::<IgnoredAny>();
        if let Some(Ok(_)) = values.next() {
            end = at + values.byte_offset();
            found.push(&text[at..end]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_city(value: &Value) -> Result<(), String> {
        if value["city"].is_string() { Ok(()) } else { Err("`city` is missing".to_owned()) }
    }

    #[test]
    fn one_value_is_found_wherever_it_stands() {
        let husum = json!({"city": "Husum"});
        for text in [
            r#"{"city": "Husum"}"#,
            "```json\n{\"city\": \"Husum\"}\n```",
            "```\n{\"city\": \"Husum\"}```",
            "```JSON5\n{\"city\": \"Husum\"}\n```",
            "Here it is:\n```json\n{\"city\": \"Husum\"}\n```\nAnything else?",
            r#"The answer [as asked] is {"city": "Husum"}. Thanks {sic}."#,
            r#"<think>{"city": "Kiel"} or {"city": "Husum"}?</think>{"city": "Husum"}"#,
            "I think of {\"city\": \"Kiel\"}.\n</think>\n\n```json\n{\"city\": \"Husum\"}\n```",
            r#"{"town": 1} and {"city": "Husum"}, so again {"city":"Husum"}"#,
            &format!("{{\"many\": [{}]}} {{\"city\": \"Husum\"}}", vec!["{}"; 300].join(",")),
        ] {
            assert_eq!(find(text, &is_city).unwrap(), husum, "{text}");
        }
        let tagged = r#"{"city": "it ends with </think>"}"#;
        assert_eq!(find(tagged, &is_city).unwrap()["city"], "it ends with </think>");
        assert_eq!(find("```\n42\n```", &|_| Ok(())).unwrap(), json!(42));
    }

    #[test]
    fn no_value_and_several_ones_are_refused() {
        for (text, why) in [
            (r#"{"city": "Husum"} or {"city": "Kiel"}"#, "2 JSON values"),
            (r#"{"town": "Husum"}"#, "`city` is missing"),
            ("Look: ```json\n{\"town\": 1}\n```", "`city` is missing"),
            ("Husum", "not one JSON value"),
            (r#"{"city": "Husum", "city": "Kiel"}"#, "stands twice"),
            (r#"so {"city": "Husum", "city": "Kiel"}"#, "stands twice"),
            (r#"{"city": "Hus"#, "not one JSON value"),
        ] {
            let refused = find(text, &is_city).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        let deep = "[".repeat(100_000);
        assert!(find(&deep, &is_city).is_err());
    }
}
