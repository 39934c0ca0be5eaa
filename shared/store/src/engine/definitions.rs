//! Agent definitions, parsed once and shared between the claims of the same agent.

use super::rows;
use super::session::{Args, Row, Session};
use crate::StoreError;
use crate::sql;
use serde::de::IgnoredAny;
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
    /// The definition with this digest, to be run.
    ///
    /// # Errors
    /// [`StoreError::NotRegistered`] for one that was imported and that nothing admits, whatever made its job.
    pub(super) async fn get(
        &mut self,
        session: &mut Session,
        digest: &str,
    ) -> Result<Arc<AgentDefinition>, StoreError> {
        if let Some(known) = self.known.get(digest) {
            return Ok(Arc::clone(known));
        }
        let action = "read an agent definition";
        // The text of a digest never changes, so it may be read before the transaction begins.
        let args = &[digest.into()];
        let found = session.look(action, &sql::SELECT_DEFINITION_BY_DIGEST, Args::Values(args)).await?;
        let definition = found.first().map(|row| {
            rows::json::<AgentDefinition>(row, "definition").map_err(|wrong| (wrong, is_json(row)))
        });
        let definition = match definition {
            Some(Ok(definition)) => Some(definition),
            // A newer version may have written it.
            Some(Err((wrong, true))) => return Err(wrong.into()),
            Some(Err((wrong, false))) => {
                return Err(StoreError::Inconsistent {
                    table: "agent_definitions",
                    column: "definition",
                    row: digest.to_owned(),
                    message: StoreError::from(wrong).to_string(),
                });
            }
            None => None,
        };
        let Some(definition) = definition else {
            return Err(StoreError::Unreadable {
                column: "digest".to_owned(),
                message: format!("there is no definition {digest}"),
            });
        };
        if definition.is_foreign() {
            return Err(StoreError::NotRegistered { agent: definition.name, is_other: false });
        }
        if self.known.len() >= KEPT {
            self.known.clear();
        }
        let definition = Arc::new(definition);
        self.known.insert(digest.to_owned(), Arc::clone(&definition));
        Ok(definition)
    }
}

/// Returns true if the definition of a row is JSON, or cannot be opened without a key that is missing here.
fn is_json(row: &Row) -> bool {
    match rows::get::<&str>(row, "definition") {
        Ok(text) => serde_json::from_str::<IgnoredAny>(text).is_ok(),
        Err(_) => true,
    }
}
