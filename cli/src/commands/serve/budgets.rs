//! The budgets of the configuration, put into the store at start-up.

use crate::config::Config;
use crate::failure::Failure;
use turnstone_domain::Timestamp;
use turnstone_store::Store;

/// Sets what the configuration says of shared budgets. What it said before is not set again, so that a restart takes no
/// raise back; what it no longer names stays until somebody forgets it.
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
