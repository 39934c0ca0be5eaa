//! Everything is forgotten: what was enqueued, what came of it, and what was set up beside it.

use crate::engine::session::{Args, Session};
use crate::{StoreError, sql};

/// Empties the tables, each of the statements in its turn.
pub(in crate::engine) async fn apply(session: &mut Session) -> Result<(), StoreError> {
    session.execute("empty the tables", &sql::DELETE_EVERYTHING, Args::Values(&[])).await?;
    session.execute("remember queues", &sql::INSERT_QUEUES_OF_JOBS, Args::Values(&[])).await.map(|_| ())
}
