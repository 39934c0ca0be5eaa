//! The limits that this system cannot set.

use super::ProgramLimits;

/// The parts of Landlock that the system has.
#[derive(Clone, Copy, Debug)]
struct Landlock {
    files: bool,
    network: bool,
    signals: bool,
}

/// Returns what these limits ask for and the system lacks, in sentences.
pub(super) fn shortfalls(limits: &ProgramLimits) -> Vec<String> {
    lacks(landlock(), limits)
}

fn lacks(has: Landlock, limits: &ProgramLimits) -> Vec<String> {
    let no_network = limits.network == Some(false);
    let mut missing = Vec::new();
    if !has.files {
        missing.push(
            "the kernel cannot close files to programs (Landlock of Linux 6.2 or newer, and a container that allows it)",
        );
    }
    if no_network && !has.network {
        missing.push("the kernel cannot close TCP to programs (Landlock of Linux 6.7 or newer)");
    }
    // The kernel itself keeps the signals of one user from the processes of another.
    if limits.uid.is_none() && has.files && !has.signals {
        missing.push(
            "the kernel cannot keep programs from sending signals to the worker (Landlock of Linux 6.12 or newer, or a `uid`)",
        );
    }
    missing.into_iter().map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
fn landlock() -> Landlock {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope,
    };
    let demand = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    Landlock {
        files: demand().handle_access(AccessFs::from_all(ABI::V3)).is_ok(),
        network: demand().handle_access(AccessNet::from_all(ABI::V4)).is_ok(),
        signals: demand().scope(Scope::from_all(ABI::V6)).is_ok(),
    }
}

#[cfg(not(target_os = "linux"))]
fn landlock() -> Landlock {
    Landlock { files: false, network: false, signals: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_part_of_the_system_is_named() {
        let limits = |json: &str| serde_json::from_str::<ProgramLimits>(json).unwrap();
        let has = |files, network, signals| Landlock { files, network, signals };
        let count = |has, json| lacks(has, &limits(json)).len();
        assert_eq!(count(has(true, true, true), r#"{"network": false}"#), 0);
        assert!(lacks(has(false, false, false), &limits("{}"))[0].contains("Linux 6.2"));
        assert_eq!(count(has(true, false, false), "{}"), 1, "signals");
        assert_eq!(count(has(true, false, false), r#"{"uid": 7}"#), 0);
        assert!(
            lacks(has(true, false, false), &limits(r#"{"uid": 7, "network": false}"#))[0].contains("TCP")
        );
    }
}
