//! One spelling for every JSON value (after RFC 8785): no white space, keys sorted, texts in NFC, numbers by value.

use serde_json::Value;
use turnstone_domain::number::one_spelling;
use unicode_normalization::UnicodeNormalization;

/// Returns the one spelling of a value.
pub(super) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&one_spelling(number)),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut members: Vec<(&String, &Value)> = map.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&Value::String(text.nfc().collect()).to_string());
}

#[cfg(test)]
mod tests {
    use super::canonical;

    fn of(text: &str) -> String {
        canonical(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn spellings_of_one_value_are_one() {
        for (one, other) in [
            (r#"{"b":1,"a":[1, 2]}"#, r#"{ "a" : [1,2], "b" : 1 }"#),
            ("[1.0, 1e2, 0.50]", "[1,100,0.5]"),
            (r#""caf\u00e9""#, "\"cafe\u{301}\""),
            ("-0.0", "-0.0"),
        ] {
            assert_eq!(of(one), of(other));
        }
        assert_eq!(
            of(r#"{"\u20ac":1,"a":"\n\"","Z":[true,null]}"#),
            "{\"Z\":[true,null],\"a\":\"\\n\\\"\",\"\u{20ac}\":1}"
        );
    }

    #[test]
    fn different_values_stay_different() {
        for (one, other) in [
            ("9007199254740993", "9007199254740992"),
            ("\"1\"", "1"),
            ("[[1],2]", "[1,[2]]"),
            ("null", "\"null\""),
            ("{}", "[]"),
            ("0.1", "0.10000000000000002"),
        ] {
            assert_ne!(of(one), of(other));
        }
    }
}
