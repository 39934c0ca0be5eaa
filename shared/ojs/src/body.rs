//! From bytes to one JSON object.

use crate::OjsError;
use crate::read::shortened;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use turnstone_domain::schema::deeper_than;

/// How deep a body may nest. The parser stops at 128 anyway; the difference is room for what answers and stored rows
/// wrap around a client's values.
pub const MAX_DEPTH: usize = 100;

struct Fields {
    map: Map<String, Value>,
    twice: Option<String>,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Fields, A::Error> {
                let mut fields = Fields { map: Map::new(), twice: None };
                while let Some((key, value)) = entries.next_entry::<String, Value>()? {
                    if fields.map.contains_key(&key) {
                        fields.twice.get_or_insert(key);
                    } else {
                        fields.map.insert(key, value);
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Reads a body that has to be one JSON object. A field that stands twice at the top is refused, because two readers
/// could take different ones.
///
/// # Errors
/// `invalid_payload` for anything that is not a JSON object or nests deeper than [`MAX_DEPTH`]; `invalid_request` for
/// a field that stands twice.
pub fn read_object(body: &[u8]) -> Result<Map<String, Value>, OjsError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(OjsError::invalid_payload("The body is empty; a JSON object is expected."));
    }
    let too_deep = || OjsError::invalid_payload(format!("The body nests deeper than {MAX_DEPTH} levels."));
    let fields: Fields = serde_json::from_slice(body).map_err(|error| {
        let words = error.to_string();
        if words.contains("recursion limit") {
            return too_deep();
        }
        let what = if error.is_data() { "a JSON object" } else { "JSON" };
        OjsError::invalid_payload(format!("The body is not {what}: {}.", shortened(&words, 200)))
    })?;
    if let Some(key) = fields.twice {
        return Err(OjsError::invalid_request(&shortened(&key, 100), "stands twice in the body"));
    }
    if fields.map.values().any(|value| deeper_than(value, MAX_DEPTH - 1)) {
        return Err(too_deep());
    }
    Ok(fields.map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &[u8]) -> OjsError {
        read_object(body).unwrap_err()
    }

    #[test]
    fn only_one_object_is_a_body() {
        for bad in [
            &b""[..],
            b"  \n",
            b"{",
            b"[]",
            b"3",
            b"null",
            b"{} {}",
            b"{'a':1}",
            b"{\"a\":\"\xff\"}",
            b"{\"a\":NaN}",
        ] {
            let error = refused(bad);
            assert_eq!((error.status, error.code), (400, "invalid_payload"), "{bad:?}: {error}");
        }
        assert!(read_object(b" {} ").unwrap().is_empty());
    }

    #[test]
    fn deep_bodies_are_refused_in_plain_words() {
        for depth in [MAX_DEPTH, 200, 10_000] {
            let body = format!("{{\"args\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            let error = refused(body.as_bytes());
            assert_eq!(error.code, "invalid_payload");
            assert!(error.message.contains("nests deeper than 100 levels"), "{error}");
        }
        let open = format!("{{\"args\":{}", "[".repeat(100_000));
        assert!(refused(open.as_bytes()).message.contains("nests deeper"));
        let fits = format!("{{\"args\":{}{}}}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
        assert!(read_object(fits.as_bytes()).is_ok());
    }

    #[test]
    fn a_field_that_stands_twice_is_named() {
        let error = refused(br#"{"type":"a","args":[],"type":"b"}"#);
        assert_eq!((error.code, error.details["field"].as_str()), ("invalid_request", Some("type")));
    }

    #[test]
    fn numbers_keep_their_value() {
        let mut bits: u64 = 1;
        for _ in 0..2000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = f64::from_bits(bits >> 2);
            let read = read_object(format!("{{\"a\":{number:.17e}}}").as_bytes()).unwrap();
            assert_eq!(read["a"].as_f64().map(f64::to_bits), Some(number.to_bits()), "{number:.17e}");
        }
        let text = r#"{"a":[0.1,18446744073709551615,-9223372036854775808,null]}"#;
        assert_eq!(Value::Object(read_object(text.as_bytes()).unwrap()).to_string(), text);
    }
}
