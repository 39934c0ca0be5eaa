//! What can go wrong with a store.

use turnstone_domain::JobId;

/// A failure of the store itself. The caller may try again; nothing was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database did not answer, or answered with an error.
    #[error("the database failed while it was asked to {action}: {message}")]
    Database {
        /// What was being done.
        action: &'static str,
        /// The database's own words.
        message: String,
    },
    /// A row was written by a version that this one does not understand, or is damaged.
    #[error("a row cannot be read by this version: column {column}: {message}")]
    Unreadable {
        /// The column.
        column: String,
        /// What is wrong with it.
        message: String,
    },
    /// A row does not stand where the rules say it must.
    #[error("table {table}, row {row}: column {column} cannot be read: {message}")]
    Inconsistent {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
        /// What is wrong with it.
        message: String,
    },
    /// A job with this id exists already (OJS core §6.1).
    #[error("a job with id {0} exists already")]
    DuplicateJob(JobId),
    /// The store was closed while the call was waiting.
    #[error("the store is closed")]
    Closed,
}

/// Why a write under a lease was refused.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// Zero rows matched the fencing token: somebody else owns the job now, or it was cancelled. Touch nothing.
    #[error("the lease on job {0} is lost")]
    LeaseLost(JobId),
    /// The reservation does not fit into the budget; nothing of the write was applied.
    #[error("the budget has {left} tokens left, {needed} are needed")]
    BudgetExceeded {
        /// What is left.
        left: i64,
        /// What was to be reserved.
        needed: i64,
    },
    /// The store failed; nothing of the write was applied.
    #[error(transparent)]
    Store(#[from] StoreError),
}
