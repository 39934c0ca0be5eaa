//! `GET /ojs/v1/admin/jobs/{id}/raw`: the rows of one job as they are stored.

use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value};
use turnstone_domain::JobId;
use turnstone_ojs::OjsError;
use turnstone_store::RawRow;
use utoipa::ToSchema;

/// The rows of a job as they are stored.
#[derive(Serialize, ToSchema)]
struct RawJob {
    job_id: String,
    rows: Vec<RawJobRow>,
}

/// A row as it is stored.
#[derive(Serialize, ToSchema)]
struct RawJobRow {
    table: &'static str,
    /// A number, a text or null by column. A value that cannot be read is an object: `unreadable`, the reason, and `stored`,
    /// the text as it is stored.
    columns: Map<String, Value>,
}

impl From<RawRow> for RawJobRow {
    fn from(RawRow { table, columns }: RawRow) -> Self {
        Self { table, columns }
    }
}

/// The rows of one job as they are stored, whether they can be read or not. Only for operators of all tenants.
#[utoipa::path(
    get, path = "/ojs/v1/admin/jobs/{id}/raw", operation_id = "admin_raw_job", tag = "admin",
    security(("fleet" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    responses(
        (status = 200, description = "Its rows by table. A sealed value is opened. One that cannot be read is an object with the reason and the text as it is stored.", body = RawJob),
        (status = 403, description = "The request names a tenant.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn raw_job(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    if tenant.name().is_some() {
        let hint = "Leave the header X-OJS-Tenant out, with a key of the fleet's operators.";
        let message = "Raw rows are shown to operators of all tenants only.";
        return Err(OjsError::new(403, "forbidden", message, hint).into());
    }
    let job = app.api.store.views.unique_id(&JobId::from(id.as_str())).await?;
    let rows = app.api.store.operate.raw_job(&job).await?;
    if rows.is_empty() {
        return Err(OjsError::not_found("job", &id).into());
    }
    Ok(reply::ok(&RawJob { job_id: id, rows: rows.into_iter().map(RawJobRow::from).collect() }))
}
