//! Cancelling stops a running call, and the job is `cancelled`.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use turnstone_domain::JobState;
use turnstone_store::Doorbell;
use turnstone_tests::{Backend, Fleet, Reply, model_server};
use turnstone_worker::Deps;

/// Longer than a test: neither the timeout of the call nor the grace of a drain ends a call within it.
const NEVER: Duration = Duration::from_secs(24 * 3_600);

/// Cancels a job in its model call while its worker runs. The worker has one slot; `change` replaces its parts.
async fn cancelled_in_its_call(backend: Backend, change: impl FnOnce(Deps) -> Deps) {
    let first = AtomicBool::new(true);
    let script = move |_: &Value| match first.swap(false, Ordering::SeqCst) {
        true => Reply::Hang,
        false => Reply::text("done"),
    };
    let mut fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
    fleet.add_worker_with(1, |deps| {
        let mut deps = change(deps);
        (deps.options.model_timeout, deps.options.drain_grace) = (NEVER, NEVER);
        deps
    });
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"});
    let id = fleet.push(&job).await;
    fleet.models.seen(1).await;
    assert_eq!(fleet.models.abandoned(), 0, "on {backend:?}");
    let (status, body) = fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    assert_eq!((status, &body["job"]["state"]), (StatusCode::OK, &json!("cancelled")), "{body}");
    let what = format!("the worker closes the connection to the model on {backend:?}");
    fleet.until(&what, async || fleet.models.abandoned() == 1).await;
    let next = fleet.push(&job).await;
    fleet.wait_for(&next, &[JobState::Completed]).await;
    assert_eq!(fleet.job(&id).await["state"], "cancelled", "on {backend:?}");
    assert_eq!((fleet.models.count(), fleet.models.abandoned()), (2, 1), "on {backend:?}");
    fleet.end().await;
}

#[tokio::test]
async fn cancel_aborts_the_model_call() {
    for backend in Backend::ALL {
        cancelled_in_its_call(backend, |deps| deps).await;
    }
}

/// The notification to the worker's process is lost.
#[tokio::test]
async fn cancel_aborts_the_model_call_without_a_notification() {
    for backend in Backend::ALL {
        cancelled_in_its_call(backend, |mut deps| {
            deps.doorbell = Doorbell::default();
            deps
        })
        .await;
    }
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
    fleet.end().await;
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
