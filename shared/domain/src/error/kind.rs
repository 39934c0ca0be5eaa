//! The kinds of failure, each with its code on the wire, its class, OJS's type, and the retry decision.

use super::class::{ErrorClass, Strategy};
use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $class:ident, $ojs:literal, $again:literal;)+) => {
        /// The kind of a failure. Each kind has one stable code on the wire, and one answer to "may it be tried
        /// again?".
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FailureKind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl FailureKind {
            /// All kinds, for the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the stable code of the error on the wire.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// Returns the class of the failure.
            #[must_use]
            pub fn class(self) -> ErrorClass {
                match self { $(Self::$variant => ErrorClass::$class),+ }
            }

            /// Returns the `type` of the OJS error record, such as `agent.token_budget`.
            #[must_use]
            pub fn ojs_type(self) -> &'static str {
                match self { $(Self::$variant => $ojs),+ }
            }

            /// Returns true if another attempt of the job can end differently. Budget errors are retryable, as the
            /// agent extension §3 requires: later attempts spend nothing, and continue only after the budget was
            /// raised.
            #[must_use]
            pub fn retryable(self) -> bool {
                match self { $(Self::$variant => $again),+ }
            }
        }
    };
}

kinds! {
    /// The job's fields or arguments are wrong.
    Validation = "AGENT_INVALID_PARAMETER", ValidationError, "agent.validation", false;
    /// The final output does not match the demanded schema or format.
    OutputSchema = "AGENT_OUTPUT_SCHEMA_VIOLATION", SchemaViolation, "agent.output_schema", true;
    /// The model's final answer has no text, also when it was asked again.
    EmptyAnswer = "AGENT_EMPTY_ANSWER", LlmError, "agent.empty_answer", true;
    /// The arguments of a tool call do not match the tool's schema: it was not called.
    ToolInput = "SCHEMA_VIOLATION", SchemaViolation, "agent.tool_input", false;
    /// Content that may not pass, on its way in or out.
    ContentFiltered = "OSSA_CONTENT_FILTERED", ContentFiltered, "agent.content_filtered", false;
    /// A restriction, a guardrail, the short circuit or a reviewer refused.
    Policy = "OSSA_POLICY_VIOLATION", PolicyViolation, "agent.policy", false;
    /// A tool failed and the turn could not continue.
    Tool = "AGENT_TOOL_EXECUTION_FAILED", ToolError, "agent.tool", true;
    /// A tool that is not declared was named.
    ToolNotFound = "AGENT_TOOL_NOT_FOUND", ToolError, "agent.tool_not_found", false;
    /// A tool took too long and the turn could not continue.
    ToolTimeout = "AGENT_TOOL_TIMEOUT", ToolTimeout, "agent.tool_timeout", true;
    /// No model of the list could be reached.
    ModelUnavailable = "AGENT_MODEL_UNAVAILABLE", LlmError, "agent.model_unavailable", true;
    /// The prompt is longer than the model's context, and nothing of it can be shortened.
    ContextOverflow = "AGENT_CONTEXT_OVERFLOW", LlmError, "agent.context_overflow", false;
    /// The provider refused the request, or its answer could not be read.
    Model = "OSSA_LLM_ERROR", LlmError, "agent.model", true;
    /// The model took too long.
    ModelTimeout = "OSSA_LLM_TIMEOUT", LlmTimeout, "agent.model_timeout", true;
    /// The engagement's own state could not be read or written; the turn's changes of it are rolled back.
    State = "BACKEND_ERROR", StateError, "agent.state", true;
    /// The provider, or a limit that the job names, requires a pause.
    RateLimited = "RATE_LIMITED", RateLimited, "agent.rate_limited", true;
    /// The token budget is used up.
    TokenBudget = "AGENT_TOKEN_BUDGET_EXCEEDED", QuotaExceeded, "agent.token_budget", true;
    /// Another budget or quota than the job's tokens is used up.
    Quota = "OSSA_QUOTA_EXCEEDED", QuotaExceeded, "agent.quota", true;
    /// A circuit breaker is open: the tool or model has failed too often lately and is not called for a while.
    CircuitOpen = "OSSA_CIRCUIT_OPEN", CircuitOpen, "agent.circuit_open", true;
    /// Too many turns.
    MaxTurns = "OSSA_MAX_TURNS_EXCEEDED", MaxTurnsExceeded, "agent.max_turns", false;
    /// More tokens than the agent's own document allows an engagement.
    MaxTokens = "OSSA_MAX_TOKENS_EXCEEDED", MaxTokensExceeded, "agent.max_tokens", false;
    /// The delegation chain is too deep.
    DelegationDepth = "AGENT_MAX_DELEGATION_DEPTH", DelegationFailed, "agent.delegation_depth", false;
    /// The tree of the engagement has as many jobs as it may have.
    TreeJobs = "AGENT_MAX_TREE_JOBS", DelegationFailed, "agent.tree_jobs", false;
    /// The turn has called as many agents as it may call.
    Children = "AGENT_MAX_CHILDREN", DelegationFailed, "agent.children", false;
    /// A delegated agent failed, and the turn could not continue without it.
    Delegation = "OSSA_DELEGATION_FAILED", DelegationFailed, "agent.delegation", false;
    /// The agent may not continue without a person's decision, and no reviewer can be asked.
    Escalation = "OSSA_ESCALATION_REQUIRED", EscalationRequired, "agent.escalation", false;
    /// The job took longer than its `timeout_ms`.
    Timeout = "TIMEOUT", StateError, "timeout", true;
    /// The job's `expires_at` passed before it ended.
    Expired = "EXPIRED", StateError, "expired", false;
    /// Turnstone itself failed (a panic, a checkpoint it cannot read).
    Internal = "INTERNAL", StateError, "internal", true;
    /// The stored job is damaged: no version could continue it.
    Unreadable = "JOB_UNREADABLE", StateError, "job.unreadable", false;
    /// A worker over HTTP reported it in words of its own (see [`Reported`](crate::reported::Reported)).
    Reported = "REPORTED", StateError, "reported", true;
    /// The lease of a plain job ran out before its worker reported (OJS worker protocol §6).
    Silence = "visibility_timeout", StateError, "visibility_timeout", true;
}

