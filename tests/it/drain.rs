//! A drain lets turns finish or yield, releases every lease, and costs no retry.

use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, Reply, model_server};

#[tokio::test]
async fn a_turn_that_outlasts_the_drain_is_released_at_its_checkpoint() {
    let first = AtomicBool::new(true);
    let mut fleet = Fleet::builder()
        .model(move |_| if first.swap(false, Ordering::SeqCst) { Reply::Hang } else { Reply::text("done") })
        .start()
        .await;
    let id = fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await;
    fleet.models.seen(1).await;
    fleet.stop_workers().await;
    assert_eq!(fleet.job(&id).await["state"], "available");
    fleet.add_worker(1);
    let done = fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(done["attempt"], 2, "the attempt counts claims");
    assert!(done["errors"].as_array().is_none_or(Vec::is_empty), "a drain is no failure");
    fleet.end().await;
}

#[tokio::test]
async fn a_job_yields_between_two_phases() {
    let mut fleet = Fleet::builder()
        .drain_grace(Duration::from_secs(60))
        .model(|request| match model_server::outcomes(request) {
            0..=200 => Reply::call("search", json!({"n": 1})),
            _ => Reply::text("done"),
        })
        .start()
        .await;
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "ext_agent_tools": [{"name": "search"}]});
    let id = fleet.push(&job).await;
    fleet.models.seen(3).await;
    fleet.stop_workers().await;
    let yielded = fleet.job(&id).await;
    assert_eq!(yielded["state"], "available");
    assert_eq!(fleet.event_names(&id).await.last().unwrap(), "job.yielded");
    let calls = fleet.models.calls().len();
    fleet.add_worker(1);
    fleet.models.seen(calls + 2).await;
    let paid: i64 = fleet.models.calls().iter().map(|call| call.reported).sum();
    let used = async || fleet.job(&id).await["ext_agent_tokens_used"].as_i64().unwrap();
    fleet.until("the answer is booked once", async || used().await >= paid).await;
    fleet.stop_workers().await;
    fleet.end().await;
}

#[tokio::test]
#[should_panic(expected = "end this fleet with Fleet::end")]
async fn a_test_that_does_not_end_its_fleet_fails() {
    let _fleet = Fleet::builder().start().await;
}
