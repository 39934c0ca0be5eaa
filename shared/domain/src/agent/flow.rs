//! The Agent Spec document of an agent that is a flow.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// A flow: its canonical document, and the values that it refers to and does not hold.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowDocument {
    /// JSON text, with references in the place of secrets.
    pub document: String,
    /// The secrets, by the id of the reference. Neither `Debug` nor an export shows them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// The digest of document and values: equal flows are compiled once.
    pub digest: String,
    /// The id of the flow inside the document, when it is not the whole: an iteration of a parallel node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

impl fmt::Debug for FlowDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowDocument({})", self.digest)
    }
}