impl AsRef<str> for FailureKind {
    fn as_ref(&self) -> &str {
        self.code()
    }
}

impl FailureKind {
    /// Reads [`FailureKind::code`].
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code)
    }

    /// Returns the kind of a tool's error that a document maps to this class; `None` for classes that no tool's error can
    /// have.
    #[must_use]
    pub fn of_mapped(class: ErrorClass) -> Option<Self> {
        Some(match class {
            ErrorClass::ToolError => Self::Tool,
            ErrorClass::ToolTimeout => Self::ToolTimeout,
            ErrorClass::RateLimited => Self::RateLimited,
            ErrorClass::QuotaExceeded => Self::Quota,
            ErrorClass::PolicyViolation => Self::Policy,
            ErrorClass::ContentFiltered => Self::ContentFiltered,
            ErrorClass::ValidationError => Self::Validation,
            _ => return None,
        })
    }

    /// Returns the code for spans and metrics: the class of an agent's failure, else its own code.
    #[must_use]
    pub fn observed_code(self) -> &'static str {
        if self.is_agents() { self.class().as_str() } else { self.code() }
    }

    /// Returns true if anything but a change of the request can still make it succeed: another attempt, or a person
    /// (OSSA §2 `recoverable`).
    #[must_use]
    pub fn recoverable(self) -> bool {
        self.retryable() || self.class().strategy() == Strategy::Escalate
    }

    /// Returns true if it counts against the retry policy. A call that a circuit breaker did not let out has not
    /// failed, so an outage delays jobs and loses none.
    #[must_use]
    pub fn costs_a_retry(self) -> bool {
        self != Self::CircuitOpen
    }

    /// Returns true if it concerns an agent's work, and not the life of any job.
    #[must_use]
    pub fn is_agents(self) -> bool {
        self.ojs_type().starts_with("agent.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// OSSA §2, agent extension §3, OJS core §7: one code and one type per kind, and every class has a kind.
    #[test]
    fn every_kind_has_a_code_of_its_own_and_every_class_a_kind() {
        let codes: HashSet<&str> = FailureKind::ALL.iter().map(|kind| kind.code()).collect();
        let types: HashSet<&str> = FailureKind::ALL.iter().map(|kind| kind.ojs_type()).collect();
        assert_eq!((codes.len(), types.len()), (FailureKind::ALL.len(), FailureKind::ALL.len()));
        for class in ErrorClass::ALL {
            assert!(FailureKind::ALL.iter().any(|kind| kind.class() == class), "{}", class.as_str());
        }
        assert!(FailureKind::ALL.iter().all(|kind| FailureKind::of_code(kind.code()) == Some(*kind)));
    }

    #[test]
    fn what_a_person_may_decide_is_recoverable_although_no_attempt_is() {
        assert!(FailureKind::MaxTurns.recoverable() && !FailureKind::MaxTurns.retryable());
        assert!(!FailureKind::Policy.recoverable() && FailureKind::TokenBudget.recoverable());
    }
}
