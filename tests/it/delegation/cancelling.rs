//! Cancelling a parent cancels all of its delegates, in whichever process they run.

use super::{ask, calls, engagement, may_ask, oas, ossa, who};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_tree_ends_with_its_root() {
    join_all(Backend::ALL.map(cancelled)).await;
}

async fn cancelled(backend: Backend) {
    let script = |request: &Value| match who(request) {
        "boss" => calls(&[("lead", "a"), ("lead", "b")]),
        "lead" => calls(&[("scout", "look")]),
        _ => Reply::Hang,
    };
    let mut fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
    fleet.add_worker(2);
    let other = crate::crash::spawn(&fleet, 2, None);
    let boss = ossa("boss", &may_ask("lead", "type: parallel"));
    fleet.register_all(&[oas("scout", &[]), oas("lead", &["scout"]), boss]).await;
    let id = ask(&fleet, "boss", &json!({"ext_agent_token_budget": 50_000})).await;
    fleet.models.seen(5).await;
    let (status, body) = fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    assert_eq!(
        (status, &body["job"]["state"]),
        (StatusCode::OK, &json!("cancelled")),
        "on {backend:?}: {body}"
    );
    assert_eq!(
        fleet.number("SELECT count(*) FROM jobs WHERE state = 'cancelled'").await,
        5,
        "on {backend:?}"
    );
    let seen = engagement(&fleet, &id).await;
    let links = seen["children"].as_array().unwrap();
    assert!(links.iter().all(|link| link["status"] == "error" && link["state"] == "cancelled"), "{seen:#}");
    assert_eq!(seen["tokens"]["reserved"], 0, "no reservation stays: {seen:#}");
    assert_eq!(seen["tokens"]["used"], 3 * 19);
    assert_eq!(fleet.event_names(&id).await.last().unwrap(), "job.cancelled", "no event follows the end");
    assert!(fleet.events_named(&id, "delegation.completed").await.is_empty());
    // Every slot is free again: the next jobs find one in either process.
    for _ in 0..4 {
        let next = fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await;
        fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{next}"), "").await;
    }
    drop(other);
    fleet.end().await;
}

/// A cancelled child is a failed call, and its parent continues.
#[tokio::test]
async fn a_parent_continues_after_its_child_was_cancelled() {
    let script = |request: &Value| match (who(request), super::answers(request).first()) {
        ("lead", None) => calls(&[("scout", "look")]),
        ("lead", Some(answer)) => Reply::text(answer.clone()),
        _ => Reply::Hang,
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("scout", &[]), oas("lead", &["scout"])]).await;
    let id = ask(&fleet, "lead", &json!({})).await;
    fleet.models.seen(2).await;
    let child = engagement(&fleet, &id).await["children"][0]["job_id"].as_str().unwrap().to_owned();
    fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{child}"), "").await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert!(done["result"].as_str().unwrap().contains("it was cancelled"), "{done:#}");
    fleet.end().await;
}
