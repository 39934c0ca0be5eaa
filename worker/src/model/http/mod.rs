//! The common part of providers over HTTP: the configuration, the call, the reading of an answer, and the
//! mapping of failures. Each API is in a folder of its own.

mod api;
mod config;
mod failure;
mod history;
mod members;
mod model;
mod partial;
mod stream;
pub(crate) mod unicode;
mod value;
mod wire_names;

pub use api::Api;
pub use config::{HttpProviderConfig, MaxTokensField, MaxTokensFields, ResponseFormat, StructuredOutput};
pub use history::{AnswerPart, History};
pub(super) use members::members_beside;
pub use model::HttpModel;
pub use partial::{Item, PartialAnswer};
pub(super) use value::{PDF, arguments_text, count, list, parameters, unknown_end, usage, without_nulls};
pub use wire_names::WireNames;

#[cfg(test)]
mod attached_tests;
#[cfg(test)]
pub(super) mod fixture;
#[cfg(test)]
mod tests;
