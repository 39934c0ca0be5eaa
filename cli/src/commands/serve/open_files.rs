//! How many files this process may have open. A turn that waits for a model has a connection of its own, and so has each
//! of its tool calls: ten thousand turns on a machine that allows 1,024 files would fail as if the provider were away.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside those of turns: connections of the store and of clients, logs, programs of tools.
const BESIDE: u64 = 200;

/// Raises the limit of this process as far as the machine lets it and turns need it, and says so in the log when that is
/// not enough.
pub fn allow(slots: u32) {
    let limit = getrlimit(Resource::Nofile);
    // Twice: a connection that is kept for the next call, or a tool's.
    let wanted = u64::from(slots) * 2 + BESIDE;
    if limit.current.is_some_and(|now| now < wanted) {
        let current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum }) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        }
    }
    if let Some(short) = shortage(slots, getrlimit(Resource::Nofile).current) {
        tracing::warn!("{short}; {ADVICE}");
    }
}

/// What to do about it.
pub const ADVICE: &str =
    "raise it (`ulimit -n`, LimitNOFILE= of systemd, `ulimits` of compose), or give the worker fewer slots";

/// Why the files that the machine allows at most are not enough for so many turns at once; `None` when they are.
#[must_use]
pub fn short_of(slots: u32) -> Option<String> {
    shortage(slots, getrlimit(Resource::Nofile).maximum)
}

fn shortage(slots: u32, allowed: Option<u64>) -> Option<String> {
    let (allowed, needed) = (allowed?, u64::from(slots) + BESIDE);
    (allowed < needed).then(|| {
        format!(
            "a process may open {allowed} files here, and {slots} turns that wait for a model need about {needed}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_as_turns_are_needed_and_a_few_more() {
        assert_eq!(shortage(64, Some(1_024)), None);
        assert_eq!(shortage(100_000, None), None);
        let told = shortage(10_000, Some(1_024)).unwrap();
        assert!(told.contains("1024 files") && told.contains("10000 turns"), "{told}");
    }
}
