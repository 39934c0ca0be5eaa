//! Agent definitions, parsed once and shared between the claims of the same agent.

use super::rows;
use super::session::Session;
use super::statement::read;
use crate::StoreError;
use crate::sql;
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
        session: &mut Session,
        digest: &str,
    ) -> Result<Arc<AgentDefinition>, StoreError> {
        if let Some(known) = self.known.get(digest) {
            return Ok(Arc::clone(known));
        }
        let action = "read an agent definition";
        let mut found = read(session, action, &sql::SELECT_DEFINITION_BY_DIGEST, &[digest.into()], |row| {
            rows::json(row, "definition")
        })
        .await?;
        let Some(definition) = found.pop() else {
            return Err(StoreError::Unreadable {
                column: "digest".to_owned(),
                message: format!("there is no definition {digest}"),
            });
        };
        if self.known.len() >= KEPT {
            self.known.clear();
        }
        let definition = Arc::new(definition);
        self.known.insert(digest.to_owned(), Arc::clone(&definition));
        Ok(definition)
    }
}
