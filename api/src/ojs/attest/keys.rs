//! `GET /ojs/v1/attest/keys`: the keys that verify receipts, for every client.

use super::signer::public_keys;
use crate::api::Shared;
use crate::reply::{self, Answer};
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::attest::ALGORITHM;
use utoipa::ToSchema;

/// A key that verifies.
#[derive(Serialize, ToSchema)]
struct Key {
    /// The first 16 hex digits of its SHA-256.
    key_id: String,
    #[schema(example = "ed25519")]
    algorithm: &'static str,
    /// 32 bytes in base64.
    public_key: String,
}

/// The keys.
#[derive(Serialize, ToSchema)]
struct Keys {
    keys: Vec<Key>,
}

/// Every key with which this fleet ever signed receipts.
#[utoipa::path(
    get, path = "/ojs/v1/attest/keys", tag = "attest",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "The keys.", body = Keys)),
)]
pub(crate) async fn keys(State(app): State<Shared>) -> Answer {
    let keys = public_keys(&app).await?;
    let keys = keys
        .into_iter()
        .map(|key| Key { key_id: key.id, algorithm: ALGORITHM, public_key: key.value })
        .collect();
    Ok(reply::ok(&Keys { keys }))
}
