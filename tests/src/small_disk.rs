//! A small disk that a test fills: a tmpfs, which root may mount.

use crate::scratch::{self, sweeper};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The bytes that are written at once to fill it: first many, then a page.
const CHUNK: usize = 1024 * 1024;
const PAGE: usize = 4096;

/// The disk. It is unmounted when it is dropped, and with the test process at the latest.
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts a disk of this size.
    ///
    /// # Panics
    /// When the system forbids it: such tests are left out with `cfg(no_tmpfs)`.
    pub fn mount(mebibytes: usize) -> Self {
        // Beside the scratch folders: the user of a server cannot enter those.
        let folder = tempfile::Builder::new().prefix("turnstone-disk-").tempdir_in(scratch::base());
        let folder = folder.expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "turnstone-tests"])
            .arg(folder.path())
            .status();
        assert!(mounted.expect("mount runs").success(), "{} cannot be mounted", folder.path().display());
        sweeper().tell(&format!("mounted {}", folder.path().display()));
        Self { folder }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Fills it to the last page.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.ballast()).expect("a file");
        for size in [CHUNK, PAGE] {
            let bytes = vec![0; size];
            while match file.write(&bytes) {
                Ok(written) => written > 0,
                Err(error) if error.kind() == ErrorKind::StorageFull => false,
                Err(error) => panic!("the disk cannot be filled: {error}"),
            } {}
        }
    }

    /// Makes room again.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).expect("the ballast");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a server that is just ending may still use it.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
