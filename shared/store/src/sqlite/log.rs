//! The log of the database file (`-wal`), and the mark by which a file that was copied without it is recognised.
//!
//! The file itself has the mark while its log has newer commits; the log always has a commit that removes the mark. So
//! SQLite finds the mark only in a file without its log. Every reader of both, every tool that copies by SQLite's own
//! means, and a crash at any moment see none:
//!
//! 1. A checkpoint copies the whole log into the file.
//! 2. One commit sets the mark, and a second checkpoint copies this commit.
//! 3. Another commit removes the mark. It stays in the log until the next checkpoint, which repeats the three steps.
//!
//! The second step is short, because the first one did the work. A process may be killed there, and another program may then
//! copy the log into the file and delete it. That complete file has the mark, and equals a copy without its log.
//!
//! The mark is the `user_version` of the file, with the number of the schema (`schema_version`) as its value. `.backup`
//! and `VACUUM INTO` change this number. So a backup that was taken between the steps has a mark of another schema, and is
//! not refused.

use super::connection::SqliteConnection;
use crate::engine::session::Durability;
use crate::{Finding, StoreError};
use rusqlite::hooks::Wal;
use std::cell::Cell;
use std::ffi::c_int;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A log of this many pages is copied into the file.
const CHECKPOINT_PAGES: c_int = 4_000;

/// The header of a database file, and where its numbers are (SQLite's file format §1.3).
const HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const SCHEMA_VERSION: usize = 40;
const USER_VERSION: usize = 60;

thread_local! {
    /// The pages of the log after the latest commit of this thread.
    static PAGES: Cell<c_int> = const { Cell::new(0) };
}

fn committed(_: &Wal, pages: c_int) -> rusqlite::Result<()> {
    PAGES.set(pages);
    Ok(())
}

impl SqliteConnection {
    /// Leaves the checkpoints of the log to [`Self::commit`].
    pub(super) fn keep_log(&mut self) {
        self.inner().wal_hook(Some(committed));
    }

    /// Begins a transaction that writes.
    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        self.remove_mark()?;
        self.control("BEGIN IMMEDIATE")
    }

    /// Commits, and then copies a long log into the file.
    pub(super) fn commit(&mut self) -> rusqlite::Result<()> {
        PAGES.set(0);
        self.control("COMMIT")?;
        if PAGES.get() >= CHECKPOINT_PAGES {
            self.mark();
        }
        Ok(())
    }

    /// Copies the log into the file, and marks the file until the next checkpoint.
    pub(super) fn mark(&mut self) {
        // The commits are durable without it, and the next commit tries again.
        if let Err(error) = self.try_mark() {
            tracing::debug!(%error, "the database file could not be marked as one with a log");
        }
    }

    fn try_mark(&mut self) -> rusqlite::Result<()> {
        if !self.checkpoint()? {
            return Ok(());
        }
        self.set_durability(Durability::AtOnce)?;
        let schema: i64 = self.inner().pragma_query_value(None, "schema_version", |row| row.get(0))?;
        self.inner().pragma_update(None, "user_version", schema)?;
        self.marked = true;
        let copied = self.checkpoint();
        self.remove_mark()?;
        copied.map(|_| ())
    }

    fn remove_mark(&mut self) -> rusqlite::Result<()> {
        if self.marked {
            self.inner().pragma_update(None, "user_version", 0)?;
            self.marked = false;
        }
        Ok(())
    }

    /// Copies the log into the file as far as no reader needs the older pages; returns true if all of it was copied.
    pub(super) fn checkpoint(&mut self) -> rusqlite::Result<bool> {
        self.inner().query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |row| {
            let (busy, pages, copied): (i64, i64, i64) = row.try_into()?;
            Ok(busy == 0 && pages == copied)
        })
    }
}

/// A database file that was copied without its log: its latest commits are missing.
pub(super) struct Missing {
    what: String,
    advice: String,
}

impl From<Missing> for StoreError {
    fn from(missing: Missing) -> Self {
        Self::Unfit(format!("{}; {}", missing.what, missing.advice))
    }
}

impl From<Missing> for Finding {
    fn from(missing: Missing) -> Self {
        Self::bad(missing.what, missing.advice)
    }
}

/// Refuses a database file that was copied without its log.
pub(super) fn check(file: &Path) -> Result<(), Missing> {
    // A process that starts now has a log before its file has the mark. SQLite refuses a file that cannot be read.
    if has_log(file) || !is_marked(file).unwrap_or(false) || has_log(file) {
        return Ok(());
    }
    let (file, log) = (file.display(), log(file));
    let log = log.file_name().unwrap_or_default().display();
    Err(Missing {
        what: format!(
            "the database file {file} was copied from a running server without its log `{log}`, which has the latest commits"
        ),
        advice: format!(
            "put the `{log}` of the same moment beside it, or restore a backup that was made with \
             `sqlite3 turnstone.db \".backup 'copy.db'\"`. To accept the loss of these commits, run \
             `sqlite3 {file} 'PRAGMA user_version = 0'`"
        ),
    })
}

fn log(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn has_log(file: &Path) -> bool {
    log(file).metadata().is_ok_and(|log| log.len() > 0)
}

/// Reads the mark from the file alone. There is no log, so no process has the file open, and SQLite's locks stay.
fn is_marked(file: &Path) -> std::io::Result<bool> {
    let mut header = Vec::with_capacity(HEADER);
    match File::open(file) {
        Ok(file) => file.take(HEADER as u64).read_to_end(&mut header)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if header.len() < HEADER || !header.starts_with(MAGIC) {
        return Ok(false);
    }
    let mark = &header[USER_VERSION..USER_VERSION + 4];
    Ok(mark != [0; 4] && mark == &header[SCHEMA_VERSION..SCHEMA_VERSION + 4])
}
