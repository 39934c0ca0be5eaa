//! The limit of open files of this process. A turn that waits for a model has a connection of its own, and so has each
//! of its tool calls. Ten thousand turns on a machine that allows 1,024 files would fail as if the provider were away.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside those of turns: connections of the store and of clients, logs, programs of tools.
const BESIDE: u64 = 200;

/// The fewest clients that the API serves, even with few open files.
const FEWEST_CONNECTIONS: u64 = 16;

/// Raises the limit of this process as far as the machine allows and turns and clients need it. Logs when that is not
/// enough for the turns.
pub fn allow(slots: u32, connections: u32) {
    let limit = getrlimit(Resource::Nofile);
    // Twice: a connection that is kept for the next call, or a tool's.
    let wanted = u64::from(slots) * 2 + BESIDE + u64::from(connections);
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

/// Returns how many clients may be connected at once: as many as configured, or as many as the open files allow beside
/// the turns.
#[must_use]
pub fn connections(slots: u32, configured: u32) -> usize {
    let allowed = fitting(slots, configured, getrlimit(Resource::Nofile).current);
    if allowed < u64::from(configured) {
        tracing::info!("the limit of open files allows {allowed} of {configured} connections at once");
    }
    usize::try_from(allowed).unwrap_or(usize::MAX)
}

fn fitting(slots: u32, configured: u32, files: Option<u64>) -> u64 {
    let left = files.map_or(u64::MAX, |files| files.saturating_sub(u64::from(slots) + BESIDE));
    u64::from(configured).min(left.max(FEWEST_CONNECTIONS))
}

/// The advice for too few open files.
pub const ADVICE: &str =
    "raise it (`ulimit -n`, LimitNOFILE= of systemd, `ulimits` of compose), or give the worker fewer slots";

/// Returns why the most files that the machine allows are not enough for this many turns at once; `None` when they are.
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
    fn clients_take_no_files_that_turns_need() {
        assert_eq!(fitting(64, 4_096, None), 4_096);
        assert_eq!(fitting(64, 4_096, Some(1_024)), 760);
        assert_eq!(fitting(64, 100, Some(1_024)), 100);
        assert_eq!(fitting(64, 4_096, Some(200)), 16);
    }

    #[test]
    fn as_many_files_as_turns_are_needed_and_a_few_more() {
        assert_eq!(shortage(64, Some(1_024)), None);
        assert_eq!(shortage(100_000, None), None);
        let reported = shortage(10_000, Some(1_024)).unwrap();
        assert!(reported.contains("1024 files") && reported.contains("10000 turns"), "{reported}");
    }
}
