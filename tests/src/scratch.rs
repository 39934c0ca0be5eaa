//! Folders for what tests write, and the end of everything that a test process leaves behind.
//!
//! One shell per test process does both. It reads from a pipe that ends with that process, in every case.
//! Then it kills the programs that still run and removes the folders.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use tempfile::TempDir;

/// Free memory from which scratch folders are kept in memory, in KiB.
const ENOUGH_KIB: u64 = 6 * 1024 * 1024;

/// Returns a new empty folder. It is removed when it is dropped, and with the test process at the latest.
///
/// # Panics
/// When no folder can be made.
pub fn folder() -> TempDir {
    tempfile::Builder::new().prefix("t").tempdir_in(&sweeper().root).expect("a scratch folder")
}

/// Returns the folder for scratch folders: `/dev/shm` if it is in memory and has room, else the system's
/// temporary folder. The tests simulate no loss of power, so their data need not reach a disk.
pub(crate) fn base() -> &'static Path {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    BASE.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        if free_memory_kib() >= ENOUGH_KIB && free_space_kib(memory) >= ENOUGH_KIB {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        }
    })
}

fn free_memory_kib() -> u64 {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

fn free_space_kib(folder: &Path) -> u64 {
    let space = Command::new("df").arg("-Pk").arg(folder).stderr(Stdio::null()).output();
    let space = space.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    space.lines().nth(1).and_then(|row| row.split_whitespace().nth(3)?.parse().ok()).unwrap_or(0)
}

/// The shell, and the folder that it removes.
pub(crate) struct Sweeper {
    root: PathBuf,
    words: Mutex<ChildStdin>,
    // Never waited for: it outlives this process.
    _shell: Child,
}

impl Sweeper {
    pub(crate) fn tell(&self, word: &str) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        // Without the shell nothing is swept after a kill; the tests themselves do not depend on it.
        let _ = writeln!(words, "{word}");
    }
}

pub(crate) fn sweeper() -> &'static Sweeper {
    static SWEEPER: OnceLock<Sweeper> = OnceLock::new();
    SWEEPER.get_or_init(|| {
        let root =
            tempfile::Builder::new().prefix("turnstone-tests-").tempdir_in(base()).expect("a scratch folder");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sweep.sh");
        let mut shell = Command::new("sh")
            .arg(script)
            .arg(root.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Ctrl-C is for the test; the shell sweeps when the test is gone.
            .process_group(0)
            .spawn()
            .expect("sh runs");
        let words = Mutex::new(shell.stdin.take().expect("a pipe to the shell"));
        Sweeper { root: root.keep(), words, _shell: shell }
    })
}
