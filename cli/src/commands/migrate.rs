//! `turnstone migrate`: brings the database of a fleet up to date.

use super::Session;
use crate::commands::serve::fleet_store::{options, refused};
use crate::config::Config;
use crate::output::Format;
use serde_json::json;
use std::process::ExitCode;
use turnstone_store::PostgresStore;

/// Applies missing migrations, and registers the queues of the configuration. Running it twice is harmless.
///
/// # Errors
/// The database cannot be reached, or is not fit for it.
pub async fn run(config: Config, session: &Session) -> anyhow::Result<ExitCode> {
    let queues = config.worker.named_queues().unwrap_or_default();
    let applied = PostgresStore::migrate(&options(&config)?, queues).await.map_err(refused)?;
    let output = &session.output;
    match output.format {
        Format::Json => output.json(&json!({ "applied": applied }))?,
        Format::Ids => applied.iter().try_for_each(|name| output.line(name))?,
        Format::Table => {
            applied.iter().try_for_each(|name| output.line(&format!("applied {name}")))?;
            if applied.is_empty() {
                output.remark("the database is up to date");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
