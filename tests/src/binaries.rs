//! Programs that tests run, and a look into the database from outside of the product.

use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory of this profile's programs: `target/debug` or `target/release`.
fn profile_dir() -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    let deps = own.parent().expect("target/*/deps");
    if deps.ends_with("deps") { deps.parent().expect("target/*").to_owned() } else { deps.to_owned() }
}

/// The `turnstone` program, built if need be.
pub fn turnstone() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--package", "turnstone-cli", "--bin", "turnstone"], "turnstone")).clone()
}

/// The worker that kills itself at a chosen point.
pub fn crash_worker() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| build(&["--package", "turnstone-tests", "--example", "crash-worker"], "examples/crash-worker"))
        .clone()
}

fn build(what: &[&str], path: &str) -> PathBuf {
    let dir = profile_dir();
    eprintln!("building {} for the tests (quick when it is fresh)", what[3]);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked"]).args(what);
    if dir.ends_with("release") {
        cargo.arg("--release");
    }
    let target = dir.parent().expect("target");
    let status = cargo.env("CARGO_TARGET_DIR", target).status().expect("cargo runs");
    assert!(status.success(), "{} does not build", what[3]);
    dir.join(path)
}

/// One number out of an SQLite file.
pub async fn scalar(path: &Path, sql: &str) -> i64 {
    let mut conn = SqliteConnectOptions::new().filename(path).connect().await.expect("the database file");
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    sqlx::query_scalar(sql).fetch_one(&mut conn).await.expect("a number")
}
