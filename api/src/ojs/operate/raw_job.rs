//! `GET /ojs/v1/admin/jobs/{id}/raw`: the rows of one job as they are stored.

use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde_json::json;
use turnstone_domain::JobId;
use turnstone_ojs::OjsError;

/// The rows of one job as they are stored, whether they can be read or not. Only for operators of all tenants.
#[utoipa::path(
    get, path = "/ojs/v1/admin/jobs/{id}/raw", operation_id = "admin_raw_job", tag = "admin",
    security(("fleet" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    responses(
        (status = 200, description = "Its rows by table. A sealed value is opened. One that cannot be read is an object with the reason and the text as it is stored.", body = docs::RawJob),
        (status = 403, description = "The request names a tenant.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn raw_job(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    if tenant.name().is_some() {
        let hint = "Leave the header X-OJS-Tenant out, with a key of the fleet's operators.";
        let message = "Raw rows are shown to operators of all tenants only.";
        return Err(OjsError::new(403, "forbidden", message, hint).into());
    }
    let rows = app.api.store.operate.raw_job(&JobId::from(id.as_str())).await?;
    if rows.is_empty() {
        return Err(OjsError::not_found("job", &id).into());
    }
    Ok(reply::ok(&json!({"job_id": id, "rows": rows})))
}
