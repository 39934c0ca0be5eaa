//! Everything is forgotten: what was enqueued, what came of it, and what was set up beside it.

use super::super::super::session::{Args, Session};
use crate::{StoreError, sql};

/// Empties the tables, each of the statements in its turn.
pub(super) async fn apply<S: Session>(session: &mut S) -> Result<(), StoreError> {
    session.execute("empty the tables", &sql::DELETE_EVERYTHING, Args::Values(&[])).await?;
    session.execute("remember queues", &sql::INSERT_QUEUES_OF_JOBS, Args::Values(&[])).await.map(|_| ())
}
