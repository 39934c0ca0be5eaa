//! Programs beside the worker: MCP servers over stdio.
//!
//! A program starts through the launcher, which is this program itself under another command. The launcher limits its own
//! process and then becomes the program, so the program has the process id and the pipes of the launcher. The launcher knows
//! nothing about MCP, and the worker's threads never take part in a limit.
//!
//! ```text
//!  worker ─▶ Programs::command ─▶ launcher ─▶ confine: resources, user, capabilities, Landlock ─▶ exec: the program
//!                  │                                    │
//!                  ╰─▶ system: what this system lacks   ╰─▶ folders: what the program may open
//! ```

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod folders;
mod limits;
mod system;

pub use limits::{ProgramLimits, Sandbox};

use crate::tool::policy::ToolPolicy;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::process::Command;

/// The way in which a worker starts programs. By default it starts them directly, without any limit.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    launcher: Option<Arc<Launcher>>,
}

#[derive(Clone, Debug)]
struct Launcher {
    command: Vec<OsString>,
    sandbox: Sandbox,
    limits: ProgramLimits,
    hidden: Vec<PathBuf>,
    exposed: Option<String>,
}

/// The order of a worker to its launcher, which is the launcher's first argument. It contains no secret, because other
/// processes can read arguments.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Order {
    /// True if the launcher refuses to start the program when a limit cannot be set.
    required: bool,
    limits: ProgramLimits,
    /// The folder for temporary files.
    scratch: Option<PathBuf>,
    /// The files and folders that stay closed, also within an open folder.
    hidden: Vec<PathBuf>,
    /// The home of the worker and its folder for temporary files, which no program in them opens as a whole.
    shared: Vec<PathBuf>,
}

impl Programs {
    /// Returns programs that start through this launcher, a program with its first arguments: it gets an order, and then the
    /// program with its arguments, and calls [`become_program`].
    ///
    /// # Errors
    /// A sentence that names the key of `[tool_policy]` that is wrong.
    pub fn through(launcher: Vec<OsString>, policy: &ToolPolicy) -> Result<Self, String> {
        let (sandbox, limits) = (policy.sandbox, policy.program.clone());
        limits.check(sandbox).map_err(|problem| format!("[tool_policy] program.{problem}"))?;
        let launcher = Launcher { command: launcher, sandbox, limits, hidden: Vec::new(), exposed: None };
        Ok(Self { launcher: (sandbox != Sandbox::Off).then(|| Arc::new(launcher)) })
    }

    /// The same, with files and folders that no program may open, such as the database of this process.
    #[must_use]
    pub fn hiding(mut self, files: &[PathBuf]) -> Self {
        if let Some(launcher) = &mut self.launcher {
            let real = |file: &PathBuf| file.canonicalize().or_else(|_| std::path::absolute(file)).ok();
            Arc::make_mut(launcher).hidden = files.iter().filter_map(real).collect();
        }
        self
    }

    /// The same, with the reason why programs may read the secrets of this process, if there is one.
    #[must_use]
    pub fn exposed(mut self, reason: Option<&str>) -> Self {
        if let Some(launcher) = &mut self.launcher {
            Arc::make_mut(launcher).exposed = reason.map(str::to_owned);
        }
        self
    }

    /// Returns what `[tool_policy]` asks for and this system cannot do, in sentences, for a program with these limits of its
    /// own. `None` are the limits of all programs.
    #[must_use]
    pub fn shortfalls(&self, own: Option<&ProgramLimits>) -> Vec<String> {
        let Some(launcher) = &self.launcher else { return Vec::new() };
        let limits = own.map_or_else(|| launcher.limits.clone(), |own| own.over(&launcher.limits));
        launcher.exposed.clone().into_iter().chain(system::shortfalls(&limits)).collect()
    }

    /// Returns true if a program is refused when this system cannot do what `[tool_policy]` asks for.
    #[must_use]
    pub fn are_required(&self) -> bool {
        self.launcher.as_ref().is_some_and(|launcher| launcher.sandbox == Sandbox::Required)
    }

