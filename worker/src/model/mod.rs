//! Model providers: one trait, one file per provider.

pub mod anthropic;
pub mod declared;
mod http;
pub mod limits;
pub mod openai;
pub mod prices;
pub mod providers;
pub mod responses;
pub mod said;
pub mod scripted;
pub mod usage;

pub use anthropic::{AnthropicConfig, AnthropicModel};
pub use limits::{LimitConfig, ModelLimits};
pub use openai::{OpenAiConfig, OpenAiModel};
pub use prices::{PriceConfig, Prices};
pub use providers::{ModelDefaults, ProviderConfig, Providers};
pub use responses::{ResponsesConfig, ResponsesModel};
pub use said::Listener;
pub use scripted::{NoopModel, ScriptedModel};
pub use usage::Usage;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use turnstone_domain::agent::{OutputContract, ToolChoice};
use turnstone_domain::message::Message;

/// What a model is asked (OSSA §1.4).
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The provider's name for the model.
    pub model: String,
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<ToolOffer>,
    /// Whether tools may, must or must not be called.
    pub tool_choice: ToolChoice,
    /// 0.0 to 2.0; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// 0.0 to 1.0; `None` leaves it to the provider.
    pub top_p: Option<f64>,
    /// −2.0 to 2.0; `None` leaves it to the provider.
    pub frequency_penalty: Option<f64>,
    /// −2.0 to 2.0; `None` leaves it to the provider.
    pub presence_penalty: Option<f64>,
    /// The most tokens the answer may have; always sent, because the budget was reserved for it.
    pub max_tokens: i64,
    /// The demanded form of the answer.
    pub output: OutputContract,
    /// The longest the whole call may take.
    pub timeout: Duration,
    /// Who hears the text while it is written; providers that do not stream say nothing.
    pub listener: Listener,
}

/// A tool as the model is told about it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ToolOffer {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

/// Why the model stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// `max_tokens` was reached.
    Length,
    /// It asks for tools.
    ToolUse,
    /// The provider withheld the answer.
    ContentFilter,
}

/// A tool call as the model wrote it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AskedCall {
    /// The tool's name.
    pub name: String,
    /// The arguments; a string when what the model wrote is not JSON.
    pub arguments: Value,
}

/// What a model answered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text, if any.
    pub content: Option<String>,
    /// The tool calls, in order.
    pub tool_calls: Vec<AskedCall>,
    /// Why it stopped.
    pub finish_reason: FinishReason,
    /// What it cost; `None` when the provider did not say.
    pub usage: Option<Usage>,
    /// The model that answered, by the provider's own word.
    pub model: String,
    /// The provider's own name of this answer, if it has one.
    pub response_id: Option<String>,
}

/// Why a model call failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModelError {
    /// 429, or 503 with a time to wait: the next model is tried.
    #[error("{message}")]
    RateLimited {
        /// What happened.
        message: String,
        /// What the provider asked us to wait.
        retry_after_ms: Option<u64>,
    },
    /// Connection refused or lost, 5xx, unknown model or provider: the next model is tried.
    #[error("{0}")]
    Unavailable(String),
    /// The call took longer than its timeout.
    #[error("{0}")]
    Timeout(String),
    /// The provider refused the request (400, 401, 403 …): no other model would make it better.
    #[error("{0}")]
    Refused(String),
    /// The answer cannot be understood.
    #[error("{0}")]
    Malformed(String),
}

impl ModelError {
    /// Its kind, in one word for metrics and spans.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::Unavailable(_) => "unavailable",
            Self::Timeout(_) => "timeout",
            Self::Refused(_) => "refused",
            Self::Malformed(_) => "malformed",
        }
    }

    /// Whether the next model of the list may do better: it may where this one could not be reached, was busy, was slow
    /// or talked nonsense, and not where the request itself was refused (agent extension §3 rule 2).
    #[must_use]
    pub fn falls_back(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// A model provider.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// Asks the model once. Dropping the future ends the call.
    ///
    /// # Errors
    /// [`ModelError`]; its sentences are free of secrets.
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError>;

    /// Whether its models take the pictures of tools.
    fn takes_pictures(&self) -> bool {
        false
    }
}
