//! Whom a manifest wants to be asked before calls (OSSA `safety.human_in_loop`).

use super::errors::Contact;
use serde::{Deserialize, Serialize};

/// Who is asked before which calls, beside what the restrictions of the calls themselves say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Approvals {
    /// Who is asked before a call that may not be made twice: what it does cannot be taken for undone. `None` is nobody.
    pub high_risk: Option<Contact>,
}

impl Approvals {
    /// Whether nobody is asked.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
