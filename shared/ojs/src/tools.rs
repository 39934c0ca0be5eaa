//! `ext_agent_tools` (agent extension §2.2, §4).

use crate::read;
use serde_json::Value;
use std::collections::HashSet;
use turnstone_domain::agent::ToolDeclaration;
use turnstone_domain::schema::Schema;

/// Reads the declared tools. Unknown keys of a tool are ignored: the envelope keeps them.
///
/// # Errors
/// The place inside the field, such as `[1].name`, and words that complete the sentence.
pub(crate) fn declarations(value: &Value) -> Result<Vec<ToolDeclaration>, String> {
    let tools = read::array(value)?;
    let mut names = HashSet::new();
    let mut declared = Vec::with_capacity(tools.len());
    for (at, tool) in tools.iter().enumerate() {
        let tool = declaration(tool).map_err(|why| format!("[{at}]{why}"))?;
        if !names.insert(tool.name.clone()) {
            return Err(format!("[{at}].name `{}` stands twice in the list", tool.name));
        }
        declared.push(tool);
    }
    Ok(declared)
}

fn declaration(value: &Value) -> Result<ToolDeclaration, String> {
    let tool = read::object(value).map_err(|why| format!(" {why}"))?;
    let given = |key: &str| tool.get(key).filter(|value| !value.is_null());
    let name = given("name").ok_or(".name is missing")?;
    let name = read::text(name).and_then(named).map_err(|why| format!(".name {why}"))?;
    let description =
        given("description").map(read::text).transpose().map_err(|why| format!(".description {why}"))?;
    let parameters =
        given("parameters").map(schema).transpose().map_err(|why| format!(".parameters {why}"))?;
    Ok(ToolDeclaration { name: name.to_owned(), description: description.map(str::to_owned), parameters })
}

/// Checks a name by `^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,252}$`, the union of the names that the specifications allow.
fn named(name: &str) -> Result<&str, String> {
    let first = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if first && rest && name.len() <= 253 {
        return Ok(name);
    }
    let shown = read::shortened(name, 60);
    Err(format!(
        "`{shown}` must be 1 to 253 characters of a-z, A-Z, 0-9, `_`, `.`, `-`, and begin with a letter or digit"
    ))
}

/// Reads a JSON Schema that is an object and compiles.
pub(crate) fn schema(value: &Value) -> Result<Value, String> {
    read::object(value)?;
    Schema::verify(value).map_err(|why| format!("cannot be used: {}", read::shortened(&why, 300)))?;
    Ok(value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn good_tools_are_read_in_order() {
        let tools = declarations(&json!([
            {"name": "web_search", "description": "d", "parameters": {"type": "object"}, "x": 1},
            {"name": "9.a-B_c"},
        ]))
        .unwrap();
        assert_eq!(tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["web_search", "9.a-B_c"]);
        assert_eq!(tools[0].parameters, Some(json!({"type": "object"})));
    }

    #[test]
    fn bad_tools_say_where() {
        for (tools, place) in [
            (json!({}), "must be an array"),
            (json!(["a"]), "[0] must be an object"),
            (json!([{"description": "d"}]), "[0].name is missing"),
            (json!([{"name": 3}]), "[0].name must be a string"),
            (json!([{"name": ""}]), "[0].name"),
            (json!([{"name": "_x"}]), "[0].name"),
            (json!([{"name": "rm -rf"}]), "[0].name"),
            (json!([{"name": "a".repeat(254)}]), "[0].name"),
            (json!([{"name": "a"}, {"name": "a"}]), "[1].name `a` stands twice"),
            (json!([{"name": "a", "description": 1}]), "[0].description"),
            (json!([{"name": "a", "parameters": true}]), "[0].parameters must be an object"),
            (json!([{"name": "a", "parameters": {"type": "strin"}}]), "[0].parameters cannot be used"),
        ] {
            let why = declarations(&tools).unwrap_err();
            assert!(why.starts_with(place), "{why}");
        }
    }
}
