//! Retries within the turn when no model of the list answered (OSSA §2: LLM_ERROR, LLM_TIMEOUT,
//! RATE_LIMITED). Fallback models come first and are not counted.
//!
//! This rule is OSSA's: it applies to OSSA's agents, and to those whose document demands it. All others leave
//! retries to their job's policy, which holds no slot meanwhile.

use super::ask::{Answered, Prepared};
use super::overflow;
use crate::flow::run::FlowRun;
use crate::state::{Claimed, Outbox, Stop};
use std::time::Duration;
use turnstone_domain::JobError;
use turnstone_domain::agent::AgentFormat;
use turnstone_domain::error::{ErrorClass, Strategy};
use turnstone_domain::event::{EventBody, ModelRetry};

/// The longest delay within a turn that a document may demand, in milliseconds.
const LONGEST_WAIT_MS: u64 = 60_000;

/// The longest wait for a provider that demands a delay: beyond it the job releases its slot until then.
pub const LONGEST_HOLD: Duration = Duration::from_secs(15);

/// Calls the agent's models, and repeats that as its document demands.
///
/// # Errors
/// As [`super::run`].
pub async fn ask(
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
    prepared: &mut Prepared,
) -> Result<Answered, Stop> {
    let mut tries = 0;
    loop {
        let error = match overflow::ask(outbox, flow, prepared).await {
            Err(Stop::Fail(error)) => error,
            other => return other,
        };
        let Some(wait_ms) = wait(&outbox.claimed, &error, tries) else {
            let retryable = error.retryable && !is_last(&outbox.claimed, &error);
            return Err(JobError { retryable, ..error }.into());
        };
        let pause = Duration::from_millis(wait_ms);
        if outbox.claimed.agent.limits.model_timeout_ms.is_some() {
            let left = &mut prepared.request.timeout;
            if pause >= *left {
                return Err(error.into());
            }
            *left -= pause;
        }
        tries += 1;
        let retry = ModelRetry { failure: error.event_data(), retry: tries, delay_ms: wait_ms };
        outbox.event(&EventBody::ModelRetrying(retry));
        outbox.pause(pause).await?;
    }
}

/// Returns true if no further attempt of the job calls the model again: the policy of an Agent Spec document counts all
/// calls. A provider that demands a longer delay than the turn may wait is called again later.
fn is_last(claimed: &Claimed, error: &JobError) -> bool {
    let limits = claimed.agent.format == AgentFormat::AgentSpec && claimed.agent.errors.model_retry.is_some();
    limits && of_model(error) && !is_held(error)
}

fn of_model(error: &JobError) -> bool {
    matches!(error.kind.class(), ErrorClass::LlmError | ErrorClass::LlmTimeout | ErrorClass::RateLimited)
}

fn is_held(error: &JobError) -> bool {
    error.retry_after_ms.is_some_and(|ms| Duration::from_millis(ms) > LONGEST_HOLD)
}

/// Returns the delay before the models are called again, in milliseconds; `None` when they are not.
fn wait(claimed: &Claimed, error: &JobError, tries: u32) -> Option<u64> {
    let code = error.kind.class();
    if !error.retryable || !of_model(error) {
        return None;
    }
    let policy = &claimed.agent.errors;
    let handler = policy.handler(code);
    let retries = match handler.map(|handler| (handler.strategy, handler.max_retries)) {
        Some((Strategy::Retry, said)) => said.unwrap_or_else(|| code.retries()),
        Some((_, said)) => said.unwrap_or(0),
        None => match &policy.model_retry {
            Some(rule) => rule.retries.unwrap_or_else(|| code.retries()),
            None if claimed.agent.format == AgentFormat::Ossa => code.retries(),
            None => 0,
        },
    };
    let rule = policy.model_retry.clone().unwrap_or_default();
    let wait_ms = rule.delay_ms(tries + 1).max(error.retry_after_ms.unwrap_or(0));
    let worth_it =
        rule.covers(&[error.code(), code.as_str()]) && wait_ms <= LONGEST_WAIT_MS && !is_held(error);
    (tries < retries && worth_it).then_some(wait_ms)
}
