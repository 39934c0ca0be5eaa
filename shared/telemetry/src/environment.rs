//! The variables of the process: those of its environment, and those that were moved out of it at the start.
//!
//! The kernel shows the environment in which a process was started, in `/proc/PID/environ`, until the process ends. A serving
//! process therefore starts itself again without its secrets, and keeps them here.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

static MOVED: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// Adds the variables that were moved out of the environment. Only the first call has an effect.
pub fn adopt(moved: BTreeMap<OsString, OsString>) {
    let _ = MOVED.set(moved);
}

/// Returns a variable.
#[must_use]
pub fn var_os(name: impl AsRef<OsStr>) -> Option<OsString> {
    let moved = MOVED.get().and_then(|moved| moved.get(name.as_ref()));
    moved.cloned().or_else(|| std::env::var_os(name.as_ref()))
}

/// Returns a variable whose value is text.
#[must_use]
pub fn var(name: &str) -> Option<String> {
    var_os(name)?.into_string().ok()
}

/// Returns all variables.
#[must_use]
pub fn vars_os() -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    all.extend(MOVED.get().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_variable_is_read_like_one_of_the_environment() {
        assert!(var("PATH").is_some() && var("TURNSTONE_TEST_MOVED").is_none());
        adopt([("TURNSTONE_TEST_MOVED".into(), "here".into())].into());
        assert_eq!(var("TURNSTONE_TEST_MOVED").as_deref(), Some("here"));
        let all = vars_os();
        assert!(all.contains_key(OsStr::new("PATH")) && all.contains_key(OsStr::new("TURNSTONE_TEST_MOVED")));
    }
}
