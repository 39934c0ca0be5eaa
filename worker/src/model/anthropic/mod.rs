//! The `anthropic` provider: Anthropic's messages API over HTTP.
//!
//! A demanded schema is sent as a tool that takes the answer, because every model of this provider can be
//! made to call a tool. The call is read as the text of the answer. The provider retries nothing: the turn
//! decides how to treat a failure.

mod assembly;
mod demand;
mod request;
#[cfg(test)]
mod tests;

use crate::model::http::{Api, HttpModel, ProviderAddress, WireNames, http_config};
use crate::model::{ModelAnswer, ModelRequest};
use assembly::AnthropicAssembly;
use demand::Demand;
use serde_json::{Map, Value};

http_config! {
    /// A section `[providers.<name>]` with `kind = "anthropic"`. The key is sent as `x-api-key`; `headers` may set another
    /// `anthropic-version` than 2023-06-01.
    AnthropicConfig at "https://api.anthropic.com/v1" {}
}

/// An endpoint of the messages API.
pub type AnthropicModel = HttpModel<AnthropicConfig>;

impl Api for AnthropicConfig {
    type Assembly = AnthropicAssembly;

    fn address(&self) -> ProviderAddress<'_> {
        ProviderAddress {
            key_header: ("x-api-key", ""),
            own_headers: &[("anthropic-version", "2023-06-01")],
            ..self.address_at(&["messages"])
        }
    }

    fn names(&self, request: &ModelRequest) -> WireNames {
        Demand::of(request, self.structured_output).names(request)
    }

    fn body(&self, request: &ModelRequest, names: &WireNames, _: &Map<String, Value>) -> Value {
        request::body(request, Demand::of(request, self.structured_output), names)
    }

    fn finish(
        &self,
        assembly: AnthropicAssembly,
        request: &ModelRequest,
        names: &WireNames,
    ) -> Result<ModelAnswer, String> {
        assembly.finish(Demand::of(request, self.structured_output), names, &request.model)
    }

    fn takes_pictures(&self) -> bool {
        self.shows_pictures()
    }
}
