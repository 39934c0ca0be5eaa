//! Fields that a job is given by flags, and what is remarkable about the fields of a job.

use crate::failure::Failure;
use serde_json::{Map, Value, json};
use turnstone_ojs::agent_fields;

/// Puts `--set` and `--agent` into a job.
///
/// # Errors
/// A field has not the form `FIELD=VALUE`, or `meta` is no object.
pub fn put(job: &mut Map<String, Value>, set: &[String], agent: Option<&str>) -> Result<(), Failure> {
    for field in set {
        let Some((name, value)) = field.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(format!("--set {field} has not the form FIELD=VALUE")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        job.insert(name.to_owned(), value);
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

/// What should be said of jobs before they are sent, each sentence once: fields that look like those of agents and are none.
#[must_use]
pub fn remarks(jobs: &[Value]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    let names = jobs.iter().filter_map(Value::as_object).flat_map(Map::keys);
    for remark in names.filter_map(|name| agent_fields::remark(name)) {
        if !told.contains(&remark) {
            told.push(remark);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

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
