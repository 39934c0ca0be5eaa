//! The `openai` provider: chat completions over HTTP, the API of OpenAI, vLLM, Ollama, llama.cpp and many
//! gateways.
//!
//! The request asks for a stream, so that a lost connection is noticed during the answer. An answer in one
//! piece is accepted as well. The provider retries nothing: the turn decides how to treat a failure.

mod assembly;
mod config;
mod oci;
mod request;
#[cfg(test)]
mod tests;

pub use config::{MaxTokensField, OpenAiConfig, ResponseFormat};
pub use oci::{OciChat, OciModel};

use crate::model::http::{Api, HttpModel, ProviderAddress, WireNames};
use crate::model::{ModelAnswer, ModelRequest};
use assembly::CompletionsAssembly;
use serde_json::{Map, Value};

/// A chat completions endpoint.
pub type OpenAiModel = HttpModel<OpenAiConfig>;

impl Api for OpenAiConfig {
    type Assembly = CompletionsAssembly;

    fn address(&self) -> ProviderAddress<'_> {
        self.address_at(&["chat", "completions"])
    }

    fn body(&self, request: &ModelRequest, names: &WireNames, more: &Map<String, Value>) -> Value {
        request::body(request, self, names, more)
    }

    fn finish(
        &self,
        assembly: CompletionsAssembly,
        request: &ModelRequest,
        names: &WireNames,
    ) -> Result<ModelAnswer, String> {
        assembly.finish(names, &request.model)
    }

    fn takes_pictures(&self) -> bool {
        self.shows_pictures()
    }
}
