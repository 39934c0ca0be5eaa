//! Types, properties and placeholders.

use super::{AGENT, errors, rules, with};
use crate::agent_spec::{Type, placeholders};
use serde_json::{Value, json};

fn castable(from: &Value, to: &Value) -> bool {
    Type::of(from).unwrap().is_castable_to(&Type::of(to).unwrap())
}

#[test]
fn every_value_becomes_text_and_text_becomes_nothing_else() {
    let types = [
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"type": "null"}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "boolean"}}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"size": {"type": "number"}}}),
        json!({"type": ["integer", "null"]}),
    ];
    for one in &types {
        assert!(castable(one, &json!({"type": "string"})), "{one}");
        assert!(!castable(&json!({"type": "string"}), one), "{one}");
        assert!(castable(one, one) && castable(one, &json!({})), "{one}");
    }
}

#[test]
fn numbers_and_booleans_are_cast_to_one_another_at_any_depth() {
    let names = ["integer", "number", "boolean"];
    for from in names {
        for to in names {
            assert!(castable(&json!({"type": from}), &json!({"type": to})));
            let list = |name: &str| json!({"type": "array", "items": {"type": name}});
            assert!(castable(&list(from), &list(to)));
            let object = |name: &str| json!({"type": "object", "properties": {"n": {"type": name}}});
            assert!(castable(&object(from), &object(to)));
        }
        assert!(!castable(&json!({"type": from}), &json!({"type": "null"})));
        assert!(!castable(&json!({"type": from}), &json!({"type": "array", "items": {"type": from}})));
    }
}

#[test]
fn every_member_of_a_union_must_fit() {
    let maybe = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
    assert!(castable(&json!({"type": "boolean"}), &maybe));
    assert!(castable(&json!({"type": "null"}), &maybe));
    assert!(castable(&json!({"type": ["null", "number"]}), &maybe));
    assert!(!castable(&maybe, &json!({"type": "integer"})));
    assert!(!castable(&json!({"type": ["number", "string"]}), &maybe));
    assert!(castable(&json!({"type": ["number", "boolean"]}), &json!({"type": "integer"})));
    assert_eq!(Type::of(&json!({"type": ["null", "integer"]})).unwrap(), Type::of(&maybe).unwrap());
}

#[test]
fn an_object_needs_the_properties_that_are_asked_for() {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let (one, both) = (object(json!({"a": {"type": "integer"}})), {
        object(json!({"a": {"type": "integer"}, "b": {"type": "string"}}))
    });
    assert!(castable(&both, &one) && !castable(&one, &both));
    let closed = json!({"type": "object", "additionalProperties": false});
    let numbers = json!({"type": "object", "additionalProperties": {"type": "number"}});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    assert!(castable(&numbers, &texts) && !castable(&texts, &numbers));
    assert!(!castable(&one, &numbers) && castable(&one, &texts));
    assert!(!castable(&numbers, &closed) && castable(&closed, &closed));
}

#[test]
fn what_the_type_system_has_not_is_refused() {
    for schema in [
        json!({"allOf": [{"type": "string"}]}),
        json!({"oneOf": [{"type": "string"}]}),
        json!({"anyOf": []}),
        json!({"type": "text"}),
        json!({"type": []}),
        json!({"type": 3}),
        json!({"type": "array", "items": {"type": "strin"}}),
        json!({"type": "object", "properties": {"a": {"oneOf": []}}}),
        json!("string"),
    ] {
        assert!(Type::of(&schema).is_err(), "{schema}");
    }
}

#[test]
fn placeholders_are_words_in_double_braces() {
    for (text, names) in [
        ("{{a}} {{ b_2 }} {{a}}", vec!["a", "b_2"]),
        ("{{\n größe\t}}", vec!["größe"]),
        ("{{{x}}}", vec!["x"]),
        ("{{a.b}} {{a|upper}} {% if a %} {a} {{ }} {{a b}} {{a", vec![]),
        ("{{ {{a}} }}", vec!["a"]),
    ] {
        assert_eq!(placeholders(text), names, "{text}");
    }
}

/// AS-20, AS-21, AS-22, AS-25: a property is refused at its place.
#[test]
fn a_property_has_a_title_a_type_and_a_default_of_it() {
    let agent = |outputs: &str| format!("{AGENT}outputs: {outputs}\n");
    for (outputs, rule) in [
        ("[{type: string}]", "AS-20@7:11"),
        ("[{title: '', type: string}]", "AS-20@7:11"),
        ("[{title: 3, type: string}]", "AS-20@7:11"),
        ("[{title: a.b, type: string}]", "AS-20@7:11"),
        ("[{title: 'a b', type: string}]", "AS-20@7:11"),
        ("[{title: o, type: object, properties: {p: {title: 'p,q', type: string}}}]", "AS-20@7:11"),
        ("[{title: ok, type: string}, {title: a, type: txt}]", "AS-21@7:38"),
        ("[{title: a, allOf: []}]", "AS-21@7:11"),
        ("[{title: a, type: integer, default: three}]", "AS-22@7:11"),
        ("[{title: a, type: array, items: {type: string}, default: [1]}]", "AS-22@7:11"),
        ("[{title: a, type: object, properties: {b: {type: string}}, default: {}}]", "AS-22@7:11"),
        ("[{title: a, type: string}, {title: a, type: string}]", "AS-25@7:37"),
        ("{a: string}", "AS-06@7:10"),
    ] {
        assert_eq!(errors(&agent(outputs)), [rule], "{outputs}");
    }
    for outputs in [
        "[{title: a}]",
        "[{title: a, type: integer, default: true}]",
        "[{title: a, type: boolean, default: 0}]",
        "[{title: a, type: [string, 'null'], default: null}]",
        "[{title: a, type: object, properties: {b: {type: string, default: x}}, default: {}}]",
        "[{title: a, type: object, additionalProperties: {type: number}, default: {b: 1}}]",
    ] {
        assert_eq!(rules(&agent(outputs)), [""; 0], "{outputs}");
    }
}

/// AS-23: a declaration names what the placeholders name; its types may be narrower than strings.
#[test]
fn declared_inputs_are_those_of_the_placeholders() {
    let agent = |inputs: &str| format!("{AGENT}inputs: {inputs}\n");
    assert_eq!(rules(&agent("[{title: who, type: integer}]")), [""; 0]);
    assert_eq!(errors(&agent("[]")), ["AS-23@7:9"]);
    assert_eq!(errors(&agent("[{title: who, type: string}, {title: why, type: string}]")), ["AS-23@7:9"]);
    assert_eq!(rules(&with(AGENT, "You help {{who}}.", "You help.")), [""; 0]);
}
