//! Receipts and their verification.

mod keys;
mod receipt;
pub(crate) mod routes;
mod signer;
mod verify;

pub(crate) use signer::{public_keys, signer};
