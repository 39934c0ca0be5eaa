//! The contacts that must approve calls, and the calls that are forbidden, as a manifest requests (OSSA
//! `safety.human_in_loop`, `autonomy`).

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

/// The calls that an agent may make (OSSA `autonomy.allowed_actions` and `blocked_actions`). The default allows all.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Actions {
    /// The actions of which a call must be one; `None` allows all calls.
    pub allowed: Option<Vec<String>>,
    /// The actions of which no call may be one. A call that is in both lists is blocked.
    pub blocked: Vec<String>,
}

impl Actions {
    /// Returns true if all calls are allowed.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the setting that forbids a call of the tool or agent of this name; `None` when it is allowed. The call
    /// is an action when the name has the words of the action next to one another: `delete_file` is a `delete`. `*` is
    /// every call.
    #[must_use]
    pub fn forbids(&self, name: &str) -> Option<&'static str> {
        let has = |actions: &[String]| actions.iter().any(|action| action == "*" || is_one(name, action));
        if has(&self.blocked) {
            return Some("autonomy.blocked_actions");
        }
        self.allowed.as_deref().filter(|allowed| !has(allowed)).map(|_| "autonomy.allowed_actions")
    }
}

fn is_one(name: &str, action: &str) -> bool {
    let words = |text: &str| {
        let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        parts.map(str::to_lowercase).collect::<Vec<_>>()
    };
    let (name, action) = (words(name), words(action));
    !action.is_empty() && name.windows(action.len()).any(|part| part == action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_an_action_by_its_words() {
        assert!(is_one("delete_file", "delete") && is_one("git.delete-branch", "delete_branch"));
        assert!(is_one("find", "find") && !is_one("undelete", "delete") && !is_one("find", ""));
    }

    #[test]
    fn blocked_beats_allowed() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let actions = |allowed: Option<&[&str]>, blocked: &[&str]| Actions {
            allowed: allowed.map(names),
            blocked: names(blocked),
        };
        assert_eq!(actions(None, &[]).forbids("find"), None);
        assert_eq!(actions(Some(&["find"]), &[]).forbids("find"), None);
        assert_eq!(actions(Some(&["find"]), &[]).forbids("delete"), Some("autonomy.allowed_actions"));
        assert_eq!(actions(Some(&["find"]), &["find"]).forbids("find"), Some("autonomy.blocked_actions"));
        assert_eq!(actions(Some(&["*"]), &["delete"]).forbids("find"), None);
        assert_eq!(actions(Some(&[]), &[]).forbids("find"), Some("autonomy.allowed_actions"));
    }
}
