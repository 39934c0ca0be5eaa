//! Leaves out the tests whose programs are missing, where the tests cannot install them, and says so.
//!
//! With `CI=true` nothing is left out: a test whose program is missing fails.

#[path = "src/servers/find.rs"]
mod find;

use std::process::Command;

/// Files that change when packages are installed, so that a program is noticed that was missing: of dpkg, of rpm, of
/// pacman, and of Homebrew.
const PACKAGE_RECORDS: [&str; 6] = [
    "/var/lib/dpkg/status",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/var/lib/rpm/rpmdb.sqlite",
    "/var/log/pacman.log",
    "/opt/homebrew/var/homebrew/locks",
    "/usr/local/var/homebrew/locks",
];

fn main() {
    for file in ["build.rs", "src/servers/find.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    for need in &find::NEEDS {
        println!("cargo::rustc-check-cfg=cfg({})", need.cfg);
    }
    println!("cargo::rustc-check-cfg=cfg(no_namespaces)");
    if !has_namespaces() {
        println!("cargo::rustc-cfg=no_namespaces");
    }

    println!("cargo::rustc-check-cfg=cfg(no_tmpfs)");
    if !mounts_tmpfs() {
        println!("cargo::rustc-cfg=no_tmpfs");
    }

    // A library that moves the clock of a process is loaded by LD_PRELOAD, which only Linux has.
    let (linux_only, is_linux) = ("no_faketime", cfg!(target_os = "linux"));
    if !is_linux {
        println!("cargo::rustc-cfg={linux_only}");
    }
    let needs = find::NEEDS.iter().filter(|need| is_linux || need.cfg != linux_only);
    let missing: Vec<_> = needs.filter(|need| (need.find)().is_none()).collect();
    if missing.is_empty() {
        // Nothing else is watched: a change of the PATH would compile the tests again.
        return;
    }
    for variable in ["CI", "PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    // A file that is absent counts as changed.
    for record in PACKAGE_RECORDS.into_iter().filter(|record| std::fs::exists(record).unwrap_or_default()) {
        println!("cargo::rerun-if-changed={record}");
    }
    let names = missing.iter().map(|need| need.name).collect::<Vec<_>>().join(", ");
    let how = find::how_to_install(&missing);
    if std::env::var_os("CI").is_some_and(|value| value == "true") {
        println!("cargo::warning=missing: {names}; with CI=true their tests fail ({how})");
    } else if find::can_install() {
        println!("cargo::warning=missing: {names}; the tests install them with tests/install-servers.sh");
    } else {
        for need in &missing {
            println!("cargo::rustc-cfg={}", need.cfg);
        }
        println!("cargo::warning=missing: {names}; their tests are ignored. To run them: {how}");
    }
}

/// Returns whether a process may have a mount namespace of its own; containers often forbid it.
fn has_namespaces() -> bool {
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "true"]);
    unshare.output().is_ok_and(|output| output.status.success())
}

/// Returns true if the tests may mount a small disk.
fn mounts_tmpfs() -> bool {
    let Ok(folder) = std::env::var("OUT_DIR").map(|out| std::path::Path::new(&out).join("mount")) else {
        return false;
    };
    let tried = std::fs::create_dir_all(&folder).is_ok()
        && Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "turnstone-tests"])
            .arg(&folder)
            .output()
            .is_ok_and(|output| output.status.success());
    tried && Command::new("umount").arg(&folder).output().is_ok_and(|output| output.status.success())
}
