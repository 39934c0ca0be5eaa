//! The place of a measurement: a fresh file in a directory of the disk that matters, or a store that the user names.

use super::database::Spending;
use crate::commands::dev::DataDir;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use turnstone_benches::disk::{self, Disk};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, SystemClock};
use turnstone_store::{PostgresOptions, PostgresStore, SqliteStore, Store};

/// The place of a measurement.
#[derive(Clone, Debug)]
pub struct BenchPlace {
    dir: PathBuf,
    given: Option<NamedStore>,
}

/// A store that the user named.
#[derive(Clone, PartialEq, Eq, Debug)]
enum NamedStore {
    Sqlite(PathBuf),
    Postgres { url: String, transaction_pooler: bool },
}

/// An open store; a temporary one is removed when this is dropped.
pub struct Ground {
    /// The store.
    pub store: Store,
    /// Its time.
    pub clock: Arc<dyn Clock>,
    /// True if it is removed when this is dropped.
    pub temporary: bool,
    _dir: Option<TempDir>,
    // A second process that writes the file would not know the newest events of the first.
    _taken: Option<DataDir>,
}

impl BenchPlace {
    /// Returns the store at `url`, else fresh files below `dir`. The pooler is one in front of PostgreSQL.
    ///
    /// # Errors
    /// The URL is none that this version understands, or there is no such directory.
    pub fn new(url: Option<&str>, dir: Option<PathBuf>, pooler: bool) -> Result<Self, Failure> {
        let mut given = url.map(given).transpose()?;
        match &mut given {
            Some(NamedStore::Postgres { transaction_pooler, .. }) => *transaction_pooler = pooler,
            _ if pooler => {
                return Err(Failure::usage("--transaction-pooler needs a PostgreSQL database")
                    .hint("name it with --store postgres://…"));
            }
            _ => {}
        }
        let file = match &given {
            Some(NamedStore::Sqlite(path)) => Some(path.as_path()),
            _ => None,
        };
        let beside = file.and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
        let dir = dir.or(beside.map(Path::to_owned)).unwrap_or_else(|| PathBuf::from("."));
        if dir.is_dir() {
            return Ok(Self { dir, given });
        }
        let problem = format!("there is no directory {}", dir.display());
        Err(Failure::usage(problem).hint("create it, or name another one with --dir"))
    }

    fn postgres(&self) -> Option<PostgresOptions> {
        let Some(NamedStore::Postgres { url, transaction_pooler }) = &self.given else { return None };
        Some(PostgresOptions { transaction_pooler: *transaction_pooler, ..PostgresOptions::new(url) })
    }

    /// Returns true if it is a PostgreSQL database.
    #[must_use]
    pub fn is_postgres(&self) -> bool {
        matches!(self.given, Some(NamedStore::Postgres { .. }))
    }

    /// Returns the work of the database's server so far; `None` where there is no server.
    ///
    /// # Errors
    /// As [`Spending::read`].
    pub async fn spending(&self) -> anyhow::Result<Option<Spending>> {
        match self.postgres() {
            Some(options) => Spending::read(&options).await.map(Some),
            None => Ok(None),
        }
    }

