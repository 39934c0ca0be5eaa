//! The one taxonomy of errors that a job can carry (OSSA §2, OJS core §7, agent extension §3).

use crate::reported::Reported;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// What kind of failure it was. Each kind has one stable code on the wire and one answer to "may it be tried again?".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The job's fields or arguments are wrong.
    Validation,
    /// The final output does not match the demanded schema or format.
    OutputSchema,
    /// A tool failed and the turn could not go on.
    Tool,
    /// A tool that is not declared was named.
    ToolNotFound,
    /// A tool took too long and the turn could not go on.
    ToolTimeout,
    /// No model of the list could be reached.
    ModelUnavailable,
    /// The provider refused or answered nonsense.
    Model,
    /// The model took too long.
    ModelTimeout,
    /// The provider asked us to slow down.
    RateLimited,
    /// The token budget is used up.
    TokenBudget,
    /// Too many turns.
    MaxTurns,
    /// A restriction, a guardrail, the short circuit or a reviewer said no.
    Policy,
    /// The delegation chain is too deep.
    DelegationDepth,
    /// The job took longer than its `timeout_ms`.
    Timeout,
    /// The job's `expires_at` passed before it ended.
    Expired,
    /// Turnstone itself failed (a panic, a checkpoint it cannot read).
    Internal,
    /// A worker over HTTP reported it in words of its own (see [`Reported`]).
    Reported,
    /// The lease of a plain job ran out before its worker said anything (OJS worker protocol §6).
    Silence,
}

impl FailureKind {
    /// All kinds, for the documentation.
    pub const ALL: [Self; 18] = [
        Self::Validation,
        Self::OutputSchema,
        Self::Tool,
        Self::ToolNotFound,
        Self::ToolTimeout,
        Self::ModelUnavailable,
        Self::Model,
        Self::ModelTimeout,
        Self::RateLimited,
        Self::TokenBudget,
        Self::MaxTurns,
        Self::Policy,
        Self::DelegationDepth,
        Self::Timeout,
        Self::Expired,
        Self::Internal,
        Self::Reported,
        Self::Silence,
    ];

    /// The stable code of the error on the wire.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Validation => "AGENT_INVALID_PARAMETER",
            Self::OutputSchema => "AGENT_OUTPUT_SCHEMA_VIOLATION",
            Self::Tool => "AGENT_TOOL_EXECUTION_FAILED",
            Self::ToolNotFound => "AGENT_TOOL_NOT_FOUND",
            Self::ToolTimeout => "AGENT_TOOL_TIMEOUT",
            Self::ModelUnavailable => "AGENT_MODEL_UNAVAILABLE",
            Self::Model => "OSSA_LLM_ERROR",
            Self::ModelTimeout => "OSSA_LLM_TIMEOUT",
            Self::RateLimited => "RATE_LIMITED",
            Self::TokenBudget => "AGENT_TOKEN_BUDGET_EXCEEDED",
            Self::MaxTurns => "OSSA_MAX_TURNS_EXCEEDED",
            Self::Policy => "OSSA_POLICY_VIOLATION",
            Self::DelegationDepth => "AGENT_MAX_DELEGATION_DEPTH",
            Self::Timeout => "TIMEOUT",
            Self::Expired => "EXPIRED",
            Self::Internal => "INTERNAL",
            Self::Reported => "REPORTED",
            Self::Silence => "visibility_timeout",
        }
    }

    /// The code of OSSA §2 that stands for the same thing.
    #[must_use]
    pub fn ossa_code(self) -> &'static str {
        match self {
            Self::Validation => "VALIDATION_ERROR",
            Self::OutputSchema => "SCHEMA_VIOLATION",
            Self::Tool | Self::ToolNotFound => "TOOL_ERROR",
            Self::ToolTimeout => "TOOL_TIMEOUT",
            Self::ModelUnavailable | Self::Model => "LLM_ERROR",
            Self::ModelTimeout => "LLM_TIMEOUT",
            Self::RateLimited => "RATE_LIMITED",
            Self::TokenBudget => "QUOTA_EXCEEDED",
            Self::MaxTurns => "MAX_TURNS_EXCEEDED",
            Self::Policy => "POLICY_VIOLATION",
            Self::DelegationDepth => "DELEGATION_FAILED",
            Self::Timeout | Self::Expired | Self::Internal | Self::Reported | Self::Silence => "STATE_ERROR",
        }
    }

    /// The `type` of the OJS error record, such as `agent.token_budget`.
    #[must_use]
    pub fn ojs_type(self) -> &'static str {
        match self {
            Self::Validation => "agent.validation",
            Self::OutputSchema => "agent.output_schema",
            Self::Tool => "agent.tool",
            Self::ToolNotFound => "agent.tool_not_found",
            Self::ToolTimeout => "agent.tool_timeout",
            Self::ModelUnavailable => "agent.model_unavailable",
            Self::Model => "agent.model",
            Self::ModelTimeout => "agent.model_timeout",
            Self::RateLimited => "agent.rate_limited",
            Self::TokenBudget => "agent.token_budget",
            Self::MaxTurns => "agent.max_turns",
            Self::Policy => "agent.policy",
            Self::DelegationDepth => "agent.delegation_depth",
            Self::Timeout => "timeout",
            Self::Expired => "expired",
            Self::Internal => "internal",
            Self::Reported => "reported",
            Self::Silence => "visibility_timeout",
        }
    }

    /// Whether another attempt can end differently. Budget errors are retryable as the agent extension §3 asks:
    /// later attempts spend nothing and go on only if somebody raised the budget.
    #[must_use]
    pub fn retryable(self) -> bool {
        !matches!(
            self,
            Self::Validation
                | Self::ToolNotFound
                | Self::MaxTurns
                | Self::Policy
                | Self::DelegationDepth
                | Self::Expired
        )
    }
}

/// Why an attempt failed, as stored on the job and shown to clients.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobError {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What happened, where, and what to do next, in one or two sentences; free of secrets.
    pub message: String,
    /// Whether this very failure may be tried again; usually [`FailureKind::retryable`].
    pub retryable: bool,
    /// What the other side asked us to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Facts for programs: ids, limits, rule names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Box<Map<String, Value>>,
    /// The words of the worker that reported it, when it was not one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Box<Reported>>,
}

impl JobError {
    /// An error of this kind with the kind's own answer to "may it be tried again?".
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retryable: kind.retryable(),
            retry_after_ms: None,
            details: Box::default(),
            reported: None,
        }
    }

    /// The code of the error on the wire.
    #[must_use]
    pub fn code(&self) -> &str {
        self.reported.as_ref().map_or(self.kind.code(), |reported| &reported.code)
    }

    /// The `type` of the OJS error record.
    #[must_use]
    pub fn error_type(&self) -> &str {
        self.reported.as_ref().map_or(self.kind.ojs_type(), |reported| &reported.error_type)
    }

    /// The names by which `non_retryable_errors` may mean it (OJS retry §5).
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let Some(reported) = &self.reported else {
            return vec![self.kind.ojs_type(), self.kind.code(), self.kind.ossa_code()];
        };
        let named = (!reported.guessed).then_some(reported.error_type.as_str());
        let class = self.details.get("error_class").and_then(Value::as_str);
        [Some(reported.code.as_str()), named, class].into_iter().flatten().collect()
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Adds what the other side asked us to wait.
    #[must_use]
    pub fn retry_after(mut self, ms: Option<u64>) -> Self {
        self.retry_after_ms = ms;
        self
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message)
    }
}

impl std::error::Error for JobError {}
