//! The places of the programs that the tests run, and the commands that install them. Shared with `build.rs`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that some tests need.
pub struct Need {
    /// The `cfg` that `build.rs` sets when the tests of this program are left out.
    pub cfg: &'static str,
    /// The name for messages.
    pub name: &'static str,
    /// The packages of [`MANAGERS`], in their order.
    packages: [&'static str; 4],
    /// Returns the program's place.
    pub find: fn() -> Option<PathBuf>,
}

/// Package managers, and the command of each to install packages.
const MANAGERS: [(&str, &str); 4] = [
    ("apt-get", "apt-get install"),
    ("dnf", "dnf install"),
    ("pacman", "pacman -S"),
    ("brew", "brew install"),
];

/// The programs that some tests need.
pub const NEEDS: [Need; 6] = [
    Need {
        cfg: "no_postgres",
        name: "PostgreSQL",
        packages: ["postgresql", "postgresql-server", "postgresql", "postgresql@17"],
        find: postgres_dir,
    },
    Need {
        cfg: "no_redis",
        name: "Redis",
        packages: ["redis-server", "valkey", "valkey", "redis"],
        find: redis_server,
    },
    Need {
        cfg: "no_pgbouncer",
        name: "PgBouncer",
        packages: ["pgbouncer", "pgbouncer", "pgbouncer", "pgbouncer"],
        find: pgbouncer,
    },
    Need {
        cfg: "no_faketime",
        name: "libfaketime",
        packages: ["faketime", "libfaketime", "libfaketime", "libfaketime"],
        find: faketime,
    },
    Need {
        cfg: "no_python",
        name: "Python 3",
        packages: ["python3", "python3", "python", "python3"],
        find: python,
    },
    Need {
        cfg: "no_sqlite_shell",
        name: "the sqlite3 shell",
        packages: ["sqlite3", "sqlite", "sqlite", "sqlite"],
        find: sqlite_shell,
    },
];

/// Returns the command that installs these programs with this machine's package manager, or their names.
pub fn how_to_install(needs: &[&Need]) -> String {
    let manager = MANAGERS.iter().enumerate().find(|(_, (program, _))| in_path(program).is_some());
    let words = needs.iter().map(|need| manager.map_or(need.name, |(column, _)| need.packages[column]));
    match manager {
        Some((_, (_, command))) => format!("{command} {}", words.collect::<Vec<_>>().join(" ")),
        None => format!("install {}", words.collect::<Vec<_>>().join(", ")),
    }
}

/// Returns true if `tests/install-servers.sh` can install packages: with apt-get, and as root or by
/// `sudo -n`.
pub fn can_install() -> bool {
    let output = |program: &str, arguments: &[&str]| Command::new(program).args(arguments).output().ok();
    let is_root = || output("id", &["-u"]).is_some_and(|output| output.stdout == b"0\n");
    let has_sudo = || output("sudo", &["-n", "true"]).is_some_and(|output| output.status.success());
    in_path("apt-get").is_some() && (is_root() || has_sudo())
}

/// Returns the folder of PostgreSQL's programs: that of `pg_config`, else of the newest version, else of the
/// PATH.
pub fn postgres_dir() -> Option<PathBuf> {
    let reported = Command::new("pg_config").arg("--bindir").output().ok();
    let reported = reported.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    // Debian and Ubuntu; Fedora and its kin with PostgreSQL's own packages; Homebrew.
    let mut versions = entries("/usr/lib/postgresql", "");
    versions.extend(entries("/usr", "pgsql-"));
    versions.extend(entries("/opt/homebrew/opt", "postgresql@"));
    versions.extend(entries("/usr/local/opt", "postgresql@"));
    versions.sort_by_key(|dir| std::cmp::Reverse(version_of(dir)));
    let versions = versions.into_iter().map(|dir| dir.join("bin"));
    reported.into_iter().chain(versions).chain(path_dirs()).find(|dir| is_server(dir))
}

/// Returns true if a folder has the server's programs: a client's package has only the others.
fn is_server(dir: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| dir.join(program).is_file())
}

/// Returns the major version: `/usr/lib/postgresql/15`, `/usr/pgsql-16`, `/opt/homebrew/opt/postgresql@17` →
/// 15, 16, 17.
fn version_of(dir: &Path) -> u32 {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let version = name.rsplit(['-', '@']).next().unwrap_or_default();
    version.parse().unwrap_or_default()
}

/// Returns the `redis-server` program, or that of Valkey, which replaces it in Fedora and Arch.
pub fn redis_server() -> Option<PathBuf> {
    in_path("redis-server").or_else(|| in_path("valkey-server"))
}

/// Returns the `pgbouncer` program.
pub fn pgbouncer() -> Option<PathBuf> {
    in_path("pgbouncer")
}

/// Returns the `python3` program.
pub fn python() -> Option<PathBuf> {
    in_path("python3")
}

/// Returns the `sqlite3` program.
pub fn sqlite_shell() -> Option<PathBuf> {
    in_path("sqlite3")
}

/// Returns libfaketime, for `LD_PRELOAD`.
pub fn faketime() -> Option<PathBuf> {
    // Debian and Ubuntu have a folder per architecture, Arch and Fedora none.
    let folders = entries("/usr/lib", "").into_iter().chain(["/usr/lib", "/usr/lib64"].map(PathBuf::from));
    folders.map(|dir| dir.join("faketime/libfaketime.so.1")).find(|library| library.is_file())
}

/// Returns the entries of a folder whose names begin with `prefix`.
fn entries(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let wanted = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    wanted.map(|entry| entry.path()).collect()
}

/// Returns a program of the PATH.
pub fn in_path(program: &str) -> Option<PathBuf> {
    path_dirs().into_iter().map(|dir| dir.join(program)).find(|program| program.is_file())
}

/// Returns the folders of the PATH, and those of servers, which a normal user's PATH often lacks.
fn path_dirs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).collect()
}