    /// Returns the command that starts a program, without an environment, and its folder for temporary files.
    pub(crate) fn command(
        &self,
        program: &str,
        own: &ProgramLimits,
    ) -> Result<(Command, Option<TempDir>), String> {
        let Some(launcher) = &self.launcher else {
            let mut direct = Command::new(program);
            direct.env_clear();
            return Ok((direct, None));
        };
        let limits = own.over(&launcher.limits);
        limits.check(launcher.sandbox).map_err(|problem| format!("program.{problem}"))?;
        let required = launcher.sandbox == Sandbox::Required;
        let missing = if required { self.shortfalls(Some(own)) } else { Vec::new() };
        if !missing.is_empty() {
            return Err(format!(
                "`{program}` is not started, because [tool_policy] sandbox = \"required\": {}",
                missing.join("; ")
            ));
        }
        let scratch = scratch(&limits);
        let order = Order {
            required,
            limits,
            scratch: scratch.as_ref().map(|folder| folder.path().to_owned()),
            hidden: launcher.hidden.clone(),
            shared: std::env::var_os("HOME")
                .map(PathBuf::from)
                .into_iter()
                .chain([std::env::temp_dir()])
                .collect(),
        };
        let order = serde_json::to_string(&order).map_err(|error| error.to_string())?;
        let [first, rest @ ..] = launcher.command.as_slice() else {
            return Err("the launcher of programs has no command".to_owned());
        };
        let mut command = Command::new(first);
        command.args(rest).arg(order).arg(program).env_clear();
        Ok((command, scratch))
    }
}

/// Makes a folder for the temporary files of a program, or none where there is no room for one.
fn scratch(limits: &ProgramLimits) -> Option<TempDir> {
    let folder = tempfile::Builder::new().prefix("turnstone-program-").tempdir().ok()?;
    if let Some((uid, gid)) = limits.user() {
        // A worker that may not do this may not become the user either, and the launcher says so.
        let _ = std::os::unix::fs::chown(folder.path(), Some(uid), Some(gid));
    }
    Some(folder)
}

/// Limits this process as the order in the first argument says, and becomes the program of the other arguments. Returns the
/// reason why that failed. Call it before any thread is started.
#[must_use]
pub fn become_program(mut arguments: impl Iterator<Item = OsString>) -> String {
    use std::os::unix::process::CommandExt as _;
    let order = arguments.next().and_then(|order| serde_json::from_str::<Order>(order.to_str()?).ok());
    let (Some(order), Some(program)) = (order, arguments.next()) else {
        return "turnstone starts the programs of agents with this command; it has no other use".to_owned();
    };
    let arguments: Vec<OsString> = arguments.collect();
    let shown = Path::new(&program).display().to_string();
    if let Err(why) = confine(&order, &program, &arguments) {
        return format!("`{shown}` cannot be started: {why}");
    }
    let error = std::process::Command::new(&program).args(arguments).exec();
    format!("`{shown}` cannot be started: {error}")
}

#[cfg(target_os = "linux")]
use confine::confine;

/// Only Linux has these limits.
#[cfg(not(target_os = "linux"))]
fn confine(order: &Order, _: &std::ffi::OsStr, _: &[OsString]) -> Result<(), String> {
    match (order.required, order.limits.user()) {
        (false, None) => Ok(()),
        _ => Err("this system has no sandbox for programs".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_sandbox_refuses_the_program_of_an_exposed_worker() {
        let policy: ToolPolicy = serde_json::from_str(r#"{"sandbox": "required"}"#).unwrap();
        let programs = Programs::through(vec!["/bin/true".into()], &policy).unwrap();
        let why =
            programs.clone().exposed(Some("its memory is open")).command("cat", &ProgramLimits::default());
        let why = why.unwrap_err();
        assert!(why.contains("`cat` is not started") && why.contains("its memory is open"), "{why}");
        let best = Programs::through(vec!["/bin/true".into()], &ToolPolicy::default()).unwrap();
        assert!(best.exposed(Some("its memory is open")).command("cat", &ProgramLimits::default()).is_ok());
    }

    #[test]
    fn limits_without_a_sandbox_are_refused() {
        for key in [r#""uid": 7"#, r#""network": false"#, r#""max_open_files": 3"#] {
            let policy: ToolPolicy =
                serde_json::from_str(&format!(r#"{{"sandbox": "off", "program": {{{key}}}}}"#)).unwrap();
            let why = Programs::through(vec!["x".into()], &policy).unwrap_err();
            assert!(why.contains("sandbox = \"off\""), "{key}: {why}");
        }
    }

    #[test]
    fn an_order_that_is_none_starts_nothing() {
        for arguments in [vec![], vec!["{}".into(), "true".into()], vec!["x".into()]] {
            assert!(become_program(arguments.into_iter()).contains("no other use"));
        }
    }
}
