//! Agent definitions, parsed once and shared between the claims of the same agent.

use super::rows;
use super::sql;
use super::statement::failed;
use crate::StoreError;
use sqlx::sqlite::SqliteConnection;
use std::collections::HashMap;
use std::sync::Arc;
use turnstone_domain::AgentDefinition;

/// More definitions than this are not kept in memory; ad-hoc agents could bring any number.
const KEPT: usize = 1024;

/// The definitions that were used lately.
#[derive(Default)]
pub(super) struct Definitions {
    known: HashMap<String, Arc<AgentDefinition>>,
}

impl Definitions {
    /// The definition with this digest.
    pub(super) async fn get(
        &mut self,
        conn: &mut SqliteConnection,
        digest: &str,
    ) -> Result<Arc<AgentDefinition>, StoreError> {
        if let Some(known) = self.known.get(digest) {
            return Ok(Arc::clone(known));
        }
        let row = sqlx::query(sql::DEFINITION_BY_DIGEST).bind(digest).fetch_one(conn).await;
        let definition = rows::json(&row.map_err(failed("read an agent definition"))?, "definition")?;
        if self.known.len() >= KEPT {
            self.known.clear();
        }
        let definition = Arc::new(definition);
        self.known.insert(digest.to_owned(), Arc::clone(&definition));
        Ok(definition)
    }
}
