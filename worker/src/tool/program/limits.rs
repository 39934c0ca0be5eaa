//! `sandbox` and `program` of `[tool_policy]`, and `program` of an MCP server: the limits of programs.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How strictly programs are kept from the worker and from one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// Programs start directly, with all rights of the worker's user.
    Off,
    /// Programs start with every limit that the system can set.
    #[default]
    Best,
    /// A program starts with every limit, or not at all.
    Required,
}

/// The limits of a program.
///
/// ```toml
/// [mcp.files]
/// command = ["mcp-files", "/srv/papers"]
/// program = { network = false, write = ["/srv/papers"] }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramLimits {
    /// The number of the user that it runs as. Default: the worker's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The number of its group. Default: that of `uid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// False if it may neither open nor accept a TCP connection. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Files and folders that it may read and execute, beside those of the system and its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Files and folders that it may also change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// The most memory of each of its processes, in bytes. Default: 4 GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory_bytes: Option<u64>,
    /// The most files that each of its processes may have open. Default: 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_open_files: Option<u64>,
    /// The most processes and threads of `uid`, over all programs. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_processes: Option<u64>,
    /// The most seconds of processor time of each of its processes, until it ends. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cpu_seconds: Option<u64>,
}

impl ProgramLimits {
    /// Returns these limits, with those of all programs where they say nothing. Folders add up.
    #[must_use]
    pub fn over(&self, all: &Self) -> Self {
        let both = |own: &[PathBuf], all: &[PathBuf]| [all, own].concat();
        // A user with the group of another would be a third one.
        let (uid, gid) =
            if self.uid.is_some() { (self.uid, self.gid) } else { (all.uid, self.gid.or(all.gid)) };
        Self {
            uid,
            gid,
            network: self.network.or(all.network),
            read: both(&self.read, &all.read),
            write: both(&self.write, &all.write),
            max_memory_bytes: self.max_memory_bytes.or(all.max_memory_bytes),
            max_open_files: self.max_open_files.or(all.max_open_files),
            max_processes: self.max_processes.or(all.max_processes),
            max_cpu_seconds: self.max_cpu_seconds.or(all.max_cpu_seconds),
        }
    }

    /// Returns the user and the group that the program runs as, if they are not the worker's.
    #[must_use]
    pub fn user(&self) -> Option<(u32, u32)> {
        self.uid.map(|uid| (uid, self.gid.unwrap_or(uid)))
    }

    /// Checks the rules that the types do not express.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn check(&self, sandbox: Sandbox) -> Result<(), String> {
        if sandbox == Sandbox::Off && *self != Self::default() {
            return Err("…: no limit holds with sandbox = \"off\"; write \"best\" or \"required\"".to_owned());
        }
        if self.gid.is_some() && self.uid.is_none() {
            return Err("gid: needs a `uid`".to_owned());
        }
        if [self.uid, self.gid].contains(&Some(u32::MAX)) {
            return Err("uid: this number means no user".to_owned());
        }
        for (key, paths) in [("read", &self.read), ("write", &self.write)] {
            if let Some(path) = paths.iter().find(|path| !path.is_absolute()) {
                return Err(format!("{key}: {} is not an absolute path", path.display()));
            }
        }
        for (key, limit) in [
            ("max_memory_bytes", self.max_memory_bytes),
            ("max_open_files", self.max_open_files),
            ("max_processes", self.max_processes),
            ("max_cpu_seconds", self.max_cpu_seconds),
        ] {
            if limit == Some(0) {
                return Err(format!("{key} must be above 0"));
            }
        }
        if self.max_processes.is_some() && self.uid.is_none() {
            return Err(
                "max_processes: needs a `uid`, because the threads of the worker would count".to_owned()
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_named() {
        for (json, word) in [
            (r#"{"gid": 3}"#, "gid: needs"),
            (r#"{"uid": 4294967295}"#, "uid:"),
            (r#"{"read": ["papers"]}"#, "read: papers"),
            (r#"{"write": ["./x"]}"#, "write: ./x"),
            (r#"{"max_open_files": 0}"#, "max_open_files"),
            (r#"{"max_processes": 9}"#, "max_processes"),
        ] {
            let limits: ProgramLimits = serde_json::from_str(json).unwrap();
            let why = limits.check(Sandbox::Best).unwrap_err();
            assert!(why.contains(word), "{json}: {why}");
        }
        assert!(serde_json::from_str::<ProgramLimits>(r#"{"user": "x"}"#).is_err());
    }

    #[test]
    fn the_limits_of_a_program_go_over_those_of_all() {
        let limits = |json: &str| serde_json::from_str::<ProgramLimits>(json).unwrap();
        let all = limits(r#"{"uid": 9, "gid": 8, "network": false, "read": ["/a"], "max_open_files": 7}"#);
        let own = limits(r#"{"uid": 5, "read": ["/b"], "max_open_files": 6}"#);
        let both = own.over(&all);
        assert_eq!((both.user(), both.network, both.max_open_files), (Some((5, 5)), Some(false), Some(6)));
        assert_eq!(both.read, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(ProgramLimits::default().over(&all), all);
    }
}
