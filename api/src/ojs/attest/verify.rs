//! `POST /ojs/v1/attest/verify`: verifies a receipt of this fleet.

use super::signer::public_keys;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::JsonBytes;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_ojs::attest::{self, Receipt};
use turnstone_ojs::{Fields, OjsError};
use utoipa::ToSchema;

/// A receipt, as it was issued.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "described, read by hand")]
pub(super) struct Verify {
    #[schema(value_type = Receipt)]
    receipt: serde_json::Value,
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
    let fields = Fields::read(&body)?;
    let Some(sent) = fields.object("receipt")? else {
        return Err(OjsError::invalid_request("receipt", "is missing").into());
    };
    let sent = serde_json::to_value(&sent).unwrap_or_default();
    let key_id = sent.pointer("/signature/key_id").and_then(|id| id.as_str()).map(str::to_owned);
    let checked = match serde_json::from_value::<Receipt>(sent) {
        Ok(receipt) => attest::verify(&receipt, &public_keys(&app).await?),
        Err(error) => Err(format!("the receipt has not the shape of one: {error}")),
    };
    let reason = checked.err();
    Ok(reply::ok(&Verified { valid: reason.is_none(), reason, key_id }))
}
