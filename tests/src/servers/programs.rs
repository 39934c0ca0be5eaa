//! The servers' programs, installed if need be, and the user that runs them.

use super::find::{self, NEEDS, in_path};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns the folder of PostgreSQL's programs.
pub(super) fn postgres_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| present("PostgreSQL", find::postgres_dir)).clone()
}

/// Returns the `redis-server` program.
pub(super) fn redis_server() -> PathBuf {
    present("Redis", find::redis_server)
}

/// Returns the `redis-cli` program, which comes with the server.
pub(super) fn redis_cli() -> PathBuf {
    present("Redis", || in_path("redis-cli").or_else(|| in_path("valkey-cli")))
}

/// Returns the `pgbouncer` program.
pub(super) fn pgbouncer() -> PathBuf {
    present("PgBouncer", find::pgbouncer)
}

/// Returns the library that gives a process another time of day, for `LD_PRELOAD`; `FAKETIME=+5m` sets it.
///
/// # Panics
/// When it is missing and cannot be installed.
pub fn faketime_path() -> PathBuf {
    present("libfaketime", find::faketime)
}

/// Makes sure that the name `python3` runs a program.
///
/// # Panics
/// When it is missing and cannot be installed.
pub fn need_python() {
    present("Python 3", find::python);
}

/// Makes sure that the name `sqlite3` runs a program.
///
/// # Panics
/// When it is missing and cannot be installed.
pub fn need_sqlite_shell() {
    present("the sqlite3 shell", find::sqlite_shell);
}

/// Returns the result of `find`, after installing the packages if necessary.
#[expect(clippy::disallowed_methods, reason = "libtest captures the lines of eprintln")]
fn present(name: &str, find: impl Fn() -> Option<PathBuf>) -> PathBuf {
    if let Some(path) = find() {
        return path;
    }
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("install-servers.sh");
        let _ = writeln!(std::io::stderr(), "{name} is missing: running {}", script.display());
        // The script reports its own problems on stderr; the search below decides.
        if let Err(error) = Command::new(&script).stdin(Stdio::null()).status() {
            let _ = writeln!(std::io::stderr(), "{}: {error}", script.display());
        }
    });
    find().unwrap_or_else(|| {
        let missing: Vec<_> = NEEDS.iter().filter(|need| (need.find)().is_none()).collect();
        let how = find::how_to_install(&missing);
        panic!(
            "this test needs {name}, and tests/install-servers.sh could not install it here. To run it: {how}"
        )
    })
}

/// Returns the id of the user that runs the tests.
pub(super) fn user_id() -> u32 {
    static ID: OnceLock<u32> = OnceLock::new();
    *ID.get_or_init(|| id_of(None))
}

/// Returns the user of the servers that refuse to run as root, or `None` when the tests run as another user
/// than root.
pub(super) fn server_user() -> Option<&'static str> {
    (user_id() == 0).then_some("postgres")
}

/// Gives a file to the user of [`server_user`].
pub(super) fn give_to_server_user(path: &Path) {
    static ID: OnceLock<u32> = OnceLock::new();
    if let Some(user) = server_user() {
        let id = *ID.get_or_init(|| id_of(Some(user)));
        std::os::unix::fs::chown(path, Some(id), None)
            .unwrap_or_else(|error| panic!("{} cannot be given to {user}: {error}", path.display()));
    }
}

fn id_of(user: Option<&str>) -> u32 {
    let output = Command::new("id").arg("-u").args(user).output().expect("the program id runs");
    let id = String::from_utf8_lossy(&output.stdout).trim().parse();
    id.unwrap_or_else(|_| panic!("there is no user {}", user.unwrap_or("of this process")))
}

/// Returns a command that runs as the user of [`server_user`]. Only root needs `setpriv`, which Linux has.
pub(super) fn as_server_user(program: &Path) -> Command {
    match server_user() {
        None => Command::new(program),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", user, "--regid", user, "--init-groups", "--"]).arg(program);
            command
        }
    }
}
