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
use serde::Serialize;
use serde_json::{Map, Value};
use turnstone_domain::RawObject;
use turnstone_domain::cron::CronEntry;
use turnstone_ojs::OjsError;
use turnstone_ojs::cron::entry_to_json;
use utoipa::ToSchema;

/// Returns the entry of this name that the tenant may see, or 404.
async fn find(app: &App, name: &str, tenant: &Tenant) -> Result<CronEntry, Failure> {
    let found = app.api.store.crons.cron(name, tenant.name()).await?;
    found.ok_or_else(|| OjsError::not_found("cron entry", name).into())
}

impl CronReply {
    /// Returns an entry under both of its names.
    fn of(entry: &CronEntry) -> Self {
        let cron = entry_to_json(entry);
        Self { cron: cron.clone(), cron_job: cron }
    }
}

/// A cron entry.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct Cron {
    /// The name, as paths under `/ojs/v1/crons` take it.
    id: String,
    #[schema(example = "nightly-report")]
    name: String,
    /// As it was sent.
    #[schema(example = "0 3 * * *")]
    expression: String,
    /// The same.
    cron: String,
    /// An IANA name.
    #[schema(example = "Europe/Berlin")]
    timezone: String,
    /// skip, allow, `cancel_previous` or enqueue.
    overlap_policy: String,
    /// once, all or skip.
    missed_policy: String,
    enabled: bool,
    /// The type of its jobs.
    #[schema(rename = "type")]
    job_type: String,
    /// The request that each run enqueues.
    job_template: Map<String, Value>,
    description: Option<String>,
    created_at: String,
    updated_at: String,
    /// Absent while it is disabled.
    next_run_at: Option<String>,
    last_run_at: Option<String>,
    last_job_id: Option<String>,
    /// How many jobs it made.
    run_count: i64,
    /// Why the latest run made no job.
    last_error: Option<String>,
}

/// A cron entry under both of its names.
#[derive(Serialize, ToSchema)]
struct CronReply {
    #[schema(value_type = Cron)]
    cron: RawObject,
    #[schema(value_type = Cron)]
    cron_job: RawObject,
}

/// Cron entries by name.
#[derive(Serialize, ToSchema)]
struct CronList {
    #[schema(value_type = Vec<Cron>)]
    crons: Vec<RawObject>,
    #[schema(value_type = Vec<Cron>)]
    cron_jobs: Vec<RawObject>,
    count: usize,
}

/// An entry that was deleted.
#[derive(Serialize, ToSchema)]
struct ForgottenCron {
    #[schema(value_type = Cron)]
    cron: RawObject,
    #[schema(value_type = Cron)]
    cron_job: RawObject,
    deleted: bool,
    name: String,
}

/// The job that a trigger made.
#[derive(Serialize, ToSchema)]
struct TriggeredCron {
    #[schema(value_type = docs::Job)]
    job: RawObject,
    job_id: String,
    #[schema(value_type = Cron)]
    cron: RawObject,
    #[schema(value_type = Cron)]
    cron_job: RawObject,
}

/// One occurrence of an entry.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct CronRun {
    scheduled_at: String,
    at: String,
    /// triggered, skipped or failed.
    outcome: String,
    /// The job that was made, or the one that prevented it.
    job_id: Option<String>,
    /// Why no job could be made.
    message: Option<String>,
}

/// The latest occurrences of an entry, newest first, and the jobs that they made, as far as they are kept.
#[derive(Serialize, ToSchema)]
struct CronHistory {
    name: String,
    #[schema(value_type = Vec<CronRun>)]
    runs: Vec<RawObject>,
    #[schema(value_type = Vec<docs::Job>)]
    jobs: Vec<RawObject>,
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
