//! The steps of checking a value against a schema, counted before they are taken.
//!
//! Each reference may be followed more than once for the same place of the value. Forty definitions that name the next one
//! twice make 2⁴⁰ steps of three kilobytes. The count follows the schema as a validator does; a definition is counted once
//! for each place of the value, and the result is used again.

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ptr::from_ref;

/// The most steps for one place of a value, whatever the value is.
const MOST_IN_PLACE: u64 = 10_000;
/// The most steps for a whole value.
const MOST_STEPS: u64 = 5_000_000;
/// The most pairs of a definition and a place that are remembered.
const MOST_KNOWN: usize = 500_000;
/// Schemas in schemas, references included.
const DEEPEST: usize = 512;

/// Keywords whose schemas look at the same place as the schema that holds them.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
/// Keywords whose schemas look at the members, items or names of a place.
const BELOW: [&str; 10] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "prefixItems",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];
/// Keywords that hold schemas by name.
const MAPS: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Returns true when a schema follows references at all; without them, the steps are as many as the schema has parts.
pub(super) fn refers(schema: &Value) -> bool {
    let mut found = false;
    each_object(schema, &mut |_, object| found |= references(object).next().is_some());
    found
}

/// Refuses a schema that takes too many steps for one place, whatever the value is.
///
/// # Errors
/// A sentence that names a reference that leads back to itself, or reports that the references multiply.
pub(super) fn vet(root: &Value) -> Result<(), String> {
    let mut count = Count::new(root)?;
    let (mut open, mut seen) = (vec![root], HashMap::new());
    while let Some(schema) = open.pop() {
        if seen.insert(from_ref(schema), ()).is_some() {
            continue;
        }
        if count.steps(schema, None, 0)? > MOST_IN_PLACE {
            let most = MOST_IN_PLACE;
            return Err(format!("its references multiply to more than {most} steps for one value"));
        }
        let Value::Object(object) = schema else { continue };
        open.extend(IN_PLACE.iter().chain(&BELOW).flat_map(|name| held(object, name)));
        for reference in references(object) {
            open.extend(count.targets(reference)?);
        }
    }
    Ok(())
}

/// Refuses a value that takes too many steps.
///
/// # Errors
/// A sentence that reports it.
pub(super) fn allow(root: &Value, value: &Value) -> Result<(), String> {
    match Count::new(root)?.steps(root, Some(value), 0)? {
        steps if steps > MOST_STEPS => Err(too_many()),
        _ => Ok(()),
    }
}

fn too_many() -> String {
    format!(
        "checking this value takes more than {MOST_STEPS} steps, because the schema's references multiply"
    )
}

/// The addresses of a schema and of a value.
type Pair = (*const Value, *const Value);

struct Count<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// `None` while it is being counted.
    known: HashMap<Pair, Option<u64>>,
}

impl<'a> Count<'a> {
    fn new(root: &'a Value) -> Result<Self, String> {
        let mut anchors: HashMap<&str, Vec<&Value>> = HashMap::new();
        let old = root.get("$schema").and_then(Value::as_str).is_some_and(|name| name.contains("draft-04"));
        let mut embedded = None;
        each_object(root, &mut |schema, object| {
            for name in ["$anchor", "$dynamicAnchor"] {
                if let Some(anchor) = object.get(name).and_then(Value::as_str) {
                    anchors.entry(anchor).or_default().push(schema);
                }
            }
            if let Some(id) = object.get(if old { "id" } else { "$id" }).and_then(Value::as_str) {
                match id.strip_prefix('#') {
                    Some(anchor) => anchors.entry(anchor).or_default().push(schema),
                    None if !std::ptr::eq(schema, root) => embedded = Some(id),
                    None => {}
                }
            }
        });
        match embedded {
            Some(id) => Err(format!(
                "`$id` `{}` stands within the schema; give only the whole schema an `$id`, and refer with `#/$defs/…`",
                id.chars().take(60).collect::<String>()
            )),
            None => Ok(Self { root, anchors, known: HashMap::new() }),
        }
    }