    /// Measures the disk alone, now.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub async fn disk(&self) -> Result<Disk, Failure> {
        disk::watch(&self.dir).await.map_err(|error| self.unwritable(&error.to_string()))
    }

    /// Measures the store alone, now.
    ///
    /// # Errors
    /// It cannot be opened, or failed.
    pub async fn single_commits(&self) -> Result<f64, Failure> {
        let ground = self.open().await?;
        let commits = disk::single_commits(&*ground.store.ledger, &*ground.clock).await;
        commits.map_err(|error| Failure::failed(error.to_string()))
    }

    /// Opens a store: the user's, or one that is new each time.
    ///
    /// # Errors
    /// It cannot be opened, or another process uses it.
    pub async fn open(&self) -> Result<Ground, Failure> {
        let ids = Arc::new(SystemIds);
        if let Some(options) = self.postgres() {
            let opened = PostgresStore::open(&options, ids).await;
            let (store, clock) = opened.map_err(|error| Failure::failed(error.to_string()))?;
            return Ok(Ground { store, clock, temporary: false, _dir: None, _taken: None });
        }
        let dir = match self.given {
            Some(_) => None,
            None => Some(
                tempfile::Builder::new()
                    .prefix(".turnstone-bench-")
                    .tempdir_in(&self.dir)
                    .map_err(|error| self.unwritable(&error.to_string()))?,
            ),
        };
        let path = match (&dir, &self.given) {
            (None, Some(NamedStore::Sqlite(path))) => path.clone(),
            (dir, _) => dir.as_ref().map_or(Path::new(""), TempDir::path).join("bench.db"),
        };
        let taken = DataDir::of(&path)?;
        let store = SqliteStore::open(&path, ids).await.map_err(|error| {
            Failure::failed(format!("the store {} cannot be opened: {error}", path.display()))
        })?;
        Ok(Ground { store, clock: Arc::new(SystemClock), temporary: dir.is_some(), _dir: dir, _taken: taken })
    }

    /// Opens the same store with new connections: a server counts the work of a connection at the latest when it ends.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn reconnect(&self, ground: Ground) -> Result<Ground, Failure> {
        if !self.is_postgres() {
            return Ok(ground);
        }
        drop(ground);
        self.open().await
    }

    /// Returns the place in words.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.given {
            Some(NamedStore::Sqlite(path)) => format!("sqlite:{}", path.display()),
            // The address may hold a password.
            Some(NamedStore::Postgres { transaction_pooler: true, .. }) => {
                "a PostgreSQL database behind a pooler".to_owned()
            }
            Some(NamedStore::Postgres { .. }) => "a PostgreSQL database".to_owned(),
            None => format!("a fresh SQLite file for each round in {}", self.dir.display()),
        }
    }

    /// Returns the flags that name this place to another process of this program.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec!["--dir".to_owned(), self.dir.display().to_string()];
        let store = match &self.given {
            Some(NamedStore::Sqlite(path)) => Some(format!("sqlite:{}", path.display())),
            Some(NamedStore::Postgres { url, transaction_pooler }) => {
                flags.extend(transaction_pooler.then(|| "--transaction-pooler".to_owned()));
                Some(url.clone())
            }
            None => None,
        };
        flags.extend(store.into_iter().flat_map(|store| ["--store".to_owned(), store]));
        flags
    }

    fn unwritable(&self, why: &str) -> Failure {
        Failure::failed(format!("the directory {} cannot be written: {why}", self.dir.display()))
            .hint("name another one with --dir")
    }
}

fn given(url: &str) -> Result<NamedStore, Failure> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(NamedStore::Postgres { url: url.to_owned(), transaction_pooler: false });
    }
    let path = url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path));
    match path.filter(|path| !path.is_empty()) {
        Some(path) => Ok(NamedStore::Sqlite(PathBuf::from(path))),
        None => Err(Failure::usage(format!("--store {url} is no store that can be measured"))
            .hint("give sqlite:PATH or postgres://…, or leave it out for a fresh temporary file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_its_path() {
        assert_eq!(given("sqlite:data/t.db").unwrap(), NamedStore::Sqlite("data/t.db".into()));
        assert_eq!(given("sqlite:///var/t.db").unwrap(), NamedStore::Sqlite("/var/t.db".into()));
        for bad in ["sqlite:", "t.db", "mysql://h/db"] {
            assert!(given(bad).unwrap_err().message.contains(bad));
        }
    }

    #[test]
    fn a_pooler_is_one_of_postgres_and_another_process_is_told_of_it() {
        let at = |url| BenchPlace::new(url, None, true);
        assert!(at(Some("postgres://h/db")).unwrap().flags().contains(&"--transaction-pooler".to_owned()));
        for url in [None, Some("sqlite:data/t.db")] {
            assert!(at(url).unwrap_err().message.contains("PostgreSQL"));
        }
    }

    #[test]
    fn a_missing_directory_is_reported() {
        let missing = BenchPlace::new(None, Some(PathBuf::from("/no/such/place")), false).unwrap_err();
        assert!(missing.message.contains("/no/such/place") && missing.hint.is_some());
    }
}
