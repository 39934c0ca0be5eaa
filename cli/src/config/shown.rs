//! The effective configuration as a flat list: key, value, and its source.

use super::layers::Loaded;
use serde::Serialize;
use serde_json::Value;
use turnstone_telemetry::SecretRef;

/// One value of the effective configuration.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shown {
    /// The key, such as `worker.slots`.
    pub key: String,
    /// Its value; secrets by reference only.
    pub value: Value,
    /// The source.
    pub source: String,
}

/// Returns every value with its source, in the order of the sections.
#[must_use]
pub fn shown(loaded: &Loaded) -> Vec<Shown> {
    let mut list = Vec::new();
    if let Ok(Value::Object(sections)) = serde_json::to_value(&loaded.config) {
        for (name, section) in &sections {
            walk(loaded, &mut vec![name], section, &mut list);
        }
    }
    list
}

fn walk<'a>(loaded: &Loaded, key: &mut Vec<&'a str>, value: &'a Value, list: &mut Vec<Shown>) {
    match value {
        Value::Object(fields) if !fields.is_empty() || key.len() == 1 => {
            for (name, field) in fields {
                key.push(name);
                walk(loaded, key, field, list);
                key.pop();
            }
        }
        leaf => {
            let source = loaded.origin(key).to_string();
            list.push(Shown { key: key.join("."), value: veiled(key, leaf), source });
        }
    }
}

/// Hides a value that is named like a secret and is no reference to one.
fn veiled(key: &[&str], value: &Value) -> Value {
    const SECRET_WORDS: [&str; 6] = ["key", "token", "secret", "password", "authorization", "cookie"];
    let name = key.last().map_or_else(String::new, |name| name.to_ascii_lowercase());
    let names_secret = name.split(['_', '-']).any(|word| SECRET_WORDS.contains(&word));
    match value {
        Value::String(text) if names_secret && SecretRef::parse(text).is_err() => Value::from("***"),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn every_value_has_a_source_and_secrets_stay_references() {
        let env = [("TURNSTONE_WORKER__SLOTS", "3"), ("TURNSTONE_CLIENT__API_KEY", "env:MY_KEY")];
        let env = env.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        let loaded = Layers { file: Some(file.path().into()), env, flags: Vec::new() }.load().unwrap();
        let list = shown(&loaded);
        let of = |key: &str| {
            list.iter().find(|shown| shown.key == key).unwrap_or_else(|| panic!("{key} is missing"))
        };
        assert_eq!(
            (&of("worker.slots").value, of("worker.slots").source.as_str()),
            (&Value::from(3), "env TURNSTONE_WORKER__SLOTS")
        );
        assert_eq!(of("client.api_key").value, "env:MY_KEY");
        assert_eq!(of("server.bind").source, "default");
        assert_eq!(of("models.default_model").value, Value::Null);
    }

    #[test]
    fn a_literal_below_a_secrets_name_is_veiled() {
        let text = Value::from("sk-live-123");
        for name in ["api_key", "Authorization", "x-api-key", "TOKEN"] {
            assert_eq!(veiled(&["tools", "t", name], &text), "***", "{name}");
        }
        assert_eq!(veiled(&["tools", "t", "url"], &text), text);
        assert_eq!(veiled(&["models", "max_tokens"], &Value::from("x")), "x");
        assert_eq!(veiled(&["a", "api_key"], &Value::from("env:A")), "env:A");
    }
}
