//! The consequence of an error for the job, after every reaction within the turn.

use super::exceeded;
use crate::policy::escalation::{self, Topic};
use crate::state::{Outbox, Stop, TurnHistory};
use serde_json::json;
use turnstone_domain::budget;
use turnstone_domain::error::{Escalation, EscalationType, FailureKind, Strategy};
use turnstone_domain::event::EventBody;
use turnstone_domain::ids::fraction;
use turnstone_domain::retry::Decision;
use turnstone_domain::{CallId, JobError, Settlement};

/// Returns the settlement of an error that may be shown: by the agent's handlers (OSSA §2, RS-50), else by
/// the job's retry policy.
pub fn settlement(past: &mut TurnHistory, outbox: &mut Outbox, error: JobError) -> Settlement {
    let error = of_own_limit(outbox, error);
    if outbox.next_phase().is_none() && error.kind != FailureKind::MaxTurns {
        // A complete turn would fail again in the same way: the next attempt asks the model anew.
        outbox.pending.position = Some(outbox.position.following());
    }
    if error.details.contains_key("needed") {
        let data = exceeded::event_data(outbox, &error);
        outbox.event(&EventBody::BudgetExceeded(data));
    }
    if let Some(settlement) = exceeded::settlement(past, outbox, &error) {
        return settlement;
    }
    match handled(past, outbox, error) {
        Ok(settlement) => settlement,
        Err(error) => by_policy(past, outbox, error),
    }
}

/// Returns the settlement by the job's retry policy.
fn by_policy(past: &mut TurnHistory, outbox: &mut Outbox, error: JobError) -> Settlement {
    let error = if outbox.claimed.job.retry.stated { error.of_the_work() } else { error };
    let job = &outbox.claimed.job;
    let number = job.retry.number(job.failures, outbox.position.outages, &error);
    let decision = job.retry.decide(number, &error, fraction(&outbox.lease.token));
    if error.is_of_an_outage() {
        let position = outbox.next_position();
        position.outages = position.outages.saturating_add(1);
    }
    past.roll_back_state(outbox, &error, matches!(decision, Decision::Exhausted));
    match decision {
        Decision::Exhausted => Settlement::Discard { error },
        Decision::After { delay_ms } => {
            let now = outbox.claimed.deps.clock.now();
            let run_at = exceeded::not_before(&error, now.plus_ms(delay_ms));
            Settlement::Retry { error, run_at, delay_ms: run_at.since(now) }
        }
    }
}

/// Returns OSSA's token-limit error if the budget is the one in the agent's own document, alone or within a
/// tree. Such a limit is no quota. A job that states the same number as its budget has that budget exceeded.
fn of_own_limit(outbox: &Outbox, error: JobError) -> JobError {
    let own =
        outbox.claimed.agent.chain.max_tokens.filter(|own| outbox.claimed.job.token_budget != Some(*own));
    // By default the engagement's tokens are short; `unit` names another measure.
    let of_tree = !error.details.contains_key("unit") && own == outbox.budget.limit;
    let mine = budget::name_of_delegate(&outbox.claimed.engagement.id);
    let said = |key: &str| error.details.get(key);
    let of_delegate = said("budget").is_some_and(|name| *name == mine.as_str())
        && said("unit").is_some_and(|unit| *unit == "tokens")
        && said("limit").and_then(serde_json::Value::as_i64) == own;
    if error.kind != FailureKind::TokenBudget || own.is_none() || !(of_tree || of_delegate) {
        return error;
    }
    let kind = FailureKind::MaxTokens;
    JobError { kind, retryable: kind.retryable(), ..error }
}

/// Returns the settlement by the agent's handlers, or by OSSA's default strategies. It returns the error when
/// they leave it to the job's retry policy.
fn handled(past: &mut TurnHistory, outbox: &mut Outbox, error: JobError) -> Result<Settlement, JobError> {
    // A person has already decided about it.
    if error.escalation.is_some() || !error.kind.is_agents() {
        return Err(error);
    }
    let code = error.kind.class();
    let handler = outbox.claimed.agent.errors.handler(code).cloned();
    let default = match error.kind {
        // No approval can permit a deeper chain, or a larger tree.
        FailureKind::DelegationDepth | FailureKind::TreeJobs => Strategy::Abort,
        _ => code.strategy(),
    };
    match handler.as_ref().map_or(default, |handler| handler.strategy) {
        Strategy::Escalate => Ok(escalate(past, outbox, error)),
        Strategy::Abort if handler.is_some() => {
            past.roll_back_state(outbox, &error, true);
            Ok(Settlement::Discard { error: error.for_good() })
        }
        Strategy::Fallback => match handler.and_then(|handler| handler.fallback_value) {
            Some(value) => {
                past.roll_back_state(outbox, &error, true);
                outbox.event(&EventBody::ErrorReplaced(error.event_data()));
                Ok(outbox.claimed.complete(&value))
            }
            None => Err(error),
        },
        Strategy::Retry | Strategy::Skip | Strategy::Abort => Err(error),
    }
}

/// Asks the contact in the agent's document. Without a contact, operators find the job among the dead letters
/// (D2). A repeated violation is not escalated again after an approval of one more try, because it would
/// happen every time.
fn escalate(past: &mut TurnHistory, outbox: &mut Outbox, error: JobError) -> Settlement {
    if error.kind == FailureKind::Policy && escalation::is_granted(past, error.kind) {
        past.roll_back_state(outbox, &error, true);
        let message = format!("{}; it happened again after an approval", error.message);
        return Settlement::Discard { error: JobError { message, retryable: false, ..error } };
    }
    let Some(contact) = outbox.claimed.agent.errors.contact(error.kind.class()) else {
        let alert = Escalation { to: EscalationType::Alert, target: None, context: None };
        past.roll_back_state(outbox, &error, true);
        let error = error.for_good().escalated(alert);
        outbox.event(&EventBody::ErrorEscalated(error.event_data()));
        return Settlement::Discard { error };
    };
    let to = if contact.supervisor { EscalationType::Supervisor } else { EscalationType::Human };
    let requested = Escalation { to, target: Some(contact.target.clone()), context: None };
    let reported = error.clone().escalated(requested).event_data();
    let approve = match error.kind {
        FailureKind::MaxTurns => "as many turns again",
        _ => "try once more",
    };
    let question =
        json!({"error": reported, "approve_means": approve, "reject_means": "end the job with the error"});
    outbox.event(&EventBody::ErrorEscalated(reported));
    let topic = Topic::error(error.kind, CallId(String::new()));
    match escalation::ask(past, outbox, topic, question, &contact) {
        Stop::Park(wait) => Settlement::Park { wait: *wait },
        _ => Settlement::Discard { error: error.for_good() },
    }
}
