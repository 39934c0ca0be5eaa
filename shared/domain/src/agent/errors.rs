//! An agent's reaction to errors (OSSA §2): handlers, retries within the turn, circuit breakers and escalation.

use crate::error::{ErrorClass, FailureKind, Strategy};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The error rules of a document. The default has none, and OSSA's defaults apply.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorPolicy {
    /// Handlers in document order; the first that matches a code applies.
    pub handlers: Vec<ErrorHandler>,
    /// The retry rule for failed tool calls, for capabilities without one.
    pub retry: Option<RetryRule>,
    /// The retry rule for failed model calls within the turn; `None` leaves it to the job's retry policy.
    pub model_retry: Option<RetryRule>,
    /// The circuit breaker of tools that do not say.
    pub breaker: Breaker,
    /// The contact for errors that escalate when their handler names none.
    pub escalation: Option<Contact>,
}

/// The reaction to some errors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ErrorHandler {
    /// The codes that it handles; an empty list handles all.
    #[serde(default)]
    pub codes: Vec<ErrorClass>,
    /// The reaction.
    pub strategy: Strategy,
    /// The number of retries before that.
    #[serde(default)]
    pub max_retries: Option<u32>,
    /// The value that replaces the output.
    #[serde(default)]
    pub fallback_value: Option<Value>,
    /// The capability that is called instead.
    #[serde(default)]
    pub fallback_capability: Option<String>,
    /// The contact.
    #[serde(default)]
    pub escalation_target: Option<String>,
}

impl ErrorHandler {
    /// Returns a handler with this strategy and nothing else.
    #[must_use]
    pub fn of(strategy: Strategy) -> Self {
        Self {
            codes: Vec::new(),
            strategy,
            max_retries: None,
            fallback_value: None,
            fallback_capability: None,
            escalation_target: None,
        }
    }

    /// Returns true if the handler covers this code.
    #[must_use]
    pub fn is_about(&self, code: ErrorClass) -> bool {
        self.codes.is_empty() || self.codes.contains(&code)
    }
}

/// The growth of the delay between two tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pause {
    /// Always the first delay.
    Fixed,
    /// By the first delay each time.
    Linear,
    /// Twice as long each time.
    #[default]
    Exponential,
}

impl Pause {
    /// Reads the word of a document; `constant` is another word for fixed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "fixed" | "constant" => Some(Self::Fixed),
            "linear" => Some(Self::Linear),
            "exponential" => Some(Self::Exponential),
            _ => None,
        }
    }
}

/// The rule for retries within a turn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RetryRule {
    /// Tries beyond the first; `None` is the number that the error's code defines.
    pub retries: Option<u32>,
    /// The growth of the delay.
    pub pause: Pause,
    /// The first delay, in milliseconds.
    pub initial_delay_ms: u64,
    /// The longest delay, in milliseconds.
    pub max_delay_ms: u64,
    /// Only these codes are retried (OSSA's or ours); an empty list retries all that may be.
    pub only: Vec<String>,
}

impl Default for RetryRule {
    fn default() -> Self {
        Self {
            retries: None,
            pause: Pause::Exponential,
            initial_delay_ms: 1000,
            max_delay_ms: 30_000,
            only: Vec::new(),
        }
    }
}

impl RetryRule {
    /// Returns the delay before try number `retry` beyond the first (1-based), in milliseconds.
    #[must_use]
    pub fn delay_ms(&self, retry: u32) -> u64 {
        let first = self.initial_delay_ms;
        let delay = match self.pause {
            Pause::Fixed => first,
            Pause::Linear => first.saturating_mul(u64::from(retry)),
            Pause::Exponential => first.saturating_mul(2_u64.saturating_pow(retry.saturating_sub(1).min(62))),
        };
        delay.min(self.max_delay_ms)
    }

    /// Returns true if the rule retries an error with these codes.
    #[must_use]
    pub fn covers(&self, codes: &[&str]) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| codes.contains(&only.as_str()))
    }
}

