//! Receipts and their verification.

mod keys;
mod receipt;
mod signer;
mod verify;

pub(crate) use signer::{public_keys, signer};

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(receipt::receipt))
        .routes(routes!(verify::verify))
        .routes(routes!(keys::keys))
}
