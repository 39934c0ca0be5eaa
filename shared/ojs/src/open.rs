//! Values of answers that newer servers extend.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A value of an answer. A newer server may send one that this version does not know, such as a further state. The
/// reader keeps it as it came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OpenValue<T> {
    /// A value that this version knows.
    Known(T),
    /// Any other value.
    Unknown(Value),
}

impl<T: Copy> OpenValue<T> {
    /// Returns the value; `None` for one that this version does not know.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T> From<T> for OpenValue<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: PartialEq> PartialEq<T> for OpenValue<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(value) if value == other)
    }
}

impl<T: fmt::Display> fmt::Display for OpenValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown(Value::String(word)) => f.pad(word),
            Self::Unknown(value) => value.fmt(f),
        }
    }
}
