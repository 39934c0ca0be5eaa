//! Texts with placeholders (`{{ name }}`). What is put in is never looked at again.

use super::machine::Values;
use serde_json::{Map, Value};
use turnstone_specs::agent_spec::Type;
use url::form_urlencoded::byte_serialize;

/// Puts the values into a text.
pub fn render(text: &str, values: &Values) -> String {
    rendered(text, values, |value| value)
}

/// The same for a URL: values are percent-encoded, so that none of them leaves its part of the path.
pub fn render_url(text: &str, values: &Values) -> String {
    rendered(text, values, |value| byte_serialize(value.as_bytes()).collect())
}

/// Puts the values into every text of a JSON value, keys included.
pub fn render_all(value: &Value, values: &Values) -> Value {
    match value {
        Value::String(text) => render(text, values).into(),
        Value::Array(items) => items.iter().map(|item| render_all(item, values)).collect(),
        Value::Object(map) => {
            let one = |(key, value): (&String, &Value)| (render(key, values), render_all(value, values));
            Value::Object(map.iter().map(one).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// A value as text: as it is cast to a string.
pub fn text(value: &Value) -> String {
    match Type::String.cast(value.clone()) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn rendered(source: &str, values: &Values, encode: impl Fn(String) -> String) -> String {
    let (mut out, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(at) = rest.find("{{") {
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let known = inside.find("}}").and_then(|end| {
            let name = inside[..end].trim();
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            let value = values.get(name).filter(|_| is_name)?;
            Some((value, end))
        });
        match known {
            Some((value, end)) => {
                out.push_str(&encode(text(value)));
                rest = &inside[end + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholders_are_filled_once() {
        let values = json!({"a": "{{b}}", "b": 2.5, "list": [1, "x"], "n": null});
        let values = values.as_object().unwrap();
        assert_eq!(render("{{a}} {{ b }} {{list}} {{n}}.", values), "{{b}} 2.5 [1, \"x\"] .");
        assert_eq!(render("{{{b}}} {{a.b}} {{ unknown }} {{", values), "{2.5} {{a.b}} {{ unknown }} {{");
        let path = json!({"p": "../a b/c"});
        assert_eq!(render_url("http://h/{{p}}", path.as_object().unwrap()), "http://h/..%2Fa+b%2Fc");
        assert_eq!(render_all(&json!({"{{b}}": ["{{b}}", 1]}), values), json!({"2.5": ["2.5", 1]}));
    }
}
