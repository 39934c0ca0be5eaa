//! Fields that flags set on a job, and remarks about the fields of a job.

use crate::failure::Failure;
use serde_json::{Map, Value, json};
use turnstone_ojs::agent_fields;

/// Puts `--set` and `--agent` into a job.
///
/// # Errors
/// A field does not have the form `FIELD=VALUE`, or `meta` is no object.
pub fn put(job: &mut Map<String, Value>, set: &[String], agent: Option<&str>) -> Result<(), Failure> {
    for field in set {
        let Some((name, value)) = field.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(format!("--set {field} has not the form FIELD=VALUE")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        set_at(job, name, value)?;
    }
    if let Some(agent) = agent {
        let meta = job.entry("meta").or_insert_with(|| json!({}));
        let Some(meta) = meta.as_object_mut() else {
            return Err(Failure::usage("--set meta=… is not a JSON object"));
        };
        meta.insert("agent".to_owned(), json!(agent));
    }
    Ok(())
}

/// Sets a field; a name with dots is a member of an object, as in `meta.user`.
fn set_at(job: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), Failure> {
    let Some((object, rest)) =
        name.split_once('.').filter(|(object, rest)| !object.is_empty() && !rest.is_empty())
    else {
        job.insert(name.to_owned(), value);
        return Ok(());
    };
    let inner = job.entry(object).or_insert_with(|| json!({}));
    match inner.as_object_mut() {
        Some(inner) => set_at(inner, rest, value),
        None => Err(Failure::usage(format!("--set {name}=…: `{object}` is not a JSON object"))),
    }
}

/// Returns the remarks on jobs before they are sent, each once: fields that look like an agent's and are none.
#[must_use]
pub fn remarks(jobs: &[Value]) -> Vec<String> {
    let mut reported: Vec<String> = Vec::new();
    let names = jobs.iter().filter_map(Value::as_object).flat_map(Map::keys);
    for remark in names.filter_map(|name| agent_fields::remark(name)) {
        if !reported.contains(&remark) {
            reported.push(remark);
        }
    }
    reported
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_an_object_is_set_by_its_path() {
        let mut job = Map::new();
        let set =
            [r#"meta.user={"id":"ada"}"#, "meta.tenant_id=acme", "ext_agent_model=m"].map(str::to_owned);
        put(&mut job, &set, Some("desk")).unwrap();
        let meta = json!({"user": {"id": "ada"}, "tenant_id": "acme", "agent": "desk"});
        assert_eq!(Value::Object(job.clone()), json!({"meta": meta, "ext_agent_model": "m"}));
        assert!(put(&mut job, &["ext_agent_model.x=1".to_owned()], None).is_err());
    }

    #[test]
    fn a_misspelt_field_is_remarked_once() {
        let job = json!({"type": "a", "ext_agent_tokenbudget": 5, "ext_agent_model": "m"});
        let said = remarks(&[job.clone(), job]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("ext_agent_tokenbudget") && said[0].contains("`ext_agent_token_budget`"),
            "{said:?}"
        );
    }
}
