//! Members that providers add to their answers, put together from the pieces of a stream.

use serde_json::{Map, Value};

/// Members whose texts come in pieces. Any other text is whole in each piece that has it.
const IN_PIECES: [&str; 7] =
    ["reasoning_content", "reasoning", "reasoning_text", "thinking", "text", "summary", "signature"];

/// The most items of a list among which the one that a piece belongs to is searched.
const MOST_ITEMS: usize = 1024;

/// Returns the members of an object that have a value and none of these names.
pub fn members_beside(said: &Value, known: &[&str]) -> Map<String, Value> {
    let members = said.as_object().into_iter().flatten();
    let others = members.filter(|(name, value)| !known.contains(&name.as_str()) && !is_nothing(value));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns true if a member says as much as its absence.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Adds a piece to members.
pub fn merge_members(members: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, new) in piece {
        match members.get_mut(&name) {
            None => drop(members.insert(name, new)),
            Some(Value::String(text)) if IN_PIECES.contains(&name.as_str()) => match new {
                Value::String(more) => text.push_str(&more),
                other => drop(members.insert(name, other)),
            },
            Some(Value::Object(known)) if new.is_object() => {
                if let Value::Object(more) = new {
                    merge_members(known, more);
                }
            }
            Some(Value::Array(items)) if new.is_array() => {
                if let Value::Array(more) = new {
                    more.into_iter().for_each(|item| merge_item(items, item));
                }
            }
            Some(known) => *known = new,
        }
    }
}

/// Adds an item of a list: to the one with the same `index` and `type`, if there is one.
fn merge_item(items: &mut Vec<Value>, item: Value) {
    if !item["index"].is_number() || items.len() >= MOST_ITEMS {
        items.push(item);
        return;
    }
    let is_same = |known: &&mut Value| known["index"] == item["index"] && known["type"] == item["type"];
    match (items.iter_mut().rev().find(is_same), item) {
        (Some(Value::Object(known)), Value::Object(more)) => merge_members(known, more),
        (_, item) => items.push(item),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_are_put_together() {
        let pieces = [
            json!({"role": "assistant", "reasoning_content": "I th", "details": [{"index": 0, "type": "a", "text": "x", "id": "1"}]}),
            json!({"role": "assistant", "reasoning_content": "ink", "audio": null, "annotations": []}),
            json!({"details": [{"index": 0, "type": "a", "text": "y", "id": "1"}, {"index": 1, "type": "b", "data": "z"}]}),
            json!({"extra": {"google": {"thought_signature": "s1"}}}),
            json!({"extra": {"google": {"thought_signature": "s2"}, "n": 1}}),
        ];
        let mut members = Map::new();
        for piece in &pieces {
            merge_members(&mut members, members_beside(piece, &["role"]));
        }
        let expected = json!({
            "reasoning_content": "I think",
            "details": [{"index": 0, "type": "a", "text": "xy", "id": "1"}, {"index": 1, "type": "b", "data": "z"}],
            "extra": {"google": {"thought_signature": "s2"}, "n": 1},
        });
        assert_eq!(Value::Object(members), expected);
    }
}
