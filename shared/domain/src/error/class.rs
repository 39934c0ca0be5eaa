//! The sixteen classes of errors, to which a document's rules refer, and the runtime's default reaction to each.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The reaction to an error (OSSA §2 `recovery strategies`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Try the same again, after a delay.
    Retry,
    /// Use something else instead: a value, another tool, another model.
    Fallback,
    /// Continue without it.
    Skip,
    /// A contact decides or is notified.
    Escalate,
    /// End the job.
    Abort,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 5] = [Self::Retry, Self::Fallback, Self::Skip, Self::Escalate, Self::Abort];

    /// Returns the word of the specification.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Fallback => "fallback",
            Self::Skip => "skip",
            Self::Escalate => "escalate",
            Self::Abort => "abort",
        }
    }

    /// Reads [`Strategy::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.as_str() == text)
    }
}

macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $strategy:ident, $retries:literal;)+) => {
        /// A class of errors (OSSA §2 `error codes`).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        pub enum ErrorClass {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl ErrorClass {
            /// All classes.
            pub const ALL: [Self; 16] = [$(Self::$variant),+];

            /// Returns the word that is stored and shown.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Returns the reaction unless the agent sets another.
            #[must_use]
            pub fn strategy(self) -> Strategy {
                match self { $(Self::$variant => Strategy::$strategy),+ }
            }

            /// Returns the number of retries within the turn, beyond the first try.
            #[must_use]
            pub fn retries(self) -> u32 {
                match self { $(Self::$variant => $retries),+ }
            }
        }
    };
}

// Where the specification names no strategy, the column holds Turnstone's decision.
classes! {
    /// The input is wrong.
    ValidationError = "VALIDATION_ERROR", Abort, 0;
    /// A value does not match its schema. The model receives the error and may correct it.
    SchemaViolation = "SCHEMA_VIOLATION", Retry, 1;
    /// Content that may not pass.
    ContentFiltered = "CONTENT_FILTERED", Abort, 0;
    /// A rule of the agent forbids it.
    PolicyViolation = "POLICY_VIOLATION", Abort, 0;
    /// A tool failed.
    ToolError = "TOOL_ERROR", Retry, 3;
    /// A tool took too long.
    ToolTimeout = "TOOL_TIMEOUT", Retry, 2;
    /// A model failed.
    LlmError = "LLM_ERROR", Retry, 3;
    /// A model took too long.
    LlmTimeout = "LLM_TIMEOUT", Retry, 2;
    /// The state of the session could not be read or written.
    StateError = "STATE_ERROR", Abort, 0;
    /// The other side requested fewer calls.
    RateLimited = "RATE_LIMITED", Retry, 3;
    /// A budget or quota is used up.
    QuotaExceeded = "QUOTA_EXCEEDED", Abort, 0;
    /// The circuit breaker of a tool or model that failed too often lately is open.
    CircuitOpen = "CIRCUIT_OPEN", Fallback, 0;
    /// The agent wants more turns than it may have.
    MaxTurnsExceeded = "MAX_TURNS_EXCEEDED", Escalate, 0;
    /// The agent wants more tokens than it may have.
    MaxTokensExceeded = "MAX_TOKENS_EXCEEDED", Escalate, 0;
    /// A delegated agent failed.
    DelegationFailed = "DELEGATION_FAILED", Escalate, 0;
    /// A person has to decide.
    EscalationRequired = "ESCALATION_REQUIRED", Escalate, 0;
}

impl ErrorClass {
    /// Reads [`ErrorClass::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

/// The contact for an error (OSSA §2 `escalation`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Escalation {
    /// The kind of contact.
    #[serde(rename = "type")]
    pub to: EscalationType,
    /// Their name, as the agent's document gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The message for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
}

/// The kind of contact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EscalationType {
    /// A person, who decides.
    #[default]
    Human,
    /// Another agent, which decides.
    Supervisor,
    /// No one decides; the operators are notified.
    Alert,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OSSA §2: sixteen codes; the strategies and retries that the specification gives are these.
    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let given = [
            ("VALIDATION_ERROR", "abort", 0),
            ("TOOL_ERROR", "retry", 3),
            ("TOOL_TIMEOUT", "retry", 2),
            ("LLM_ERROR", "retry", 3),
            ("LLM_TIMEOUT", "retry", 2),
            ("RATE_LIMITED", "retry", 3),
            ("CIRCUIT_OPEN", "fallback", 0),
            ("MAX_TURNS_EXCEEDED", "escalate", 0),
        ];
        for (name, strategy, retries) in given {
            let code = ErrorClass::parse(name).unwrap();
            assert_eq!((code.strategy().as_str(), code.retries()), (strategy, retries), "{name}");
        }
        assert_eq!(ErrorClass::ALL.len(), 16);
        assert!(ErrorClass::ALL.into_iter().all(|code| ErrorClass::parse(code.as_str()) == Some(code)));
        assert!(Strategy::ALL.into_iter().all(|word| Strategy::parse(word.as_str()) == Some(word)));
    }
}