    fn steps(&mut self, schema: &'a Value, value: Option<&Value>, depth: usize) -> Result<u64, String> {
        let Value::Object(object) = schema else { return Ok(1) };
        if depth > DEEPEST {
            return Err(format!("its references nest deeper than {DEEPEST} levels"));
        }
        let mut sum = 1_u64;
        for name in IN_PLACE {
            for part in held(object, name) {
                sum = sum.saturating_add(self.steps(part, value, depth + 1)?);
            }
        }
        for reference in references(object) {
            for target in self.targets(reference)? {
                sum = sum.saturating_add(self.followed(reference, target, value, depth + 1)?);
            }
        }
        sum = sum.saturating_add(match value {
            Some(Value::Object(members)) => self.members(object, members, depth + 1)?,
            Some(Value::Array(items)) => self.items(object, items, depth + 1)?,
            _ => 0,
        });
        if value.is_some() && sum > MOST_STEPS { Err(too_many()) } else { Ok(sum) }
    }

    /// Returns the steps of a reference; each target is counted once for a place.
    fn followed(
        &mut self,
        reference: &str,
        target: &'a Value,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<u64, String> {
        let pair = (from_ref(target), value.map_or(std::ptr::null(), from_ref));
        match self.known.get(&pair) {
            Some(Some(steps)) => return Ok(*steps),
            Some(None) => {
                return Err(format!("`{reference}` leads back to itself without a step into the value"));
            }
            None if self.known.len() >= MOST_KNOWN => return Err(too_many()),
            None => self.known.insert(pair, None),
        };
        let steps = self.steps(target, value, depth)?;
        self.known.insert(pair, Some(steps));
        Ok(steps)
    }

    fn members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Result<u64, String> {
        let named = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let mut sum = 0_u64;
        for (name, member) in members {
            let own = named.and_then(|named| named.get(name));
            let others = ["additionalProperties", "unevaluatedProperties"];
            let others = others.into_iter().filter_map(|name| schema.get(name)).filter(|_| own.is_none());
            for part in own.into_iter().chain(patterns.iter().flat_map(|all| all.values())).chain(others) {
                sum = sum.saturating_add(self.steps(part, Some(member), depth)?);
            }
            if let Some(part) = schema.get("propertyNames") {
                sum = sum.saturating_add(self.steps(part, None, depth)?);
            }
        }
        Ok(sum)
    }

    fn items(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        depth: usize,
    ) -> Result<u64, String> {
        let mut sum = 0_u64;
        for (at, item) in items.iter().enumerate() {
            for name in ["prefixItems", "items", "additionalItems", "unevaluatedItems", "contains"] {
                let part = match schema.get(name) {
                    Some(Value::Array(each)) => each.get(at),
                    other => other,
                };
                if let Some(part) = part {
                    sum = sum.saturating_add(self.steps(part, Some(item), depth)?);
                }
            }
        }
        Ok(sum)
    }

    /// Returns the targets of a reference within the document. The published schemas are the validator's own, and do
    /// not multiply.
    fn targets(&self, reference: &str) -> Result<Vec<&'a Value>, String> {
        let own = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let within = reference.strip_prefix(own.trim_end_matches('#')).unwrap_or(reference);
        let Some(fragment) = within.strip_prefix('#').or(within.is_empty().then_some("")) else {
            if PUBLISHED.iter().any(|published| reference.starts_with(published)) {
                return Ok(Vec::new());
            }
            let shown: String = reference.chars().take(60).collect();
            return Err(format!("the reference `{shown}` leads outside of the schema; use `#/$defs/…`"));
        };
        if fragment.is_empty() {
            return Ok(vec![self.root]);
        }
        let fragment = percent_decoded(fragment);
        if fragment.starts_with('/') {
            return Ok(self.root.pointer(&fragment).into_iter().collect());
        }
        Ok(self.anchors.get(fragment.as_str()).cloned().unwrap_or_default())
    }
}

