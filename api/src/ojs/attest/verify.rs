//! `POST /ojs/v1/attest/verify`: verifies a receipt of this fleet.

use super::signer::public_keys;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::JsonBytes;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::RawObject;
use turnstone_ojs::attest::{self, Receipt};
use turnstone_ojs::request;
use utoipa::ToSchema;

/// A receipt, as it was issued.
#[derive(Deserialize, ToSchema)]
pub(super) struct Verify {
    #[schema(value_type = Receipt)]
    receipt: RawObject,
}

/// The validity.
#[derive(Serialize, ToSchema)]
struct Verified {
    valid: bool,
    /// Why it is not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The key that the receipt names; null when it names none.
    key_id: Option<String>,
}

/// Verifies a receipt: it is valid if a key of this fleet signed exactly its text.
#[utoipa::path(
    post, path = "/ojs/v1/attest/verify", tag = "attest",
    security(("tenant" = ["viewer"])),
    request_body = Verify,
    responses((status = 200, description = "Whether it is valid.", body = Verified)),
)]
pub(crate) async fn verify(State(app): State<Shared>, JsonBytes(body): JsonBytes) -> Answer {
    let Verify { receipt } = request::read(&body)?;
    let sent = serde_json::to_value(&receipt).unwrap_or_default();
    let key_id = sent.pointer("/signature/key_id").and_then(|id| id.as_str()).map(str::to_owned);
    let checked = match serde_json::from_value::<Receipt>(sent) {
        Ok(receipt) => attest::verify(&receipt, &public_keys(&app).await?),
        Err(error) => Err(format!("the receipt has not the shape of one: {error}")),
    };
    let reason = checked.err();
    Ok(reply::ok(&Verified { valid: reason.is_none(), reason, key_id }))
}
