//! The endpoints about the server itself.

mod health;
mod manifest;
mod metrics;
pub(crate) mod routes;