/// The addresses of the published schemas of JSON Schema.
const PUBLISHED: [&str; 2] = ["http://json-schema.org/draft-", "https://json-schema.org/draft/"];

/// Returns the schemas that a keyword holds: itself, a list, or a map.
fn held<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Vec<&'a Value> {
    match schema.get(keyword) {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(Value::Object(named)) if MAPS.contains(&keyword) => named.values().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    }
}

fn each_object<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value, &'a Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(value, object);
            object.values().for_each(|value| each_object(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|value| each_object(value, visit)),
        _ => {}
    }
}

fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn references(object: &Map<String, Value>) -> impl Iterator<Item = &str> {
    REFERENCES.into_iter().filter_map(|name| object.get(name)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chain(link: impl Fn(String) -> Value) -> Value {
        let mut definitions = Map::new();
        for at in 0..40 {
            definitions.insert(format!("d{at}"), link(format!("#/$defs/d{}", at + 1)));
        }
        definitions.insert("d40".to_owned(), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    #[test]
    fn references_that_multiply_for_one_value_are_refused() {
        let twice = chain(|next| json!({"allOf": [{"$ref": next.clone()}, {"$ref": next}]}));
        assert!(vet(&twice).unwrap_err().contains("multiply"));
        // Below a property, under another spelling, and behind an anchor as well.
        let below =
            json!({"properties": {"a": twice["$defs"]["d0"].clone()}, "$defs": twice["$defs"].clone()});
        assert!(vet(&below).is_err());
        let spelt = serde_json::from_str(&twice.to_string().replace("#/$defs", "#/%24defs")).unwrap();
        assert!(vet(&spelt).is_err());
        let once = chain(|next| json!({"allOf": [{"$ref": next}, {"type": "string"}]}));
        assert_eq!(vet(&once), Ok(()));
    }

    #[test]
    fn references_that_multiply_on_the_way_down_are_refused_by_value() {
        let schema = json!({
            "allOf": [{"properties": {"x": {"$ref": "#"}}}, {"patternProperties": {"x": {"$ref": "#"}}}],
        });
        assert_eq!(vet(&schema), Ok(()));
        let nested = |depth| (0..depth).fold(json!({}), |inner, _| json!({"x": inner}));
        assert_eq!(allow(&schema, &nested(10)), Ok(()));
        assert!(allow(&schema, &nested(60)).unwrap_err().contains("multiply"));
    }

    #[test]
    fn usual_recursion_is_allowed() {
        let tree = json!({
            "$defs": {"node": {"anyOf": [
                {"type": "object", "properties": {"op": {"const": "+"}, "left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}}},
                {"type": "object", "properties": {"op": {"const": "-"}, "of": {"$ref": "#/$defs/node"}}},
                {"type": "number"},
            ]}},
            "$ref": "#/$defs/node",
        });
        assert_eq!(vet(&tree), Ok(()));
        let value = (0..30).fold(json!(1), |inner, _| json!({"op": "+", "left": inner, "right": 2}));
        assert_eq!(allow(&tree, &value), Ok(()));
        let anchored =
            json!({"items": {"$ref": "#item"}, "$defs": {"i": {"$anchor": "item", "type": "string"}}});
        assert_eq!(vet(&anchored), Ok(()));
    }

    #[test]
    fn references_that_hide_where_they_lead_are_refused() {
        for (schema, words) in [
            (json!({"$ref": "https://example.com/x"}), "outside"),
            (json!({"$ref": "json-schema:///#/$defs/a", "$defs": {"a": {}}}), "outside"),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "https://example.com/a"}}}), "`$id`"),
            (json!({"$ref": "#"}), "leads back"),
            (json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}), "leads back"),
        ] {
            assert!(vet(&schema).unwrap_err().contains(words), "{schema}");
        }
    }
}
