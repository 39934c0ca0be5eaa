//! Entries that make a job at times: the writes.

mod entries;
mod fire;

pub(in super::super) use entries::{change, forget, put};
pub(in super::super) use fire::{apply as fire, trigger};

use turnstone_domain::cron::CronEntry;

/// Whose an entry is, as its row says it.
fn owner(entry: &CronEntry) -> &str {
    entry.tenant.as_deref().unwrap_or_default()
}
