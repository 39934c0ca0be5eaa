//! Engagements with every kind of write, and kills around each of these.

use super::every_write::{Scene, around, at_every_write, goes_on, kills, undisturbed};
use super::{FREE, job, script, shared_out};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_domain::Phase;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// A call of a tool, then the answer.
async fn with_a_tool(backend: Backend) -> Scene {
    let fleet = Fleet::builder().on(backend).model(script("book"));
    Scene::set(fleet, FREE, async |fleet| fleet.push(&job("book")).await).await
}

async fn register(fleet: &Fleet, document: &str) {
    let (status, body) = fleet.send(Method::POST, "/agents", document.to_owned()).await;
    assert!(status.is_success(), "{body:#}");
}

fn named(agent: &str) -> Value {
    json!({"type": "agent.crash", "args": ["go"], "meta": {"agent": agent, "user": {"id": "u-7"}},
           "ext_agent_token_budget": 50_000})
}

/// A call that a reviewer has to confirm: the job is parked.
async fn with_a_review(backend: Backend) -> Scene {
    let fleet = Fleet::builder().on(backend).model(script("book"));
    Scene::set(fleet, FREE, async |fleet| {
        let document = "kind: \"openagentspec:v1/agent\"\nname: booker\ndescription: An agent that books.\nintent: You book.\n\
                        owner: tests\ncapabilities: {book: {user_identity: false, input_restriction: \
                        {assertion: \"true\", require_review: manager}}}\n";
        register(fleet, document).await;
        fleet.push(&named("booker")).await
    })
    .await
}

/// An agent that waits for another one: the job is parked, and continued by the end of the other job.
async fn with_a_delegate(backend: Backend) -> Scene {
    let script = |request: &Value| {
        let is_lead =
            request["messages"][0]["content"].as_str().is_some_and(|role| role.contains("You are lead"));
        match (is_lead, model_server::outcomes(request)) {
            (true, 0) => Reply::call("scout", json!({"input": "look around"})),
            (true, _) => Reply::text("all is well"),
            (false, _) => Reply::text("seen"),
        }
    };
    Scene::set(Fleet::builder().on(backend).model(script), FREE, async |fleet| {
        for (name, capabilities) in [("scout", "{}"), ("lead", "{scout: {}}")] {
            let document = format!(
                "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: An agent.\nintent: You are {name}.\n\
                 owner: tests\ncapabilities: {capabilities}\n"
            );
            register(fleet, &document).await;
        }
        fleet.push(&named("lead")).await
    })
    .await
}

/// A provider that fails once: the job is retried.
async fn with_a_retry(backend: Backend) -> Scene {
    let first = AtomicBool::new(true);
    let script = move |_: &Value| match first.swap(false, Ordering::SeqCst) {
        true => Reply::Status(503),
        false => Reply::text("done"),
    };
    Scene::set(Fleet::builder().on(backend).model(script), FREE, async |fleet| {
        let mut job = job("book");
        job["options"] = json!({"retry": {"max_attempts": 5, "initial_interval": "PT0.1S", "jitter": false}});
        fleet.push(&job).await
    })
    .await
}

/// An agent that keeps state: the turn waits for the commit of PERSIST.
async fn with_state(backend: Backend) -> Scene {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("state_append", json!({"key": "log", "value": "once"})),
        _ => Reply::text("done"),
    };
    Scene::set(Fleet::builder().on(backend).model(script), FREE, async |fleet| {
        let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: keeper}\nspec:\n  role: You keep.\n  \
                        state: {mode: session, storage: {type: kv}}\n";
        register(fleet, manifest).await;
        fleet.push(&named("keeper")).await
    })
    .await
}

/// The commit of every phase is among the writes of this scene.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_goes_on_after_each_write() {
    let (writes, plain) = undisturbed(with_a_tool(Backend::Sqlite).await).await;
    for phase in Phase::ALL {
        assert!(writes.iter().any(|write| write.has(phase)), "{phase} is never committed: {writes:#?}");
    }
    for (backend, kill) in shared_out(&kills(&writes)) {
        goes_on(with_a_tool, (backend, kill), (&plain, Some(0))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_parks_once_although_its_worker_is_killed() {
    around("park", with_a_review, Some(0)).await;
    around("park", with_a_delegate, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_retried_once_although_its_worker_is_killed() {
    around("retry", with_a_retry, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every write of five engagements on both databases, about 130 killed processes"]
async fn a_killed_worker_goes_on_after_every_write_on_both_databases() {
    at_every_write(with_a_tool, Some(0)).await;
    at_every_write(with_a_review, Some(0)).await;
    at_every_write(with_a_delegate, None).await;
    at_every_write(with_a_retry, None).await;
    at_every_write(with_state, None).await;
}
