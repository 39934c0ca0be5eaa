//! Cancels the work of remote agents: for a job that was cancelled or has failed for good, in every state,
//! and for a call that was abandoned.
//!
//! The end of the job records the cancellation in the store. Any worker that knows the other server sends it,
//! at least once, whichever worker had called the agent. A failed try is repeated with growing delays, and in
//! the end an event records the failure.

use crate::Deps;
use crate::tool::{RemoteCancellation, ToolError};
use backon::{BackoffBuilder, ExponentialBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use turnstone_domain::Timestamp;
use turnstone_store::remote_calls::{CallToCancel, CancelAttempt, RemoteCalls};

/// The interval at which due cancellations are looked up.
const POLL: Duration = Duration::from_secs(1);
/// The most cancellations that are sent at once.
const AT_ONCE: usize = 16;
/// The time after which a worker may take a cancellation that another one took, in milliseconds: that worker
/// has died.
const TAKEN_MS: i64 = 60_000;
/// The longest that one try takes, so that a silent server does not delay other cancellations for long.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(20);
/// The most tries: about half an hour.
const MOST_TRIES: i64 = 14;
/// The most tries for a call that the other server does not know: its request may still be on its way.
const MOST_UNKNOWN: i64 = 6;
/// The longest interval between two tries.
const SLOWEST: Duration = Duration::from_secs(300);

/// Sends cancellations until the worker drains. A worker that knows no other server has none to send.
pub async fn run(deps: Arc<Deps>, draining: CancellationToken) {
    let Some(remote_calls) = deps.remote_calls.clone().filter(|_| deps.toolbox.reaches_out()) else { return };
    while !draining.is_cancelled() {
        let now = deps.clock.now();
        match remote_calls.take(now, now.plus_ms(TAKEN_MS), AT_ONCE).await {
            Ok(due) if !due.is_empty() => {
                let attempts =
                    futures::future::join_all(due.iter().map(|one| cancel(&deps, &remote_calls, one)));
                tokio::select! {
                    _ = attempts => {}
                    // The next worker that looks sends them again.
                    () = draining.cancelled() => {}
                }
                continue;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "remote calls to cancel cannot be read"),
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = draining.cancelled() => {}
        }
    }
}

async fn cancel(deps: &Deps, remote_calls: &RemoteCalls, one: &CallToCancel) {
    let answer = deps.toolbox.cancel(&one.place, &one.call, one.handle.as_ref());
    let answer = tokio::time::timeout(CANCEL_TIMEOUT, answer).await;
    let answer = answer.unwrap_or_else(|_| Err(ToolError::Timeout("it does not answer".into())));
    let now = deps.clock.now();
    let how = after(one, answer, now);
    if let CancelAttempt::GivenUp(error) = &how {
        tracing::warn!(
            job = %one.job,
            agent = one.place,
            error,
            "a remote call could not be cancelled"
        );
    }
    if let Err(error) = remote_calls.record(one, how, now).await {
        tracing::warn!(%error, "the outcome of a remote cancellation cannot be written; it is repeated");
    }
}

/// Returns the result of a try.
fn after(one: &CallToCancel, answer: Result<RemoteCancellation, ToolError>, now: Timestamp) -> CancelAttempt {
    let again = || {
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(POLL)
            .with_max_delay(SLOWEST)
            .with_factor(2.0)
            .without_max_times()
            .build();
        let tried = usize::try_from(one.tries.max(1) - 1).unwrap_or_default();
        let pause = pauses.nth(tried).unwrap_or(SLOWEST);
        CancelAttempt::Again(now.plus_ms(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)))
    };
    match answer {
        Ok(RemoteCancellation::Ends) => CancelAttempt::Done,
        Ok(RemoteCancellation::Unknown) if one.handle.is_some() => {
            CancelAttempt::GivenUp(format!("agent {}: what was begun there is not known there", one.place))
        }
        Ok(RemoteCancellation::Unknown) if one.tries >= MOST_UNKNOWN => CancelAttempt::Done,
        Ok(RemoteCancellation::Unknown) => again(),
        Err(ToolError::Final(why)) => CancelAttempt::GivenUp(why),
        Err(error) if one.tries >= MOST_TRIES => CancelAttempt::GivenUp(error.to_string()),
        Err(_) => again(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::{CallId, JobId};

    fn one(tries: i64, begun: bool) -> CallToCancel {
        let (call, job) = (CallId("c".into()), JobId("j".into()));
        CallToCancel { call, place: "scout".into(), handle: begun.then(|| json!({"task": "t"})), tries, job }
    }

    /// Issue 7, "Cancel": tries are repeated with growing delays up to a limit. A final refusal is not
    /// repeated, and a request that may still be on its way is looked for once more.
    #[test]
    fn tries_are_bounded() {
        let now = Timestamp(1_000);
        let failed = || Err(ToolError::Failed("down".into()));
        let again = |ms: i64| CancelAttempt::Again(now.plus_ms(ms));
        for (tries, ms) in [(1, 1_000), (2, 2_000), (5, 16_000), (MOST_TRIES - 1, 300_000)] {
            assert_eq!(after(&one(tries, true), failed(), now), again(ms), "{tries}");
        }
        assert_eq!(after(&one(MOST_TRIES, true), failed(), now), CancelAttempt::GivenUp("down".into()));
        let refused = Err(ToolError::Refused("no key".into()));
        assert_eq!(after(&one(1, true), refused, now), again(1_000), "another worker may have it");
        let no = Err(ToolError::Final("no".into()));
        assert_eq!(after(&one(1, true), no, now), CancelAttempt::GivenUp("no".into()));
        assert_eq!(after(&one(1, true), Ok(RemoteCancellation::Ends), now), CancelAttempt::Done);
        let unknown = after(&one(1, true), Ok(RemoteCancellation::Unknown), now);
        assert!(matches!(unknown, CancelAttempt::GivenUp(_)), "{unknown:?}");
        assert_eq!(after(&one(1, false), Ok(RemoteCancellation::Unknown), now), again(1_000));
        assert_eq!(
            after(&one(MOST_UNKNOWN, false), Ok(RemoteCancellation::Unknown), now),
            CancelAttempt::Done
        );
    }
}
