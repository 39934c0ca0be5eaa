//! Values are cast to the type of the input that they fill.

use crate::agent_spec::Type;
use serde_json::{Value, json};

fn cast(schema: &Value, value: Value) -> Result<Value, String> {
    Type::of(schema).unwrap().cast(value)
}

fn of(name: &str) -> Value {
    json!({"type": name})
}

/// AGS-07: every value becomes text.
#[test]
fn everything_is_cast_to_text() {
    for (value, text) in [
        (json!("a"), "a"),
        (json!(null), ""),
        (json!(true), "true"),
        (json!(2.75), "2.75"),
        (json!([1, "b", null]), "[1, \"b\", null]"),
        (json!({"k": [1, 2]}), "{\"k\": [1, 2]}"),
    ] {
        assert_eq!(cast(&of("string"), value), Ok(json!(text)));
    }
}

/// AGS-07: numbers and booleans.
#[test]
fn numbers_and_booleans_are_cast_to_one_another() {
    for (kind, value, to) in [
        ("integer", json!(2.9), json!(2)),
        ("integer", json!(-2.9), json!(-2)),
        ("integer", json!(true), json!(1)),
        ("number", json!(2), json!(2)),
        ("number", json!(false), json!(0)),
        ("boolean", json!(0.0), json!(false)),
        ("boolean", json!(3), json!(true)),
    ] {
        assert_eq!(cast(&of(kind), value), Ok(to), "{kind}");
    }
    for (kind, value) in [
        ("integer", json!("3")),
        ("integer", json!(1e300)),
        ("boolean", json!("true")),
        ("null", json!(0)),
        ("array", json!("a")),
        ("object", json!([])),
    ] {
        let why = cast(&of(kind), value).unwrap_err();
        assert!(why.contains("cannot be cast"), "{why}");
    }
}

/// AGS-07: items, members and unions.
#[test]
fn items_members_and_unions_are_cast_one_by_one() {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(cast(&texts, json!([1, true])), Ok(json!(["1", "true"])));
    let object = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    assert_eq!(cast(&object, json!({"n": 1.5, "m": "x"})), Ok(json!({"n": 1, "m": "x"})));
    assert!(cast(&object, json!({})).unwrap_err().contains("`n` is missing"));
    let union = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
    assert_eq!(cast(&union, json!(null)), Ok(json!(null)));
    assert_eq!(cast(&union, json!(2.5)), Ok(json!(2)));
    let why = cast(&union, json!("x")).unwrap_err();
    assert!(["integer", " or ", "null"].iter().all(|part| why.contains(part)), "{why}");
}
