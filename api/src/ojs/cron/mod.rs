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
use crate::docs;
use crate::reply::Failure;
use crate::request::Tenant;
use serde::{Deserialize, Serialize};
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
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CronReply {
    /// The entry.
    pub cron: CronBody,
    cron_job: CronBody,
}

/// A request to make or replace an entry. The job may be in `job_template` or beside the other members.
#[derive(ToSchema)]
#[schema(example = json!({
    "name": "nightly-report", "expression": "0 3 * * *", "timezone": "Europe/Berlin",
    "job_template": {"type": "report.build", "args": ["daily"], "options": {"queue": "reports"}},
}))]
#[expect(dead_code, reason = "described, never built")]
struct PutCron {
    /// a-z, A-Z, 0-9, `-`, `_`, `.`, `:`.
    name: String,
    /// Five fields, six with seconds in front, or an alias such as @daily and @every 5m.
    expression: String,
    /// An IANA name; UTC by default.
    timezone: Option<String>,
    /// skip (the default), allow, `cancel_previous` or enqueue.
    overlap_policy: Option<String>,
    /// once (the default), all or skip.
    missed_policy: Option<String>,
    enabled: Option<bool>,
    description: Option<String>,
    /// The request that each run enqueues.
    job_template: docs::Enqueue,
}

/// A request to change an entry; members that are not sent stay as they are.
#[derive(ToSchema)]
#[schema(example = json!({"enabled": false}))]
#[expect(dead_code, reason = "described, never built")]
struct ChangeCron {
    expression: Option<String>,
    timezone: Option<String>,
    overlap_policy: Option<String>,
    missed_policy: Option<String>,
    enabled: Option<bool>,
    description: Option<String>,
    job_template: Option<docs::Enqueue>,
}
