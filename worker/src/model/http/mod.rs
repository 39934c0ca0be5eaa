//! The common part of providers over HTTP: the address, the reading of an answer, and the mapping of
//! failures. Each provider's own format is in a folder of its own.

mod endpoint;
mod failure;
mod stream;
mod value;
mod wire_names;

pub(super) use endpoint::{Endpoint, ProviderAddress};
pub(super) use stream::Assembly;
pub(super) use value::{PDF, arguments, count};
pub(super) use wire_names::WireNames;

#[cfg(test)]
pub(super) mod fixture;
