//! A document of an agent, alone or with what it refers to: `{"document": …, "registry": {…}, "parts": […]}`.

use crate::reply::Failure;
use serde::Deserialize;
use serde_json::{Map, Value};
use turnstone_ojs::OjsError;
use turnstone_ojs::body::refuse_nul;
use turnstone_specs::Problem;
use turnstone_specs::agent_spec::Registry;
use utoipa::ToSchema;

/// An Agent Spec document with the values that it refers to.
#[derive(Deserialize, ToSchema)]
pub(crate) struct BundleBody {
    /// The document: a text in YAML or JSON, or a JSON object.
    document: Value,
    /// The values of references that the document does not define, by their ids: secrets, components, plain
    /// values. They are used and never shown.
    #[serde(default)]
    #[schema(value_type = Option<Map<String, Value>>)]
    registry: Value,
    /// Disaggregated documents, which hold `$referenced_components` and nothing else.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Value>>)]
    parts: Value,
}

/// A document with what it refers to.
pub(super) struct Bundle {
    /// The document.
    pub(super) document: String,
    /// The values that it refers to.
    pub(super) registry: Registry,
    /// True if there are values or parts.
    pub(super) is_bundle: bool,
}

impl Bundle {
    /// Reads a body: a bundle, or a document alone.
    ///
    /// # Errors
    /// 400 when a bundle has another shape; 422 with the problems of its parts.
    pub(super) fn read(source: String) -> Result<Self, Failure> {
        let alone = |document| Self { document, registry: Registry::default(), is_bundle: false };
        if !source.trim_start().starts_with('{') {
            return Ok(alone(source));
        }
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(&source) else {
            return Ok(alone(source));
        };
        refuse_nul(source.as_bytes())?;
        if fields.contains_key("component_type") || fields.contains_key("kind") {
            return Ok(alone(source));
        }
        let unknown = fields.keys().find(|name| !["document", "registry", "parts"].contains(&name.as_str()));
        let unknown = unknown.cloned();
        let Ok(BundleBody { document, registry, parts }) = serde_json::from_value(fields.into()) else {
            return Ok(alone(source));
        };
        if let Some(name) = unknown {
            let why = "is not known beside `document`; send `document`, `registry` and `parts`";
            return Err(OjsError::invalid_request(&name, why).into());
        }
        let mut known = Registry::default();
        for part in list(parts)? {
            known = known.with_document(&text(part)).map_err(|problems| refused(&problems))?;
        }
        for (id, value) in map(registry)? {
            known = known.with_value(&id, &value);
        }
        Ok(Self { document: text(document), registry: known, is_bundle: true })
    }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn map(value: Value) -> Result<Map<String, Value>, Failure> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(map) => Ok(map),
        _ => Err(OjsError::invalid_request("registry", "must be a map of ids to values").into()),
    }
}

fn list(value: Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => Ok(items),
        _ => Err(OjsError::invalid_request("parts", "must be a list of documents").into()),
    }
}

fn refused(problems: &[Problem]) -> Failure {
    super::register::refusal(problems).into()
}
