//! The files and folders that a program may open.

use super::Order;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The files of the system that programs read: libraries, certificates, names of hosts and users, and the time zone. The
/// configuration of other services in `/etc` is not among them.
const SYSTEM: [&str; 58] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/run/current-system/sw",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/services",
    "/etc/passwd",
    "/etc/group",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/debian_version",
    "/etc/inputrc",
    "/etc/terminfo",
    "/etc/fonts",
    "/etc/alternatives",
    "/etc/python3",
    // The directory of this process, which stays the program's. Those of other processes stay closed.
    "/proc/self",
    "/proc/sys",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
    "/proc/filesystems",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Devices without content.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Folders that hold more than the files of a program, so that a program within them opens itself alone.
const SHARED: [&str; 19] = [
    "/", "/tmp", "/var", "/var/tmp", "/var/lib", "/var/opt", "/home", "/root", "/etc", "/opt", "/srv",
    "/run", "/proc", "/sys", "/dev", "/dev/shm", "/mnt", "/media", "/data",
];

/// The entries of a folder above `bin` that show that it belongs to one program or one language.
const INSTALLED: [&str; 4] = ["pyvenv.cfg", "lib", "libexec", "node_modules"];

/// Returns what a program may read and execute: the system's files, its own, the files and folders that its arguments name,
/// and those of the order.
pub(super) fn readable(order: &Order, program: &Path, arguments: &[OsString]) -> Vec<PathBuf> {
    let mut open: BTreeSet<PathBuf> = installed(program, &order.shared);
    open.extend(named(arguments, &order.shared));
    open.extend(order.limits.read.iter().cloned());
    let open = open.iter().flat_map(|path| without(path, &order.hidden));
    SYSTEM.iter().map(PathBuf::from).chain(open).collect()
}

/// Returns what a program may also change.
pub(super) fn writable(order: &Order) -> Vec<PathBuf> {
    let open = order.limits.write.iter().chain(&order.scratch);
    open.flat_map(|path| without(path, &order.hidden)).collect()
}

/// Returns the file of a program, as a shell finds it by this `PATH`.
pub(super) fn found(program: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(program.into()).filter(|file: &PathBuf| file.exists());
    }
    std::env::split_paths(path?).map(|folder| folder.join(program)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the files of a program: its folder and, for a folder `shims`, or `bin` of one program or language, the one above.
/// Links are followed, and count as well.
fn installed(program: &Path, shared: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::from([program.to_owned()]);
    files.extend(program.canonicalize());
    let mut open = files.clone();
    for file in &files {
        let folder = file.parent().filter(|folder| !is_shared(folder, shared));
        open.extend(folder.map(Path::to_owned));
        let above = folder.and_then(Path::parent).filter(|above| !is_shared(above, shared));
        let is_its = |above: &&Path| match folder.and_then(Path::file_name) {
            Some(name) if name == "bin" => INSTALLED.iter().any(|entry| above.join(entry).exists()),
            Some(name) => name == "shims",
            None => false,
        };
        open.extend(above.filter(is_its).map(Path::to_owned));
        open.extend(modules(file));
    }
    open
}

/// Returns the packages for JavaScript that a file uses: `node_modules` and `package.json` of the folders above it.
fn modules(file: &Path) -> impl Iterator<Item = PathBuf> {
    let packages = file.ancestors().skip(1).filter(|folder| folder.join("node_modules").is_dir());
    packages.flat_map(|folder| [folder.join("node_modules"), folder.join("package.json")])
}

/// Returns the files and folders that arguments name, with the folder and the packages of the first such file: the script of
/// an interpreter.
fn named(arguments: &[OsString], shared: &[PathBuf]) -> Vec<PathBuf> {
    let absolute = arguments.iter().filter_map(|argument| std::path::absolute(argument).ok());
    let mut open: Vec<PathBuf> = absolute.filter(|path| path.exists()).collect();
    if let Some(script) = open.iter().find(|path| path.is_file()).cloned() {
        open.extend(modules(&script));
        open.extend(script.parent().filter(|folder| !is_shared(folder, shared)).map(Path::to_owned));
    }
    open
}

/// Returns true if a folder holds files of others, too: one of the system, or one around or of the worker's own `shared`
/// folders.
fn is_shared(folder: &Path, shared: &[PathBuf]) -> bool {
    SHARED.iter().any(|other| folder == Path::new(other))
        || shared.iter().any(|own| own.starts_with(folder) || folder == own.join(".local"))
}

/// Returns a path, or what is in it without what is hidden.
fn without(path: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(real) = path.canonicalize() else { return Vec::new() };
    if hidden.iter().any(|hidden| real.starts_with(hidden)) {
        return Vec::new();
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&real)) {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.flat_map(|entry| without(&entry.path(), hidden)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_file_stays_closed_in_an_open_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (place, name) in
            [("", "server.py"), ("", "turnstone.toml"), ("lib", "a.py"), ("lib/data", "turnstone.db")]
        {
            std::fs::create_dir_all(root.join(place)).unwrap();
            std::fs::write(root.join(place).join(name), "").unwrap();
        }
        let hidden = [root.join("turnstone.toml"), root.join("lib/data")];
        let mut open = without(&root, &hidden);
        open.sort();
        assert_eq!(open, [root.join("lib/a.py"), root.join("server.py")]);
        assert_eq!(without(&root.join("lib/data/turnstone.db"), &hidden), Vec::<PathBuf>::new());
        assert_eq!(without(&root, &[]), [root]);
    }

    #[test]
    fn a_program_opens_its_own_folder_and_no_shared_one() {
        let folder = tempfile::tempdir().unwrap();
        let venv = folder.path().join("venv");
        std::fs::create_dir_all(venv.join("bin")).unwrap();
        std::fs::create_dir_all(venv.join("lib")).unwrap();
        let python = venv.join("bin/python");
        std::fs::write(&python, "").unwrap();
        let open = installed(&python, &[]);
        assert!(open.contains(&venv) && !open.contains(folder.path()), "{open:?}");
        // A program in the home folder of the worker does not open it, nor what else lies beside `bin`.
        let home = folder.path().join("home");
        for place in ["bin", ".tools/bin"] {
            std::fs::create_dir_all(home.join(place)).unwrap();
            let tool = home.join(place).join("tool");
            std::fs::write(&tool, "").unwrap();
            let open = installed(&tool, std::slice::from_ref(&home));
            assert!(open.contains(&home.join(place)), "{open:?}");
            assert!(!open.contains(&home) && !open.contains(&home.join(".tools")), "{open:?}");
        }
        let script = folder.path().join("server.py");
        std::fs::write(&script, "").unwrap();
        let open = named(&["--quick".into(), script.clone().into(), venv.clone().into()], &[]);
        assert!(open.contains(&script) && open.contains(&folder.path().to_owned()) && open.contains(&venv));
        let package = folder.path().join("app/node_modules/x/dist");
        std::fs::create_dir_all(&package).unwrap();
        std::fs::write(package.join("index.js"), "").unwrap();
        let open = named(&[package.join("index.js").into()], &[]);
        assert!(open.contains(&folder.path().join("app/node_modules")), "{open:?}");
        assert!(!open.contains(&folder.path().join("app")), "{open:?}");
        for shared in ["/", "/tmp", "/etc", "/home"] {
            assert!(is_shared(Path::new(shared), &[]), "{shared}");
        }
    }
}
