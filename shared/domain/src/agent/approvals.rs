//! The contacts that must approve calls, as a manifest requests (OSSA `safety.human_in_loop`).

use super::errors::Contact;
use serde::{Deserialize, Serialize};

/// The contacts that approve calls, in addition to the restrictions of each call.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Approvals {
    /// The contact that approves calls of tools that are not idempotent; their effects are not assumed to be undone.
    /// `None` requires no approval.
    pub high_risk: Option<Contact>,
}

impl Approvals {
    /// Returns true if no approval is required.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
