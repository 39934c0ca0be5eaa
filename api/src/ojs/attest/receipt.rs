//! `GET /ojs/v1/jobs/{id}/receipt`: the signed receipt of a job that the server accepted.

use super::signer::signer;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::JobId;
use turnstone_ojs::OjsError;
use turnstone_ojs::attest::{self, AttestRequest};
use utoipa::ToSchema;

/// A receipt. docs/OJS.md describes the signed text and the signature.
#[derive(ToSchema)]
#[schema(as = Receipt)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct ReceiptShape {
    /// The version of this shape.
    #[schema(example = "1")]
    version: String,
    job_id: String,
    job_type: String,
    /// When the job was accepted: RFC 3339, UTC.
    issued_at: String,
    /// Lower-case hex SHA-256 of the job's `args`, as the JSON text that the server returns.
    args_sha256: String,
    quote: QuoteShape,
    signature: SignatureShape,
}

/// The quote of the machine that a job runs on.
#[derive(ToSchema)]
#[schema(as = Quote)]
#[expect(dead_code, reason = "described, never built")]
struct QuoteShape {
    /// `none`, or the job's own `ext_attest.quote.type`.
    #[schema(rename = "type", example = "none")]
    kind: String,
    issued_at: String,
}

/// A signature.
#[derive(ToSchema)]
#[schema(as = Signature)]
#[expect(dead_code, reason = "described, never built")]
struct SignatureShape {
    #[schema(example = "ed25519")]
    algorithm: String,
    /// Base64.
    value: String,
    key_id: String,
}

/// The answer.
#[derive(Serialize, ToSchema)]
struct ReceiptReply {
    #[schema(value_type = ReceiptShape)]
    receipt: attest::Receipt,
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
