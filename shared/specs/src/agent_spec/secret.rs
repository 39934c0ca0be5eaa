//! Values that a document should name and not hold: API keys, key files, credentials.

use serde_json::Value;
use std::fmt;

/// A sensitive value. Neither `Debug` nor an export shows it.
#[derive(Clone, PartialEq)]
pub struct Secret {
    reference: Option<String>,
    value: Option<Value>,
}

impl Secret {
    /// A value that the document holds itself.
    #[must_use]
    pub const fn inlined(value: Value) -> Self {
        Self { reference: None, value: Some(value) }
    }

    /// A name under which a registry holds the value, and the value if the registry is at hand.
    #[must_use]
    pub const fn referenced(reference: String, value: Option<Value>) -> Self {
        Self { reference: Some(reference), value }
    }

    /// Returns the name in the registry; `None` for a value that the document holds itself.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// Returns the value for use, never for display; `None` while no registry gave it.
    #[must_use]
    pub const fn reveal(&self) -> Option<&Value> {
        self.value.as_ref()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reference {
            Some(reference) => write!(f, "Secret({reference})"),
            None => f.write_str("Secret(***)"),
        }
    }
}

impl serde::Serialize for Secret {
    /// Serializes the reference, or null for a value that has none.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.reference.serialize(serializer)
    }
}
