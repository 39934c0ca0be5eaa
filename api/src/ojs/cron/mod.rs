//! Cron entries (OJS cron §3): make, list, show, change, delete, trigger, history.

mod change_cron;
mod forget_cron;
mod history;
mod list_crons;
mod put_cron;
pub(crate) mod routes;
mod show_cron;
mod trigger;

use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use serde::Serialize;
use turnstone_domain::cron::CronEntry;
use turnstone_ojs::OjsError;
use turnstone_ojs::cron::CronBody;
use utoipa::ToSchema;

/// Returns the entry of this name that the tenant may see, or 404.
async fn find(app: &App, name: &str, tenant: &Tenant) -> Result<CronEntry, Failure> {
    let found = app.api.store.crons.cron(name, tenant.name()).await?;
    found.ok_or_else(|| OjsError::not_found("cron entry", name).into())
}

impl From<CronEntry> for CronReply {
    fn from(entry: CronEntry) -> Self {
        let cron = CronBody::from(&entry);
        Self { cron: cron.clone(), cron_job: cron }
    }
}

/// A cron entry under both of its names.
#[derive(Serialize, ToSchema)]
pub(crate) struct CronReply {
    /// The entry.
    pub cron: CronBody,
    cron_job: CronBody,
}
