//! The Agent Spec document of an agent that is a flow.

use crate::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// A flow: its canonical document, and the values that it refers to and does not hold.
///
/// Equal flows are compiled once, by their digest. It is computed from document and values wherever a flow is made or read:
/// a digest that a text claims is ignored.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct FlowDocument {
    document: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    values: BTreeMap<String, Value>,
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
}

/// A flow as it is written. Its digest, which older readers need, is not read.
#[derive(Deserialize)]
struct Written {
    document: String,
    #[serde(default)]
    values: BTreeMap<String, Value>,
    #[serde(default)]
    part: Option<String>,
}

impl From<Written> for FlowDocument {
    fn from(Written { document, values, part }: Written) -> Self {
        Self { part, ..Self::new(document, values) }
    }
}

impl FlowDocument {
    /// Returns the flow of a document, with the values that it refers to.
    #[must_use]
    pub fn new(document: String, values: BTreeMap<String, Value>) -> Self {
        let digest = digest::of_json(&json!([document, values]));
        Self { document, values, digest, part: None }
    }

    /// Returns the flow of this id inside the document: an iteration of a parallel node.
    #[must_use]
    pub fn with_part(self, id: &str) -> Self {
        Self { part: Some(id.to_owned()), ..self }
    }

    /// Returns the flow with these values in the place of its own.
    #[must_use]
    pub fn with_values(self, values: BTreeMap<String, Value>) -> Self {
        if self.values == values {
            return self;
        }
        Self { part: self.part, ..Self::new(self.document, values) }
    }

    /// Returns the JSON text of the document, with references in the place of secrets.
    #[must_use]
    pub fn document(&self) -> &str {
        &self.document
    }

    /// Returns the secrets, by the id of the reference. Neither `Debug` nor an export shows them.
    #[must_use]
    pub fn values(&self) -> &BTreeMap<String, Value> {
        &self.values
    }

    /// Returns the computed digest of document and values.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the id of the flow inside the document; `None` for the whole.
    #[must_use]
    pub fn part(&self) -> Option<&str> {
        self.part.as_deref()
    }
}

impl fmt::Debug for FlowDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowDocument({})", self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_digest_is_ignored() {
        let own = FlowDocument::new("{}".to_owned(), BTreeMap::new());
        let claimed = json!({"document": "{\"a\":1}", "digest": own.digest, "part": "p"});
        let read: FlowDocument = serde_json::from_value(claimed).unwrap();
        let computed = FlowDocument::new("{\"a\":1}".to_owned(), BTreeMap::new()).with_part("p");
        assert_eq!(read, computed);
        assert_ne!(read.digest(), own.digest());
        let again: FlowDocument = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn values_count_in_the_digest() {
        let own = FlowDocument::new("{}".to_owned(), BTreeMap::new()).with_part("p");
        let with = own.clone().with_values(BTreeMap::from([("k".to_owned(), json!("v"))]));
        assert_ne!(with.digest(), own.digest());
        assert_eq!(with.with_values(BTreeMap::new()), own);
    }
}
