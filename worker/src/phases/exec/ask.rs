//! Calls of `ask_user`: the job parks until its user answers, and the answer is the call's outcome.
//!
//! The question passes the output guardrail first, because the model wrote it. The answers pass the input
//! guardrail before the model sees them (OAS-42, OAS-44).

use super::admission;
use super::remote_calls::text;
use super::tool_outcome::{Over, deliver};
use crate::phases::resol;
use crate::policy::{self, Act, Ruling, exposes};
use crate::state::journal::{self, Call, CallResult};
use crate::state::{Bodies, Claimed, Outbox, Stop, TurnHistory};
use turnstone_domain::Wait;
use turnstone_domain::agent::Capability;
use turnstone_domain::error::FailureKind;
use turnstone_domain::question::{AskedUser, Question};
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};

/// The outcome for a model whose questions may not be shown, because it works for a guarded agent. No
/// guardrail has checked them; the guardrail of that agent checks only that agent's own words (OAS-43).
const NO_USER_TO_ASK: &str = "there is nobody to ask: the agent that you work for has its words checked before its user sees them, and \
                      yours are not. Go on without an answer, or say what you have to know in what you answer";

/// Returns true if a call asks the user.
pub fn is_one(claimed: &Claimed, bodies: &Bodies, name: &str) -> bool {
    resol::callable(claimed, bodies, name).is_some_and(|callable| callable.tool.asks_user())
}

/// Asks the user, or passes the answer to the model.
///
/// # Errors
/// [`Stop::Park`] until there is an answer, [`Stop::Fail`] when a guardrail does not pass or a reviewer
/// rejected.
pub async fn run(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    mut call: Call,
) -> Result<(), Stop> {
    let row = past.row(&call.asked.call_id).filter(|row| row.outcome.is_some()).cloned();
    let over = match row {
        Some(row) => answered(past, bodies, outbox, &call, row).await?,
        None => {
            admission::watch_repetition(&outbox.claimed, past, &call)?;
            let requested = &mut call.asked;
            let allowed = match outbox.screen_question(&requested.name, &mut requested.arguments) {
                Ok(()) => allowable(past, bodies, outbox, &call).await?,
                Err(blocked) => Err(ToolOutcome::failed(blocked.kind, blocked.message)),
            };
            match allowed {
                Ok(question) => return Err(ask(past, outbox, call, question).await),
                Err(refusal) => Over::refused(outbox, &mut call, refusal, true),
            }
        }
    };
    deliver(past, bodies, outbox, &call, over).await?;
    outbox.barrier().await
}

/// Parks the job with the question, if its guardrail passes.
async fn ask(past: &TurnHistory, outbox: &mut Outbox, mut call: Call, question: Question) -> Stop {
    if let Err(stop) = policy::may(past, outbox, Act::Question(call.position, &question.whole_text())).await {
        return stop;
    }
    if call.journalled.is_none() {
        journal::called(outbox, &call);
    }
    journal::plan(outbox, &mut call, true);
    let exposes = exposes::now(&outbox.claimed, past);
    Wait::Input(AskedUser { call_id: call.asked.call_id, question, exposes }).into()
}

/// Returns the question to ask, or the refusal of the call.
async fn allowable(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    call: &Call,
) -> Result<Result<Question, ToolOutcome>, Stop> {
    let capability = match admission::callable(bodies, outbox, call) {
        Ok(callable) => callable.capability,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if outbox.claimed.agent.guardrails.for_guarded {
        return Ok(Err(ToolOutcome::refused(FailureKind::Policy, NO_USER_TO_ASK)));
    }
    let act = Act::Call { call, capability: &capability, idempotent: true };
    if let Ruling::Deny(refusal) = policy::may(past, outbox, act).await? {
        return Ok(Err(refusal));
    }
    let wrong = |why: String| ToolOutcome::refused(FailureKind::ToolInput, why);
    Ok(Question::read(&call.asked.arguments).map_err(wrong))
}

/// Checks the answer, and journals it like any outcome.
async fn answered(
    past: &TurnHistory,
    bodies: &Bodies,
    outbox: &mut Outbox,
    call: &Call,
    row: ToolCall,
) -> Result<Over, Stop> {
    let (name, duration_ms) = (&call.asked.name, row.duration_ms.unwrap_or_default());
    let Some(ToolOutcome::Success { output }) = row.outcome.clone().filter(|_| !row.withheld) else {
        return Ok(Over::recalled(row));
    };
    let said: Vec<String> =
        output.as_object().into_iter().flat_map(|fields| fields.values()).map(text).collect();
    policy::may(past, outbox, Act::Reply(call.position, &said)).await?;
    let outcome = outbox.screen_outcome(name, ToolOutcome::Success { output });
    let capability = resol::capability(&outbox.claimed, bodies, name);
    let capability = capability.unwrap_or_else(|| Capability::named(name.clone()));
    Over::made(past, outbox, call, &capability, CallResult { outcome, handled: None, duration_ms }).await
}
