//! Where the servers' programs are, and how missing ones get here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The folder of PostgreSQL's programs: that of `pg_config`, else the newest version of Debian's packages.
pub(super) fn postgres_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        present("postgresql", || {
            let told = Command::new("pg_config").arg("--bindir").output().ok();
            let told = told.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
            let mut versions = below("/usr/lib/postgresql", "bin");
            versions.sort_by_key(|dir| version_of(dir));
            told.into_iter().chain(versions.into_iter().rev()).find(|dir| dir.join("initdb").exists())
        })
    })
    .clone()
}

/// `/usr/lib/postgresql/15/bin` → 15.
fn version_of(dir: &Path) -> u32 {
    let version = dir.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// The `redis-server` program.
pub(super) fn redis_server() -> PathBuf {
    present("redis-server", || in_path("redis-server"))
}

/// The `redis-cli` program, which comes with the server.
pub(super) fn redis_cli() -> PathBuf {
    present("redis-server", || in_path("redis-cli"))
}

/// The `pgbouncer` program.
pub(super) fn pgbouncer() -> PathBuf {
    present("pgbouncer", || in_path("pgbouncer"))
}

/// The library that gives a process another time of day, for `LD_PRELOAD`; `FAKETIME=+5m` says which.
///
/// # Panics
/// When it is not there and cannot be installed.
pub fn faketime_path() -> PathBuf {
    present("faketime", || {
        below("/usr/lib", "faketime/libfaketime.so.1").into_iter().find(|library| library.exists())
    })
}

/// Every `parent/*/rest`.
fn below(parent: &str, rest: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join(rest)).collect()
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A normal user's PATH often lacks the places of servers.
    let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|dir| dir.join(program)).find(|program| program.is_file())
}

/// What `find` finds, if need be after the packages were installed.
fn present(package: &str, find: impl Fn() -> Option<PathBuf>) -> PathBuf {
    if let Some(path) = find() {
        return path;
    }
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("install-servers.sh");
        eprintln!("{package} is missing: running {}", script.display());
        // The script says on stderr what keeps it from its work; the search below decides.
        if let Err(error) = Command::new(&script).stdin(Stdio::null()).status() {
            eprintln!("{}: {error}", script.display());
        }
    });
    find().unwrap_or_else(|| {
        panic!(
            "this test needs the package {package}, and tests/install-servers.sh could not install it here: install \
             the packages postgresql redis-server pgbouncer faketime (their Debian names) and run the test again"
        )
    })
}

/// Who runs the tests.
pub(super) fn user_id() -> u32 {
    static ID: OnceLock<u32> = OnceLock::new();
    *ID.get_or_init(|| id_of(None))
}

/// The user that servers run as which refuse to run as root; `None` when the tests are not run by root.
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

/// A command that runs as the user of [`server_user`].
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
