//! Calls to remote agents are cancelled when their job ends, in whichever state it ends (issue 7, "Cancel").

use super::backend::Opened;
use super::jobs::{LEASE, NOW, complete, discard, nothing, park, retry};
use super::on_every_store;
use serde_json::json;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::tool_call::{AwayStep, ToolCallMove};
use turnstone_domain::{CallId, EventName, Ids, Lease, Timestamp, TurnWrite};
use turnstone_store::Claim;
use turnstone_store::remote_calls::{CallToCancel, CancelAttempt};

on_every_store![
    every_end_of_a_job_leaves_its_remote_calls_to_cancel,
    an_ended_remote_call_is_not_cancelled,
    a_remote_cancellation_is_leased_by_one_process,
    a_failed_remote_cancellation_is_published_once,
];

const LATER: Timestamp = Timestamp(NOW.0 + 60_000);

async fn away(at: &Opened, lease: &Lease, call: &CallId, step: AwayStep) {
    let (call_id, place) = (call.clone(), "scout".to_owned());
    let tool_calls = vec![ToolCallMove::Away { call_id, place, step }];
    at.store.ledger.checkpoint(lease, TurnWrite { tool_calls, ..nothing() }, NOW, LEASE).await.unwrap();
}

/// Claims a job and starts a remote call.
async fn begun(at: &Opened) -> (Claim, CallId) {
    let (held, call) = (at.held(None).await, CallId::from(SystemIds.next()));
    away(at, &held.lease, &call, AwayStep::Leaves).await;
    away(at, &held.lease, &call, AwayStep::Works(json!({"task": "t"}))).await;
    (held, call)
}

async fn due(at: &Opened, now: Timestamp) -> Vec<CallToCancel> {
    at.store.remote_calls.take(now, now.plus_ms(60_000), 10).await.unwrap()
}

async fn every_end_of_a_job_leaves_its_remote_calls_to_cancel(at: &Opened) {
    for before in [None, Some(park(None)), Some(retry(LATER)), Some(discard())] {
        let (held, call) = begun(at).await;
        assert_eq!(due(at, LATER).await, Vec::new(), "its job waits for it");
        if let Some(end) = before.clone() {
            at.settle(&held.lease, end).await;
        }
        at.store.intake.cancel_of(&held.job, None, NOW).await.unwrap();
        let handle = Some(json!({"task": "t"}));
        let expected = CallToCancel { call, place: "scout".into(), handle, tries: 1, job: held.job.clone() };
        assert_eq!(due(at, NOW).await, vec![expected.clone()], "{before:?}");
        at.store.remote_calls.record(&expected, CancelAttempt::Done, NOW).await.unwrap();
        assert_eq!(due(at, LATER.plus_ms(60_000)).await, Vec::new());
    }
}

async fn an_ended_remote_call_is_not_cancelled(at: &Opened) {
    let (held, call) = begun(at).await;
    away(at, &held.lease, &call, AwayStep::Over).await;
    let other = CallId::from(SystemIds.next());
    away(at, &held.lease, &other, AwayStep::Leaves).await;
    away(at, &held.lease, &other, AwayStep::Abandoned).await;
    let taken = due(at, NOW).await;
    assert_eq!(taken.len(), 1, "the job continues without one of its calls");
    assert_eq!((&taken[0].call, &taken[0].handle), (&other, &None));
    at.store.remote_calls.record(&taken[0], CancelAttempt::Done, NOW).await.unwrap();
    at.settle(&held.lease, complete()).await;
    assert_eq!(due(at, LATER).await, Vec::new());
}

async fn a_remote_cancellation_is_leased_by_one_process(at: &Opened) {
    let (held, _) = begun(at).await;
    at.store.intake.cancel_of(&held.job, None, NOW).await.unwrap();
    let first = due(at, NOW).await.remove(0);
    assert_eq!(due(at, LATER.plus_ms(-1)).await, Vec::new(), "it is taken");
    let second = due(at, LATER).await.remove(0);
    assert_eq!(second.tries, 2, "the first lease expired");
    // The first process is alive after all; its result is ignored.
    at.store.remote_calls.record(&first, CancelAttempt::Done, LATER).await.unwrap();
    let again = LATER.plus_ms(1_000);
    at.store.remote_calls.record(&second, CancelAttempt::Again(again), LATER).await.unwrap();
    assert_eq!(due(at, again.plus_ms(-1)).await, Vec::new());
    assert_eq!(due(at, again).await.len(), 1);
}

async fn a_failed_remote_cancellation_is_published_once(at: &Opened) {
    let (held, _) = begun(at).await;
    at.store.intake.cancel_of(&held.job, None, NOW).await.unwrap();
    let one = due(at, NOW).await.remove(0);
    for _ in 0..2 {
        at.store.remote_calls.record(&one, CancelAttempt::GivenUp("it said no".into()), NOW).await.unwrap();
    }
    let reported = at.events(&held.job).await;
    let reported = reported.into_iter().filter(|event| *event == EventName::ToolNotCancelled);
    assert_eq!(reported.count(), 1);
    assert_eq!(due(at, LATER).await, Vec::new());
}
