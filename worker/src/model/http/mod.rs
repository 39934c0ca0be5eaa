//! The common part of providers over HTTP: the address, the reading of an answer, and the mapping of
//! failures. Each provider's own format is in a folder of its own.

mod config;
mod endpoint;
mod failure;
mod model;
mod stream;
mod value;
mod wire_names;

pub(super) use config::http_config;
pub use endpoint::{Endpoint, ProviderAddress};
pub use model::{Api, HttpModel};
pub use stream::Assembly;
pub(super) use value::{Origin, PDF, arguments, arguments_text, count, usage};
pub use wire_names::WireNames;

#[cfg(test)]
pub(super) mod fixture;
