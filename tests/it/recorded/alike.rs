//! Views of the same rows, each recorded as its difference from another view, so that a recording has no repetition.

use serde_json::{Map, Value, json};

/// Returns the difference of a value from another one: `null` when both are equal, members that differ, and the names
/// of members that it is `without`.
pub fn beyond(value: &Value, other: &Value) -> Value {
    let (Value::Object(value), Value::Object(other)) = (value, other) else {
        return if value == other { Value::Null } else { json!({"is": value}) };
    };
    let mut more = Map::new();
    for (name, member) in value {
        match other.get(name) {
            Some(same) if same == member => {}
            Some(old) if old.is_object() && member.is_object() => {
                more.insert(name.clone(), beyond(member, old));
            }
            _ => {
                more.insert(name.clone(), member.clone());
            }
        }
    }
    let mut without: Vec<&str> =
        other.keys().filter(|name| !value.contains_key(*name)).map(String::as_str).collect();
    without.sort_unstable();
    if !without.is_empty() {
        more.insert("without".to_owned(), json!(without));
    }
    if more.is_empty() { Value::Null } else { Value::Object(more) }
}

/// Returns rows by their difference from the rows of another page. Consecutive rows with the same difference are
/// grouped. The last rows of both pages correspond: a fork's page has the rows of its origin before its own, and
/// these are complete.
pub fn rows_beyond(rows: &[Value], others: &[Value]) -> Value {
    let ahead = rows.len().saturating_sub(others.len());
    let spare = others.len().saturating_sub(rows.len());
    let mut reported: Vec<(usize, usize, Value)> = Vec::new();
    for (at, row) in rows.iter().enumerate().skip(ahead) {
        let more = beyond(row, &others[spare + at - ahead]);
        match reported.last_mut() {
            Some((_, last, same)) if *same == more => *last = at,
            _ => reported.push((at, at, more)),
        }
    }
    let mut all: Vec<Value> = rows[..ahead].to_vec();
    all.extend(reported.into_iter().map(|(first, last, more)| {
        let rows =
            if first == last { format!("{}", first + 1) } else { format!("{}-{}", first + 1, last + 1) };
        json!({"rows": rows, "beyond": more})
    }));
    if spare > 0 {
        all.push(json!({"rows missing": spare}));
    }
    Value::Array(all)
}

/// Returns rows in groups: consecutive rows have their common values of these members once, before them.
pub fn grouped(rows: &[Value], members: &[&str]) -> Value {
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for row in rows {
        let (mut common, mut rest) = (Map::new(), Map::new());
        for (name, value) in row.as_object().into_iter().flatten() {
            let side = if members.contains(&name.as_str()) { &mut common } else { &mut rest };
            side.insert(name.clone(), value.clone());
        }
        let common = Value::Object(common);
        match groups.last_mut() {
            Some((same, rows)) if *same == common => rows.push(Value::Object(rest)),
            _ => groups.push((common, vec![Value::Object(rest)])),
        }
    }
    groups.into_iter().map(|(common, rows)| json!({"each": common, "rows": rows})).collect()
}

#[test]
fn rows_are_recorded_by_their_difference() {
    let rows = [
        json!({"a": 1, "b": {"c": 2}}),
        json!({"a": 1, "b": {"c": 3}}),
        json!({"a": 1, "b": {"c": 3}, "d": 4}),
    ];
    let others = [json!({"a": 1, "b": {"c": 3}}), json!({"a": 1, "b": {"c": 3}, "e": 5})];
    let reported = rows_beyond(&rows, &others);
    assert_eq!(
        reported,
        json!([rows[0], {"rows": "2", "beyond": null}, {"rows": "3", "beyond": {"d": 4, "without": ["e"]}}])
    );
    assert_eq!(
        rows_beyond(&rows[..1], &others),
        json!([{"rows": "1", "beyond": {"b": {"c": 2}, "without": ["e"]}}, {"rows missing": 1}])
    );
    let groups = grouped(&rows, &["a"]);
    let rest = json!([{"b": {"c": 2}}, {"b": {"c": 3}}, {"b": {"c": 3}, "d": 4}]);
    assert_eq!(groups, json!([{"each": {"a": 1}, "rows": rest}]));
}
