//! Model providers: one trait, one file per provider.

pub mod anthropic;
mod cloud;
pub mod declared;
pub mod estimates;
mod http;
pub mod limits;
pub mod openai;
pub mod prices;
pub mod providers;
pub mod responses;
pub mod said;
pub mod scripted;
pub mod usage;

#[cfg(test)]
pub(crate) use http::fixture::request as request_of_test;
pub(crate) use http::unicode::{each_text, without_nul};
pub use http::{HttpProviderConfig, MaxTokensField, MaxTokensFields, ResponseFormat, StructuredOutput};
pub use limits::{LimitConfig, ModelLimits};
pub use prices::{PriceConfig, Prices};
pub use providers::{ModelDefaults, ProviderConfig, Providers};
pub use said::Listener;
pub use scripted::{NoopModel, ScriptedModel};
pub use usage::Usage;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::agent::{OutputContract, ToolChoice};
use turnstone_domain::error::Unreached;
pub use turnstone_domain::message::FinishReason;
use turnstone_domain::message::{Attached, Message};

/// A request to a model (OSSA §1.4).
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The provider's name for the model.
    pub model: String,
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation, oldest first. The turn shares its messages with its requests.
    pub messages: Vec<Arc<Message>>,
    /// The tools on offer.
    pub tools: Vec<ToolOffer>,
    /// The rule for tool calls: allowed, required or forbidden.
    pub tool_choice: ToolChoice,
    /// From 0.0 to 2.0; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// From 0.0 to 1.0; `None` leaves it to the provider.
    pub top_p: Option<f64>,
    /// From −2.0 to 2.0; `None` leaves it to the provider.
    pub frequency_penalty: Option<f64>,
    /// From −2.0 to 2.0; `None` leaves it to the provider.
    pub presence_penalty: Option<f64>,
    /// The most tokens of the answer, for which the budget is reserved.
    pub max_tokens: i64,
    /// True if the provider does not get `max_tokens`, unless its API demands it.
    pub unbounded: bool,
    /// The demanded form of the answer.
    pub output: OutputContract,
    /// The longest the whole call may take.
    pub timeout: Duration,
    /// Receives the text while the model writes it; providers that do not stream call it never.
    pub listener: Listener,
}

impl ModelRequest {
    /// Returns the bound on the answer that the provider gets.
    fn bound(&self) -> Option<i64> {
        (!self.unbounded).then_some(self.max_tokens)
    }
}

/// A tool as it is described to the model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ToolOffer {
    /// Its name.
    pub name: String,
    /// Its purpose, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

/// A tool call as the model wrote it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AskedCall {
    /// The tool's name.
    pub name: String,
    /// The arguments; a string when the model wrote no JSON.
    pub arguments: Value,
}

/// A model's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text, if any.
    pub content: Option<String>,
    /// The tool calls, in order.
    pub tool_calls: Vec<AskedCall>,
    /// The reason why it stopped.
    pub finish_reason: FinishReason,
    /// The tokens used; `None` when the provider did not count them.
    pub usage: Option<Usage>,
    /// The model that answered, under the provider's name.
    pub model: String,
    /// The provider's own id of this answer, if it has one.
    pub response_id: Option<String>,
    /// The members that only the provider understands, if there are any.
    #[serde(default)]
    pub attached: Option<Box<Attached>>,
    /// The calls that it took: more than one if the model paused.
    pub parts: i64,
}

impl ModelAnswer {
    /// Returns an answer in two parts as one.
    fn continued_by(self, rest: Self) -> Self {
        let attached = match (self.attached, rest.attached) {
            (Some(mut attached), Some(more)) => {
                attached.items.extend(more.items);
                Some(attached)
            }
            (attached, more) => attached.or(more),
        };
        let content = self.content.into_iter().chain(rest.content).reduce(|said, more| said + &more);
        let usage = match (self.usage, rest.usage) {
            (Some(usage), Some(more)) => Some(usage + more),
            (usage, more) => usage.or(more),
        };
        let tool_calls = self.tool_calls.into_iter().chain(rest.tool_calls).collect();
        Self { content, tool_calls, usage, attached, parts: self.parts + rest.parts, ..rest }
    }
}

/// The reason why a model call failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModelError {
    /// 429, or 503 with a time to wait: the next model is tried.
    #[error("{message}")]
    RateLimited {
        /// The provider's message.
        message: String,
        /// The delay that the provider demanded, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// Connection lost, 5xx, unknown model or provider: the next model is tried.
    #[error("{0}")]
    Unavailable(String),
    /// No connection to the provider was made: the next model is tried.
    #[error("provider {}: cannot connect: {} at {}", .0.provider, .0.problem, .0.address)]
    Unreached(Box<Unreached>),
    /// The provider ended an answer that had begun, and is charged for, before it was complete: the next model is tried. Unlike
    /// an outage it counts as a failure, so it is not bought again and again.
    #[error("{0}")]
    Cut(String),
    /// The call took longer than its timeout.
    #[error("{0}")]
    Timeout(String),
    /// The provider refused the request (400, 401, 403 …): every other model would refuse it too.
    #[error("{0}")]
    Refused(String),
    /// The prompt is longer than the model's context.
    #[error("{0}")]
    TooLong(String),
    /// The answer cannot be parsed.
    #[error("{0}")]
    Malformed(String),
}

impl ModelError {
    /// Returns its kind, in one word for metrics and spans.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::Unavailable(_) | Self::Unreached(_) | Self::Cut(_) => "unavailable",
            Self::Timeout(_) => "timeout",
            Self::Refused(_) => "refused",
            Self::TooLong(_) => "too_long",
            Self::Malformed(_) => "malformed",
        }
    }

    /// Returns true if the provider charges nothing for the failed call.
    fn is_unpaid(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Unavailable(_) | Self::Unreached(_))
    }

    /// Returns true if the turn may try the next model of the list (agent extension §3 rule 2). It may when
    /// this model was unreachable, busy or slow, or sent an invalid answer. It may not when the provider
    /// refused the request itself.
    #[must_use]
    pub fn falls_back(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// A model, behind the name of its provider.
pub type NamedModel = (String, Arc<dyn Model>);

/// A model provider.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// Asks the model once. Dropping the future ends the call.
    ///
    /// # Errors
    /// [`ModelError`]; its sentences are free of secrets.
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError>;

    /// Returns true if its provider keeps answers, under the ids that a request's listener receives.
    fn keeps_answers(&self) -> bool {
        false
    }

    /// Returns the answer to this request that the provider keeps under an id, and waits while the provider still writes it.
    /// `None` when it has none, or none that is complete. Dropping the future leaves it at the provider.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    async fn kept_answer(
        &self,
        _id: &str,
        _request: &ModelRequest,
    ) -> Result<Option<ModelAnswer>, ModelError> {
        Ok(None)
    }

    /// Returns true if its models take the pictures of tools.
    fn takes_pictures(&self) -> bool {
        false
    }
}
