//! The requirement of `turnstone dev`: a data directory that can be written.

use crate::commands::dev::DataDir;
use crate::config::Config;
use std::path::Path;
use turnstone_store::{Finding, SqliteStore};

/// A disk with less free space than this is almost full.
const ROOM_BYTES: u64 = 16 * 1024 * 1024;

/// Checks the data directory, and makes none.
pub fn findings(config: &Config) -> Vec<Finding> {
    let path = &config.server.data;
    let shown = path.display();
    let advice =
        "name another directory with `server.data` or --data, or give this user the right to write it";
    if !path.exists() {
        let parent = path.ancestors().skip(1).find(|parent| exists(parent)).unwrap_or(Path::new("."));
        return vec![if is_writable(parent) && (parent.as_os_str().is_empty() || parent.is_dir()) {
            Finding::good(format!("the data directory {shown} is not there yet; `turnstone dev` makes it"))
        } else {
            Finding::bad(format!("the data directory {shown} cannot be made"), advice)
        }];
    }
    let mut findings = vec![match (path.is_dir(), is_writable(path)) {
        (false, _) => Finding::bad(format!("{shown} is not a directory"), advice),
        (true, false) => Finding::bad(format!("the data directory {shown} cannot be written"), advice),
        (true, true) => Finding::good(format!("the data directory {shown} can be written")),
    }];
    findings.extend(room(path));
    if DataDir::is_open_to_others(path) {
        findings.push(Finding::bad(
            format!("other users of this machine can read {shown}"),
            format!("chmod 700 {shown}"),
        ));
    }
    findings
}

/// Checks the free space of the disk. One that is full takes no writes.
fn room(path: &Path) -> Option<Finding> {
    let disk = rustix::fs::statvfs(path).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    (free < ROOM_BYTES).then(|| {
        Finding::bad(
            format!("the disk of {} has {} KiB left", path.display(), free / 1024),
            "make room; the server keeps the answers that it has, and goes on by itself",
        )
    })
}

/// Checks that the configured keys open the stored data, if there is any.
pub async fn encryption(config: &Config) -> Option<Finding> {
    let file = DataDir::database_in(&config.server.data);
    let keys = config.encryption.keys().ok()?;
    if file.is_file() { Some(SqliteStore::check(&file, keys.as_ref()).await) } else { None }
}

/// Returns true if the path exists; the empty path is the current directory.
fn exists(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

fn is_writable(path: &Path) -> bool {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_is_looked_at_and_not_made() {
        let parent = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.server.data = parent.path().join("deep/data");
        assert!(findings(&config)[0].ok && !config.server.data.exists());
        std::fs::write(parent.path().join("deep"), "a file").unwrap();
        assert!(!findings(&config)[0].ok, "{:?}", findings(&config));
        config.server.data = parent.path().join("deep");
        assert!(findings(&config)[0].what.contains("is not a directory"));
    }
}
