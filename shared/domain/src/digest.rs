//! Content digests of JSON values, independent of key order.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Lower-case hex SHA-256 of the value with all object keys sorted.
#[must_use]
pub fn of_json(value: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(&mut hasher, value);
    hex(&hasher.finalize())
}

/// Lower-case hex SHA-256 of a text.
#[must_use]
pub fn of_text(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Lower-case hex SHA-256 of bytes.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The digest of bytes that arrive in parts.
#[derive(Clone, Debug, Default)]
pub struct Running {
    hasher: Sha256,
    is_fed: bool,
}

impl Running {
    /// Adds a part.
    pub fn feed(&mut self, part: &[u8]) {
        self.is_fed |= !part.is_empty();
        self.hasher.update(part);
    }

    /// Lower-case hex SHA-256 of the parts so far; `None` without any.
    #[must_use]
    pub fn digest(&self) -> Option<String> {
        self.is_fed.then(|| hex(&self.hasher.clone().finalize()))
    }
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            hasher.update(b"{");
            for key in keys {
                hasher.update(Value::from(key.as_str()).to_string());
                hasher.update(b":");
                feed(hasher, &map[key]);
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                feed(hasher, item);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        scalar => hasher.update(scalar.to_string()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_does_not_matter_but_values_do() {
        assert_eq!(
            of_json(&json!({"a": 1, "b": [1, {"c": 2, "d": 3}]})),
            of_json(&json!({"b": [1, {"d": 3, "c": 2}], "a": 1}))
        );
        assert_ne!(of_json(&json!({"a": 1})), of_json(&json!({"a": "1"})));
        assert_ne!(of_json(&json!([[1], [2]])), of_json(&json!([[1, 2], []])));
    }
}
