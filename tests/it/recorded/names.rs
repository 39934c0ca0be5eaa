//! Names that replace random values: ids by their order of appearance, and the ports of the test's servers.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The length of a UUID as text.
const UUID: usize = 36;
/// The length of an artifact's id: `art_` and 32 digits.
const ARTIFACT: usize = 36;
/// The host of the test's servers, before the port.
const HOST: &str = "127.0.0.1:";

/// The names given so far.
#[derive(Default)]
pub struct Names {
    known: HashMap<String, String>,
    counts: BTreeMap<String, usize>,
}

impl Names {
    /// Gives names to ids before they appear.
    pub fn announce(&mut self, kind: &str, ids: &Value) {
        for id in ids.as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.name(id, kind);
        }
    }

    /// Returns the name of an id; a new one is called after the field where it first appears.
    fn name(&mut self, id: &str, kind: &str) -> String {
        if let Some(name) = self.known.get(id) {
            return name.clone();
        }
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count += 1;
        let name = format!("<{kind} {count}>");
        self.known.insert(id.to_owned(), name.clone());
        name
    }

    /// Returns the value with names in place of ids, and with the members of objects in the order of their names.
    pub fn given(&mut self, value: &Value) -> Value {
        self.given_at("id", value)
    }

    /// Returns the place of a member. An id that has a name is in the order of the names: the id of a delegate may sort before that
    /// of its caller.
    fn place(&self, member: &str) -> (usize, String) {
        match self.known.get(member) {
            // The 10th comes after the 2nd.
            Some(name) => (name.len(), name.clone()),
            None => (0, member.to_owned()),
        }
    }

    fn given_at(&mut self, field: &str, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(field, text)),
            Value::Array(items) => items.iter().map(|item| self.given_at(field, item)).collect(),
            Value::Object(members) => {
                let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
                sorted.sort_by_cached_key(|(name, _)| self.place(name));
                let mut named = Vec::new();
                for (name, value) in sorted {
                    let member = self.text("id", name);
                    // The digest of a request of the Agent Protocol, which covers the id of its run.
                    let covers_ids = field == "agent_protocol" && name == "digest" && value.is_string();
                    let value = if covers_ids { Value::from("<digest>") } else { self.given_at(name, value) };
                    named.push((member, value));
                }
                // Ids do not sort by their age everywhere; their names do.
                named.sort_by(|(a, _), (b, _)| a.cmp(b));
                Value::Object(named.into_iter().collect())
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, field: &str, text: &str) -> String {
        let kind = field.strip_suffix("_id").or(field.strip_suffix("Id")).unwrap_or("id");
        if text.len() < UUID && !text.contains(HOST) {
            return text.to_owned();
        }
        let mut named = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(id) = rest.get(..UUID).filter(|head| is_uuid(head)) {
                named.push_str(&self.name(id, kind));
                rest = &rest[UUID..];
            } else if let Some(id) = rest.get(..ARTIFACT).filter(|head| is_artifact(head)) {
                named.push_str(&self.name(id, "artifact"));
                rest = &rest[ARTIFACT..];
            } else if let Some(after) = rest.strip_prefix(HOST) {
                named.push_str(HOST);
                named.push_str("<port>");
                rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
            } else {
                let step = rest.chars().next().map_or(1, char::len_utf8);
                named.push_str(&rest[..step]);
                rest = &rest[step..];
            }
        }
        named
    }
}

fn is_artifact(text: &str) -> bool {
    text.starts_with("art_") && text[4..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uuid(text: &str) -> bool {
    text.as_bytes()[8] == b'-'
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[test]
fn ids_are_named_in_the_order_in_which_their_owners_were_made() {
    let id = |last: u8| format!("0190a7b2-0000-7000-8000-{last:012}");
    let mut names = Names::default();
    // The one that was made first sorts last.
    names.announce("engagement", &serde_json::json!([id(9), id(1)]));
    let of = serde_json::json!({id(1): {"call_id": id(3)}, id(9): {"call_id": id(2)}});
    let named = serde_json::json!({
        "<engagement 1>": {"call_id": "<call 1>"},
        "<engagement 2>": {"call_id": "<call 2>"},
    });
    assert_eq!(names.given(&of), named);
}
