//! The budgets of the configuration, put into the store at start-up.

use crate::config::Config;
use crate::failure::Failure;
use turnstone_domain::Timestamp;
use turnstone_store::Store;

/// Sets the shared budgets of the configuration. An unchanged section is not set again, so that a restart takes no
/// raise back. A removed section stays until its budget is deleted.
///
/// # Errors
/// A section that cannot be used, or the store failed.
pub async fn apply(config: &Config, store: &Store, now: Timestamp) -> anyhow::Result<()> {
    for rule in config.budgets.rules().map_err(Failure::usage)? {
        let given = format!("configuration: {rule:?}");
        store.budgets.set(rule, Some(given), now).await.map_err(super::fleet_store::refused)?;
    }
    Ok(())
}
