//! Cancelling stops what is in flight and leaves `cancelled`.

use reqwest::{Method, StatusCode};
use serde_json::json;
use std::time::Duration;
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, Reply, model_server};

#[tokio::test]
async fn cancel_stops_a_model_call_within_a_second() {
    let hour = Duration::from_secs(3_600);
    let fleet = Fleet::builder().drain_grace(hour).model(|_| Reply::Hang).start().await;
    let id = fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await;
    fleet.models.seen(1).await;
    let (status, body) = fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    assert_eq!((status, &body["job"]["state"]), (StatusCode::OK, &json!("cancelled")), "{body}");
    // A turn that still waited for the model would hold the drain up for the hour that it may take.
    fleet.end().await;
}

#[tokio::test]
async fn cancel_by_another_process_stops_a_tool_call() {
    let fleet = Fleet::builder()
        .workers(0)
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("hang", json!({})),
            _ => Reply::text("done"),
        })
        .start()
        .await;
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "ext_agent_tools": [{"name": "hang"}]});
    let id = fleet.push(&job).await;
    let worker = crate::crash::spawn(&fleet, 1, None);
    fleet.tools.seen(1).await;
    let (status, body) = fleet.send(Method::POST, &format!("/ojs/v1/jobs/{id}/cancel"), "{}").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    // The only slot of the other process is free again: it runs the next job to its end.
    let next = fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await;
    fleet.wait_for(&next, &[JobState::Completed]).await;
    assert_eq!(fleet.job(&id).await["state"], "cancelled");
    drop(worker);
}

#[tokio::test]
async fn an_ended_job_is_not_cancelled_again() {
    let fleet = Fleet::builder().start().await;
    let id = fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await;
    fleet.settled(&id).await;
    let (status, body) = fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    let (status, body) =
        fleet.send(Method::DELETE, "/ojs/v1/jobs/01890000-0000-7000-8000-000000000000", "").await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    fleet.end().await;
}
