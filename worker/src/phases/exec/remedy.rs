//! Decides about a failed call: by the rules of the capability, then of the agent, then OSSA's (OSSA §2,
//! RS-25, RS-50).

use turnstone_domain::agent::errors::{CapabilityErrors, ErrorPolicy};
use turnstone_domain::error::Strategy;
use turnstone_domain::tool_call::{Handled, ToolOutcome};

/// The most further tries of a call whose error informs the model, unless the document sets a number.
const RETRIES_OF_INFORMED: u32 = 1;

/// The longest wait within a turn for a tool that demands a delay, in milliseconds.
const LONGEST_WAIT_MS: u64 = 60_000;

/// The reaction to a failed call.
#[derive(Debug, PartialEq)]
pub enum Remedy {
    /// The same call again after this many milliseconds.
    Again(u64),
    /// Another capability of the agent.
    Instead(String),
    /// The end of the call with this outcome.
    End(ToolOutcome, Option<Handled>),
}

/// The state of a call that has failed.
#[derive(Clone, Copy, Debug)]
pub struct FailedCall {
    /// Earlier failed tries of this tool.
    pub tries: u32,
    /// True if the call may run once more: it is idempotent, it had no effect, or the manifest has a
    /// `retry_policy` for it.
    pub repeatable: bool,
    /// True if another capability has replaced the requested one already.
    pub replaced: bool,
    /// True if the error is information that the model can use at once: the tool itself reported it, or no connection
    /// could be made.
    pub informs: bool,
}

/// Returns the reaction to an outcome. A success ends the call unchanged.
pub fn remedy(
    policy: &ErrorPolicy,
    own: &CapabilityErrors,
    outcome: ToolOutcome,
    standing: FailedCall,
) -> Remedy {
    let Some(error) = outcome.as_error() else { return Remedy::End(outcome, None) };
    let code = error.kind.class();
    let found = policy.remedy(own, code);
    let wait_ms = found.rule.delay_ms(standing.tries + 1).max(error.retry_after_ms.unwrap_or(0));
    let retries = match standing.informs && !found.is_set {
        true => found.retries.min(RETRIES_OF_INFORMED),
        false => found.retries,
    };
    if standing.repeatable
        && outcome.was_invoked()
        && error.retryable
        && standing.tries < retries
        && wait_ms <= LONGEST_WAIT_MS
        && found.rule.covers(&[error.code(), code.as_str()])
    {
        return Remedy::Again(wait_ms);
    }
    let Some(handler) = found.handler else { return Remedy::End(outcome, None) };
    let ToolOutcome::Error { code, message, .. } = &outcome else { return Remedy::End(outcome, None) };
    let handled = |strategy| Some(Handled { strategy, code: code.clone(), message: message.clone() });
    match handler.strategy {
        Strategy::Retry | Strategy::Fallback => match (handler.fallback_capability, handler.fallback_value) {
            (Some(capability), _) if !standing.replaced => Remedy::Instead(capability),
            (_, Some(value)) => {
                Remedy::End(ToolOutcome::Success { output: value }, handled(Strategy::Fallback))
            }
            _ => Remedy::End(outcome, None),
        },
        strategy => {
            let handled = handled(strategy);
            Remedy::End(outcome, handled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::agent::errors::{ErrorHandler, RetryRule};
    use turnstone_domain::error::FailureKind;

    const FIRST: FailedCall = FailedCall { tries: 0, repeatable: true, replaced: false, informs: false };

    fn broke() -> ToolOutcome {
        ToolOutcome::failed(FailureKind::Tool, "it broke")
    }

    fn after(tries: u32) -> FailedCall {
        FailedCall { tries, ..FIRST }
    }

    /// RS-25: three more tries with growing delays, and then the model receives the failure.
    #[test]
    fn a_failed_call_is_tried_three_more_times() {
        let decide =
            |standing| remedy(&ErrorPolicy::default(), &CapabilityErrors::default(), broke(), standing);
        assert_eq!(decide(after(0)), Remedy::Again(1000));
        assert_eq!(decide(after(2)), Remedy::Again(4000));
        assert_eq!(decide(after(3)), Remedy::End(broke(), None));
    }

    /// The model receives an error that informs it after one more try; a number in the document replaces that.
    #[test]
    fn an_error_that_informs_the_model_is_repeated_once() {
        let informed = |tries| FailedCall { informs: true, ..after(tries) };
        let decide =
            |own: &CapabilityErrors, standing| remedy(&ErrorPolicy::default(), own, broke(), standing);
        let none = CapabilityErrors::default();
        assert_eq!(decide(&none, informed(0)), Remedy::Again(1000));
        assert_eq!(decide(&none, informed(1)), Remedy::End(broke(), None));
        for (set, last) in [(Some(0), 0), (Some(2), 2), (None, 1)] {
            let rule = RetryRule { retries: set, initial_delay_ms: 7, ..RetryRule::default() };
            let own = CapabilityErrors { retry: Some(rule), ..CapabilityErrors::default() };
            assert_eq!(decide(&own, informed(last)), Remedy::End(broke(), None), "{set:?}");
            assert!(last == 0 || matches!(decide(&own, informed(last - 1)), Remedy::Again(_)), "{set:?}");
        }
    }

    /// RS-21, RS-25: a call that never ran, cannot succeed, or may have had its effect is not repeated.
    #[test]
    fn nothing_is_repeated_that_must_not_be() {
        let decide = |outcome: ToolOutcome, standing| {
            let expected = Remedy::End(outcome.clone(), None);
            let found = remedy(&ErrorPolicy::default(), &CapabilityErrors::default(), outcome, standing);
            assert_eq!(found, expected);
        };
        decide(broke(), FailedCall { repeatable: false, ..FIRST });
        decide(ToolOutcome::refused(FailureKind::ToolInput, "no"), FIRST);
        decide(ToolOutcome::refused(FailureKind::Tool, "a secret is missing"), FIRST);
        decide(broke().again_is_useless(), FIRST);
        decide(broke().retry_after(Some(3_600_000)), FIRST);
    }

    /// RS-50: a value, another capability, or nothing replaces the missing output.
    #[test]
    fn a_handler_says_what_comes_after_the_tries() {
        let rule = RetryRule { retries: Some(1), initial_delay_ms: 7, ..RetryRule::default() };
        let with = |handler: ErrorHandler, standing| {
            let own = CapabilityErrors {
                retry: Some(rule.clone()),
                handler: Some(handler),
                ..CapabilityErrors::default()
            };
            remedy(&ErrorPolicy::default(), &own, broke(), standing)
        };
        let value =
            ErrorHandler { fallback_value: Some(json!("none")), ..ErrorHandler::of(Strategy::Fallback) };
        let tool = ErrorHandler {
            fallback_capability: Some("other".into()),
            ..ErrorHandler::of(Strategy::Fallback)
        };
        assert_eq!(with(value.clone(), after(0)), Remedy::Again(7));
        assert!(
            matches!(with(value, after(1)), Remedy::End(ToolOutcome::Success { .. }, Some(handled)) if handled.strategy == Strategy::Fallback)
        );
        assert_eq!(with(tool.clone(), after(1)), Remedy::Instead("other".into()));
        assert_eq!(with(tool, FailedCall { replaced: true, ..after(1) }), Remedy::End(broke(), None));
        assert!(matches!(
            with(ErrorHandler::of(Strategy::Skip), after(1)),
            Remedy::End(ToolOutcome::Error { .. }, Some(_))
        ));
    }
}
