//! Approvals of several calls of one answer: their reviews are opened at once, and a person can answer all of them.
//!
//! Calls run one after the other, and the job parks at the first one that needs an approval. The reviews of the calls
//! behind it are opened in the same write. Once all have an answer, the calls continue in their order. An assertion that
//! does not hold yet opens no review ahead: it is evaluated again when the call is due.

use super::{admission, ask, delegate, node, state_call};
use crate::flow::run::Crew;
use crate::policy::{self, Act};
use crate::state::journal::Call;
use crate::state::{Bodies, Outbox, Stop, TurnHistory};
use turnstone_domain::Wait;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::review::{NewReview, ReviewKind};
use turnstone_domain::tool_call::ToolCallState;

/// Returns the new reviews for which a job parks.
///
/// # Errors
/// The stop, if it is another one.
pub fn awaited(stop: Stop) -> Result<Vec<NewReview>, Stop> {
    let wait = match stop {
        Stop::Park(wait) => *wait,
        other => return Err(other),
    };
    match wait {
        Wait::Review(review) if is_of_call(&review) => Ok(vec![review]),
        Wait::Reviews(reviews) => Ok(reviews),
        other => Err(other.into()),
    }
}

fn is_of_call(review: &NewReview) -> bool {
    matches!(review.kind, ReviewKind::Input | ReviewKind::Output | ReviewKind::UnknownOutcome)
}

/// Returns the stop that parks for these reviews.
pub fn park(reviews: Vec<NewReview>) -> Stop {
    Wait::Reviews(reviews).into()
}

/// Adds the reviews of the calls that follow to a stop that parks for a review.
pub async fn ask_ahead(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    (stop, crew): (Stop, Option<&Crew>),
    following: &[(usize, RequestedCall)],
) -> Stop {
    let mut reviews = match awaited(stop) {
        Ok(reviews) => reviews,
        Err(other) => return other,
    };
    // A fork reuses outcomes on record, which need no approval. `short_circuit` judges each call when it is due.
    let is_alone = past.fork.is_some() || past.short_circuit.is_some();
    let following = if is_alone { &[] } else { following };
    for (position, asked) in following {
        let call = past.call(*position, asked.clone());
        let is_tool = node::client_tool(crew, &asked.name).is_none()
            && !state_call::is_one(&outbox.claimed.agent, &asked.name)
            && !ask::is_one(&outbox.claimed, bodies, &asked.name);
        if is_tool && let Some(stop) = stop_of(past, bodies, outbox, &call).await {
            reviews.extend(awaited(stop).unwrap_or_default());
        }
    }
    park(reviews)
}

/// Returns the stop with which a call that is not due yet would begin.
async fn stop_of(past: &TurnHistory, bodies: &mut Bodies, outbox: &mut Outbox, call: &Call) -> Option<Stop> {
    let row = past.row(&call.asked.call_id).cloned();
    if row.as_ref().is_some_and(|row| row.outcome.is_some() || row.provider.is_some()) {
        return None;
    }
    let sent = row.filter(|row| row.state == ToolCallState::Sent);
    let ruled = match (delegate::is_one(&outbox.claimed, past, &call.asked), sent) {
        (true, None) => {
            let capability = delegate::capability(&outbox.claimed, call);
            policy::may(past, outbox, Act::Call { call, capability: &capability, idempotent: false }).await
        }
        (true, Some(_)) => return None,
        (false, None) => {
            let callable = admission::callable(bodies, outbox, call).ok()?;
            admission::unrestricted(past, outbox, call, &callable).await
        }
        (false, Some(sent)) => {
            let callable = admission::callable(bodies, outbox, call).ok()?;
            let sends = admission::unknown_sends(&sent);
            if policy::reported_result(past, call, sends).is_some()
                || callable.tool.tokens().is_some()
                || (sent.idempotent && callable.is_idempotent())
            {
                return None;
            }
            policy::may(past, outbox, Act::Resend(call, sends)).await
        }
    };
    ruled.err()
}
