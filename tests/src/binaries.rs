//! Programs that tests run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the directory of this profile's programs: `target/debug` or `target/release`.
fn profile_dir() -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    let deps = own.parent().expect("target/*/deps");
    if deps.ends_with("deps") { deps.parent().expect("target/*").to_owned() } else { deps.to_owned() }
}

/// Returns the directory of all build output: `target`, or that of `CARGO_TARGET_DIR`.
pub(crate) fn target_dir() -> PathBuf {
    profile_dir().parent().expect("target").to_owned()
}

/// Returns the `turnstone` program.
pub fn turnstone() -> PathBuf {
    built().join("turnstone")
}

/// Returns the worker that kills itself at a chosen point.
pub fn crash_worker() -> PathBuf {
    built().join("examples/crash-worker")
}

/// Builds the programs once, with the features of the whole workspace, so that the output of `cargo test` is
/// reused.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = profile_dir();
        eprintln!("building the programs that the tests run (quick when they are fresh)");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "build",
            "--quiet",
            "--locked",
            "--workspace",
            "--bin",
            "turnstone",
            "--example",
            "crash-worker",
        ]);
        if dir.ends_with("release") {
            cargo.arg("--release");
        }
        // Cargo's variables about the package of the tests would make ring's build script, and all above it,
        // stale; so would the variable that libtest needs for `--report-time`.
        for (name, _) in std::env::vars_os() {
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR", "RUSTC_BOOTSTRAP"]
                .iter()
                .any(|own| name.to_string_lossy().starts_with(own))
            {
                cargo.env_remove(name);
            }
        }
        // Outside of cargo, rustup would look for a toolchain of its own in the folder of each dependency.
        if let Some(toolchain) = option_env!("RUSTUP_TOOLCHAIN") {
            cargo.env("RUSTUP_TOOLCHAIN", toolchain);
        }
        let target = dir.parent().expect("target");
        let status = cargo.env("CARGO_TARGET_DIR", target).status().expect("cargo runs");
        assert!(status.success(), "the programs that the tests run do not build");
        dir
    })
}