/// The rule for stopping calls to a service that fails (OSSA §1.5, RS-26).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Breaker {
    /// True if failures are counted.
    pub enabled: bool,
    /// The failed calls that open it.
    pub failure_threshold: u32,
    /// The least share of failures among the last calls, in percent. With 100 they have to be consecutive.
    pub failure_share: u32,
    /// A job that fails repeatedly counts as one failure.
    pub once_per_job: bool,
    /// The time for which it refuses every call, in milliseconds.
    pub timeout_ms: u64,
    /// Trial calls that have to succeed after that to close it.
    pub half_open_requests: u32,
}

impl Default for Breaker {
    /// OSSA's, for tools.
    fn default() -> Self {
        Self {
            enabled: true,
            failure_threshold: 5,
            failure_share: 100,
            once_per_job: false,
            timeout_ms: 60_000,
            half_open_requests: 3,
        }
    }
}

impl Breaker {
    /// Returns the default for models. Many jobs share a model, and a few of them may fail by themselves.
    #[must_use]
    pub fn of_models() -> Self {
        Self {
            failure_threshold: 20,
            failure_share: 50,
            once_per_job: true,
            timeout_ms: 1_000,
            ..Self::default()
        }
    }

    /// Returns the number of last calls that are considered.
    #[must_use]
    pub fn window(&self) -> usize {
        let (threshold, share) = (self.failure_threshold.clamp(1, 1_000), self.failure_share.clamp(1, 100));
        (threshold * 100).div_ceil(share).min(10_000) as usize
    }
}

/// The error rules of one capability, which take precedence over the agent's.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CapabilityErrors {
    /// `retry_policy`.
    pub retry: Option<RetryRule>,
    /// `error_handling.on_error`, with its fallback.
    pub handler: Option<ErrorHandler>,
    /// `circuit_breaker` of the tool.
    pub breaker: Option<Breaker>,
    /// `idempotency.enabled`: a call may be made twice with the same key.
    #[serde(skip_serializing_if = "is_false")]
    pub idempotent: bool,
    /// `error_handling.error_mapping`: words in an error of the tool, and the code that the error then gets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<(String, ErrorClass)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl CapabilityErrors {
    /// Returns the kind that the document maps a tool's error to.
    #[must_use]
    pub fn mapped(&self, message: &str) -> Option<FailureKind> {
        let found = self.mapping.iter().find(|(words, _)| message.contains(words.as_str()));
        found.and_then(|(_, code)| FailureKind::of_mapped(*code))
    }
}

/// The contact of an escalation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Contact {
    /// Their name; empty is the operator, or the agent's caller for a supervisor.
    pub target: String,
    /// True if the contact is an agent (OSSA `type: supervisor`).
    #[serde(skip_serializing_if = "is_false")]
    pub supervisor: bool,
    /// The time to answer, in milliseconds; after it the escalation counts as rejected. `None` waits for ever.
    pub timeout_ms: Option<u64>,
}

/// The rules for a sequence of turns (OSSA §4).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnChain {
    /// True if a turn that called tools is followed by another.
    pub continue_on_tool_use: bool,
    /// True if the user confirms each turn but the first.
    pub confirm_between_turns: bool,
    /// The most tokens that the document itself allows an engagement (`constraints.max_tokens`).
    pub max_tokens: Option<i64>,
}

impl Default for TurnChain {
    fn default() -> Self {
        Self { continue_on_tool_use: true, confirm_between_turns: false, max_tokens: None }
    }
}

/// The rules that apply to a failed call of a capability.
#[derive(Clone, PartialEq, Debug)]
pub struct Remedy {
    /// How often it may be tried again in all.
    pub retries: u32,
    /// True if the document sets that number.
    pub is_set: bool,
    /// The delays between tries, and the errors that are retried.
    pub rule: RetryRule,
    /// The reaction when all tries are used up; `None` passes the failure to the model.
    pub handler: Option<ErrorHandler>,
}

impl ErrorPolicy {
    /// Returns the contact when this code escalates: the one of its handler, else the agent's.
    #[must_use]
    pub fn contact(&self, code: ErrorClass) -> Option<Contact> {
        let named = self.handler(code).and_then(|handler| handler.escalation_target.clone());
        let timeout_ms = self.escalation.as_ref().and_then(|contact| contact.timeout_ms);
        named
            .map(|target| Contact { target, timeout_ms, ..Contact::default() })
            .or_else(|| self.escalation.clone())
    }

