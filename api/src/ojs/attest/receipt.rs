//! `GET /ojs/v1/jobs/{id}/receipt`: the signed receipt of a job that the server accepted.

use super::signer::signer;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::JobId;
use turnstone_ojs::OjsError;
use turnstone_ojs::attest::{AttestRequest, Receipt};
use utoipa::ToSchema;

/// The answer.
#[derive(Serialize, ToSchema)]
struct ReceiptReply {
    receipt: Receipt,
}

/// The signed receipt of a job. It is the same at any time, and needs no run of the job.
#[utoipa::path(
    get, path = "/ojs/v1/jobs/{id}/receipt", tag = "attest",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 200, description = "The receipt.", body = ReceiptReply)),
)]
pub(crate) async fn receipt(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let found = app.api.store.views.job_of(&JobId::from(id.as_str()), tenant.name()).await?;
    let job = found.ok_or_else(|| OjsError::not_found("job", &id))?;
    if AttestRequest::of(&job.envelope.extra).enabled == Some(false) {
        let hint = "Enqueue the job with \"ext_attest\": {\"enabled\": true}.";
        let message = format!("Job {id} asks not to be attested, so it has no receipt.");
        return Err(OjsError::new(404, "not_found", message, hint).into());
    }
    let receipt = signer(&app).await?.receipt(&job);
    Ok(reply::ok(&ReceiptReply { receipt }))
}
