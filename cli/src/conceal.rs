//! Hides the secrets of a serving process from the other processes of its user.
//!
//! The kernel shows the environment of a process in `/proc/PID/environ`, as it was when the program was started: removing a
//! variable later changes nothing there. So the process starts itself again, with the same process id, and passes its secrets
//! to the new start in a file in memory. It is also not dumpable, so that only root can read its memory and its open files.

use crate::failure::Failure;
use std::ffi::OsStr;
use std::sync::OnceLock;

/// The variable that names the file in memory, by its number.
const MARK: &str = "TURNSTONE_ENVIRONMENT_FD";

/// The variables that stay in the environment, because a library or the terminal reads them there. A proxy's address may
/// hold a password.
const STAY: [&str; 41] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "HOSTNAME",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TZDIR",
    "TMPDIR",
    "RUST_LOG",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_MIN_STACK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GLIBC_TUNABLES",
    "RES_OPTIONS",
    "LOCALDOMAIN",
    "HOSTALIASES",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "CREDENTIALS_DIRECTORY",
    "TOKIO_WORKER_THREADS",
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGUSER",
    "PGDATABASE",
    "PGPASSFILE",
    "PGAPPNAME",
    "PGOPTIONS",
];

/// The beginnings of further names that stay.
const STAY_LIKE: [&str; 9] =
    ["LC_", "LD_PRELOAD", "LD_LIBRARY_PATH", "FAKETIME", "MIMALLOC_", "MALLOC_", "OTEL_", "PGSSL", "XDG_"];

/// The reason why other processes of this user may read the secrets of this one.
static EXPOSED: OnceLock<String> = OnceLock::new();

/// Returns the reason why other processes of this user may read the secrets of this one, if there is one.
#[must_use]
pub fn exposed() -> Option<&'static str> {
    EXPOSED.get().map(String::as_str)
}

/// Returns true if a variable stays in the environment.
fn stays(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let is_credential = name.contains("HEADERS");
    let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
    !is_credential
        && (is_proxy || STAY.contains(&name) || STAY_LIKE.iter().any(|start| name.starts_with(start)))
}

/// Hides the secrets of this process. Call it before any secret is read and before any thread is started: it may start the
/// program again. A system that does not allow it is noted in [`exposed`], and the process continues.
///
/// # Errors
/// The variable [`MARK`] is set although no earlier start has set it.
pub fn conceal() -> Result<(), Failure> {
    if let Err(why) = system::hide_memory() {
        let _ = EXPOSED.set(why);
    }
    match std::env::var(MARK) {
        Ok(number) => system::receive(&number).map_err(|why| {
            Failure::usage(format!("the environment variable {MARK} is set, but {why}"))
                .hint(format!("unset {MARK}: only a serving turnstone sets it, for itself"))
        }),
        Err(_) => {
            let (stay, moved) = std::env::vars_os().partition::<Vec<_>, _>(|(name, _)| stays(name));
            if !moved.is_empty() {
                let why = system::start_again(stay, &moved);
                let _ = EXPOSED.set(why);
            }
            Ok(())
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::MARK;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    use std::ffi::OsString;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::os::unix::process::CommandExt as _;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use turnstone_telemetry::environment;

    /// The name of the file in memory, which the kernel shows in the link of its descriptor.
    const NAME: &str = "turnstone-environment";

    /// Makes this process not dumpable: its files in `/proc` belong to root from then on. A start ends that, so each start calls
    /// this.
    pub fn hide_memory() -> Result<(), String> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(|error| format!("the system does not hide the memory of the process (prctl: {error})"))
    }

    /// Starts this program again, with the same arguments, and returns the reason if that failed.
    pub fn start_again(stay: Vec<(OsString, OsString)>, moved: &[(OsString, OsString)]) -> String {
        let packed = match packed(moved) {
            Ok(file) => file,
            Err(error) => {
                return format!("the environment cannot be moved to memory (memfd_create: {error})");
            }
        };
        let mut arguments = std::env::args_os();
        // The path shows the program's name in lists of processes. It is gone when the program was replaced meanwhile.
        let own = std::env::current_exe().ok().filter(|path| path.exists());
        let mut again = Command::new(own.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
        if let Some(name) = arguments.next() {
            again.arg0(name);
        }
        again.args(arguments).env_clear().envs(stay).env(MARK, packed.as_raw_fd().to_string());
        format!("turnstone cannot start itself again without secrets in its environment ({})", again.exec())
    }

    /// Returns a file in memory with variables, which the next start inherits.
    fn packed(moved: &[(OsString, OsString)]) -> io::Result<File> {
        let sealed = MemfdFlags::ALLOW_SEALING;
        // Kernels before 6.3 do not know the first flag; later ones may demand it.
        let memory =
            memfd_create(NAME, sealed | MemfdFlags::NOEXEC_SEAL).or_else(|_| memfd_create(NAME, sealed))?;
        let mut file = File::from(memory);
        let mut text = Vec::new();
        for (name, value) in moved {
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            text.push(0);
        }
        file.write_all(&text)?;
        Ok(file)
    }

    /// Reads the variables that the start before has packed, and empties the file for good.
    pub fn receive(number: &str) -> Result<(), String> {
        let path = PathBuf::from(format!("/proc/self/fd/{number}"));
        let shown = path.read_link().unwrap_or_default();
        if !shown.to_string_lossy().starts_with(&format!("/memfd:{NAME}")) {
            return Err("it names no file of an earlier start".to_owned());
        }
        read(&path).map_err(|error| format!("what it names cannot be read: {error}"))
    }

    fn read(path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // Programs that this process starts inherit the descriptor: nothing is in it, and nothing can be put there.
        file.set_len(0)?;
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        let variable = |entry: &[u8]| {
            let at = entry.iter().skip(1).position(|byte| *byte == b'=')? + 1;
            let (name, value) = (entry[..at].to_vec(), entry[at + 1..].to_vec());
            Some((OsString::from_vec(name), OsString::from_vec(value)))
        };
        environment::adopt(text.split(|byte| *byte == 0).filter_map(variable).collect());
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::ffi::OsString;

    /// Returns the reason: only Linux hides a process so.
    pub fn hide_memory() -> Result<(), String> {
        Err("only Linux hides the memory of a process from other programs of its user".to_owned())
    }

    /// Returns the reason: only Linux has a place for secrets that a start inherits.
    pub fn start_again(_: Vec<(OsString, OsString)>, _: &[(OsString, OsString)]) -> String {
        "only Linux moves secrets out of the environment".to_owned()
    }

    /// Refuses: no start of this system sets the variable.
    pub fn receive(_: &str) -> Result<(), String> {
        Err("this system has no such file".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_leave_the_environment() {
        let stays = |name: &str| stays(OsStr::new(name));
        for name in [
            "PATH",
            "LC_ALL",
            "https_proxy",
            "NO_PROXY",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "LD_PRELOAD",
            "PGHOST",
        ] {
            assert!(stays(name), "{name}");
        }
        for name in [
            "OPENAI_API_KEY",
            "DATABASE_URL",
            "PGPASSWORD",
            "TURNSTONE_STORE__URL",
            "TURNSTONE_API_KEY",
            "MY_TOKEN",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(!stays(name), "{name}");
        }
    }
}
