//! The data directory: readable for its owner only, and used by one process at a time.

use crate::failure::{Exit, Failure};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The file whose lock marks the directory as in use. It holds the id of the process.
const LOCK: &str = "lock";
/// The database file.
const DATABASE: &str = "turnstone.db";

/// A data directory that only this process uses. The operating system releases it when the process ends, in whatever
/// way.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the directory if need be and takes it.
    ///
    /// # Errors
    /// Another process uses it, other users can read it, or it cannot be written.
    pub fn take(path: &Path) -> Result<Self, Failure> {
        let unusable = |what: &str, error: &io::Error| {
            Failure::usage(format!("the data directory {} {what}: {error}", path.display()))
                .hint("name another one with --data DIR")
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| unusable("cannot be made", &error))?;
        if Self::is_open_to_others(path) {
            let path = path.display();
            let problem = format!("other users of this machine can read the data directory {path}");
            return Err(Failure::usage(problem)
                .hint(format!("run `chmod 700 {path}`, or name another one with --data DIR")));
        }
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(LOCK))
            .map_err(|error| unusable("cannot be written", &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path, &mut lock)),
            Err(TryLockError::Error(error)) => return Err(unusable("cannot be locked", &error)),
        }
        match sign(&mut lock) {
            // The signature only helps; what is stored can be read although nothing can be written.
            Err(error) if error.kind() != io::ErrorKind::StorageFull => {
                return Err(unusable("cannot be written", &error));
            }
            _ => {}
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Takes the data directory of a database file; `None` if the file is not in one.
    ///
    /// # Errors
    /// As [`DataDir::take`].
    pub fn of(database: &Path) -> Result<Option<Self>, Failure> {
        match database.parent() {
            Some(dir) if Self::database_in(dir) == database && dir.join(LOCK).exists() => {
                Self::take(dir).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the database file.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        Self::database_in(&self.path)
    }

    /// Returns the database file of a data directory that another process may use.
    #[must_use]
    pub fn database_in(path: &Path) -> PathBuf {
        path.join(DATABASE)
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if other users of this machine may read a data directory, because another program made it.
    #[must_use]
    pub fn is_open_to_others(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
    }
}

/// Writes the id of the lock's holder.
fn sign(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

fn in_use(path: &Path, lock: &mut File) -> Failure {
    let mut holder = String::new();
    // The holder's id only helps; the lock itself is certain.
    let _ = lock.read_to_string(&mut holder);
    let who = holder.trim().parse::<u32>().map_or("another process".to_owned(), |id| format!("process {id}"));
    Failure::new(Exit::Conflict, format!("the data directory {} is in use by {who}", path.display()))
        .hint("stop that one first, or name another directory with --data DIR")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn a_directory_has_one_user_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("deep/data");
        let first = DataDir::take(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!DataDir::is_open_to_others(first.path()) && first.database().ends_with("data/turnstone.db"));
        let refused = DataDir::take(&path).unwrap_err();
        assert_eq!(refused.exit, Exit::Conflict);
        assert!(refused.message.contains(&format!("process {}", std::process::id())), "{refused}");
        assert!(
            DataDir::of(&first.database()).is_err() && DataDir::of(&path.join("other.db")).unwrap().is_none()
        );
        let database = first.database();
        drop(first);
        assert!(DataDir::take(&path).is_ok());
        assert!(DataDir::of(&database).unwrap().is_some());
        assert!(
            DataDir::of(&parent.path().join(DATABASE)).unwrap().is_none(),
            "no process made that directory"
        );
    }

    #[test]
    fn a_directory_that_others_can_read_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        for mode in [0o750, 0o705, 0o701] {
            std::fs::set_permissions(parent.path(), Permissions::from_mode(mode)).unwrap();
            let refused = DataDir::take(parent.path()).unwrap_err();
            assert!(refused.message.contains("can read the data directory"), "{refused}");
        }
        std::fs::set_permissions(parent.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(DataDir::take(parent.path()).is_ok());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = DataDir::take(&file.path().join("data")).unwrap_err();
        assert!(failure.message.contains("cannot be made") && failure.hint.is_some(), "{failure}");
    }
}