    /// Returns the first handler for this code.
    #[must_use]
    pub fn handler(&self, code: ErrorClass) -> Option<&ErrorHandler> {
        self.handlers.iter().find(|handler| handler.is_about(code))
    }

    /// Returns the reaction to a failed call. The capability's rules take precedence over the agent's, and these over
    /// OSSA's defaults.
    #[must_use]
    pub fn remedy(&self, own: &CapabilityErrors, code: ErrorClass) -> Remedy {
        let rule = own.retry.clone().or_else(|| self.retry.clone()).unwrap_or_default();
        let handler = own
            .handler
            .clone()
            .filter(|handler| handler.is_about(code))
            .or_else(|| self.handler(code).cloned());
        let said = handler.as_ref().and_then(|handler| handler.max_retries).or(rule.retries);
        let retries = match handler.as_ref().map(|handler| handler.strategy) {
            None | Some(Strategy::Retry) => said.unwrap_or_else(|| code.retries()),
            // Another strategy applies at once, unless the document sets retries before it.
            Some(_) => said.unwrap_or(0),
        };
        let tried = matches!(code, ErrorClass::ToolError | ErrorClass::ToolTimeout | ErrorClass::RateLimited);
        let handler = handler.filter(|handler| handler.strategy != Strategy::Retry || has_more(handler));
        Remedy { retries: if tried { retries } else { 0 }, is_set: said.is_some(), rule, handler }
    }
}

/// Returns true if a handler that retries also names the reaction after that.
fn has_more(handler: &ErrorHandler) -> bool {
    handler.fallback_value.is_some() || handler.fallback_capability.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// RS-25, OSSA §2: 3 more tries for TOOL_ERROR, 2 for TOOL_TIMEOUT, none for arguments that do not fit.
    #[test]
    fn defaults_are_ossas() {
        let policy = ErrorPolicy::default();
        let retries = |code| policy.remedy(&CapabilityErrors::default(), code).retries;
        assert_eq!(
            (
                retries(ErrorClass::ToolError),
                retries(ErrorClass::ToolTimeout),
                retries(ErrorClass::SchemaViolation)
            ),
            (3, 2, 0)
        );
        let delays: Vec<u64> = (1..=7).map(|n| RetryRule::default().delay_ms(n)).collect();
        assert_eq!(delays, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        let linear = RetryRule { pause: Pause::Linear, ..RetryRule::default() };
        let fixed = RetryRule { pause: Pause::Fixed, ..RetryRule::default() };
        assert_eq!((linear.delay_ms(3), fixed.delay_ms(3)), (3000, 1000));
    }

    /// RS-50: a handler replaces the default, the capability's own takes precedence, and retries come only where they
    /// are set.
    #[test]
    fn the_nearest_handler_counts() {
        let skip = ErrorHandler { codes: vec![ErrorClass::ToolTimeout], ..ErrorHandler::of(Strategy::Skip) };
        let policy = ErrorPolicy { handlers: vec![skip], ..ErrorPolicy::default() };
        let none = CapabilityErrors::default();
        let remedy = policy.remedy(&none, ErrorClass::ToolTimeout);
        assert_eq!((remedy.retries, remedy.handler.map(|h| h.strategy)), (0, Some(Strategy::Skip)));
        assert_eq!(policy.remedy(&none, ErrorClass::ToolError).handler, None);
        let own = CapabilityErrors {
            retry: Some(RetryRule { retries: Some(1), ..RetryRule::default() }),
            handler: Some(ErrorHandler {
                fallback_value: Some(json!(7)),
                ..ErrorHandler::of(Strategy::Fallback)
            }),
            ..CapabilityErrors::default()
        };
        let remedy = policy.remedy(&own, ErrorClass::ToolTimeout);
        assert_eq!((remedy.retries, remedy.handler.unwrap().fallback_value), (1, Some(json!(7))));
    }

    #[test]
    fn a_rule_may_be_about_some_codes_only() {
        let rule = RetryRule { only: vec!["TOOL_TIMEOUT".into()], ..RetryRule::default() };
        assert!(rule.covers(&["AGENT_TOOL_TIMEOUT", "TOOL_TIMEOUT"]) && !rule.covers(&["TOOL_ERROR"]));
    }
}
