//! The `openai-responses` provider: OpenAI's responses API over HTTP.
//!
//! The provider stores nothing (`store: false`): every request holds the whole conversation. The provider
//! retries nothing: the turn decides how to treat a failure.

mod assembly;
mod request;
#[cfg(test)]
mod tests;

use crate::model::http::{Api, HttpModel, ProviderAddress, WireNames, http_config};
use crate::model::{ModelAnswer, ModelRequest};
use assembly::ResponsesAssembly;
use serde_json::{Map, Value};

http_config! {
    /// A section `[providers.<name>]` with `kind = "openai-responses"`. The key is sent as `Authorization: Bearer …`.
    ResponsesConfig at "https://api.openai.com/v1" {}
}

/// An endpoint of the responses API.
pub type ResponsesModel = HttpModel<ResponsesConfig>;

impl Api for ResponsesConfig {
    type Assembly = ResponsesAssembly;

    fn address(&self) -> ProviderAddress<'_> {
        self.address_at(&["responses"])
    }

    fn body(&self, request: &ModelRequest, names: &WireNames, more: &Map<String, Value>) -> Value {
        request::body(request, self, names, more)
    }

    fn finish(
        &self,
        assembly: ResponsesAssembly,
        request: &ModelRequest,
        names: &WireNames,
    ) -> Result<ModelAnswer, String> {
        assembly.finish(names, &request.model)
    }

    fn takes_pictures(&self) -> bool {
        self.shows_pictures()
    }
}
