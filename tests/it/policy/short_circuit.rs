//! `lifespan.short_circuit`, at the exact call, through real workers.

use super::on_every_store;
use crate::crash;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// A model that calls these tools one after the other, for ever.
fn calling(tools: &'static [&'static str]) -> impl Fn(&Value) -> Reply + Send + Sync + 'static {
    move |request| Reply::call(tools[model_server::outcomes(request) % tools.len()], json!({}))
}

const BODY: &str = "capabilities: {search: {}, book: {}}\nlifespan: {short_circuit: 3}";

async fn stopped(fleet: &Fleet, id: &str, calls: usize) {
    let job = fleet.wait_for(id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(
        (&job["state"], &job["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_POLICY_VIOLATION")),
        "{job:#}"
    );
    assert_eq!(job["error"]["details"]["oas_rule"], "OAS-53", "{job:#}");
    assert_eq!(fleet.tools.calls().len(), calls, "tools that were called before it was ended");
}

/// OAS-52, OAS-53: the two examples of the specification stop at exactly the third and the sixth call, on both stores, and
/// no engagement shares its counters with another.
#[tokio::test]
async fn the_examples_stop_at_the_specified_call() {
    on_every_store(async |backend| {
        for (tools, made) in [(&["search"][..], 2), (&["search", "book"][..], 5)] {
            let fleet = Fleet::builder().on(backend).model(calling(tools)).start().await;
            fleet.register(oas("looping", BODY)).await;
            let job = json!({"type": "agent.loop", "args": ["go"], "meta": {"agent": "looping", "user": {"id": "u"}}});
            let first = fleet.push(&job).await;
            stopped(&fleet, &first, made).await;
            let second = fleet.push(&job).await;
            stopped(&fleet, &second, made * 2).await;
            fleet.end().await;
        }
    })
    .await;
}

/// OAS-53: refused and unknown calls count, because a model that repeats them is the loop to stop. A model that
/// repeats no call may continue.
#[tokio::test]
async fn refused_calls_count() {
    for (body, tools) in [
        (
            "capabilities: {search: {input_restriction: {assertion: \"false\"}}}\nlifespan: {short_circuit: 3}",
            &["search"][..],
        ),
        ("capabilities: {search: {}}\nlifespan: {short_circuit: 3}", &["unheard-of"][..]),
        ("capabilities: {search: {}}\nlifespan: {short_circuit: 1}", &["search"][..]),
    ] {
        let fleet = Fleet::builder().model(calling(tools)).start().await;
        fleet.register(oas("looping", body)).await;
        let id =
            fleet.push(&json!({"type": "agent.loop", "args": ["go"], "meta": {"agent": "looping", "user": {"id": "u"}}})).await;
        stopped(&fleet, &id, 0).await;
        fleet.end().await;
    }
}

/// OAS-53: a worker that dies in between neither resets the count nor doubles it.
#[tokio::test]
async fn a_crash_neither_resets_nor_doubles_the_count() {
    on_every_store(async |backend: Backend| {
        for point in ["2:infer:after", "2:exec:before", "3:exec:after", "5:exec:before"] {
            let fleet =
                Fleet::builder().on(backend).workers(0).model(calling(&["search", "book"])).start().await;
            let body = "capabilities: {search: {}, book: {}}\nlifespan: {short_circuit: 3}";
            fleet.register(oas("looping", body)).await;
            let id = fleet
                .push(&json!({"type": "agent.loop", "args": ["go"], "meta": {"agent": "looping", "user": {"id": "u"}}}))
                .await;
            crash::crash(&fleet, &id, point).await;
            let calls = fleet.tools.calls();
            let mut keys: Vec<_> = calls.iter().map(|call| call.key.clone()).collect();
            keys.sort();
            keys.dedup();
            let job = fleet.job(&id).await;
            assert_eq!(
                (&job["state"], keys.len()),
                (&json!("discarded"), 5),
                "at {point} on {backend:?}: {job:#}"
            );
            fleet.end().await;
        }
    })
    .await;
}

/// OAS-52, OAS-53: calls are counted over all inputs of an engagement.
#[tokio::test]
async fn calls_of_all_inputs_are_counted() {
    on_every_store(async |backend| {
        // One call for each input, then an answer.
        let script = |request: &Value| match request["messages"].as_array().and_then(|all| all.last()) {
            Some(last) if last["role"] == "user" => Reply::call("search", json!({})),
            _ => Reply::text("found"),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let body = "capabilities: {search: {user_identity: false}}\nlifespan: {short_circuit: 3}";
        fleet.register(oas("looping", body)).await;
        let job = json!({"type": "agent.loop", "args": ["go"], "meta": {"agent": "looping"}});
        let mut id = fleet.push(&job).await;
        let engagement = fleet.engagement_of(&id).await;
        for _ in 0..2 {
            let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!(done["result"], "found", "{done:#}");
            id = crate::further::send(&fleet, &engagement, "go on", "?reopen=true").await;
        }
        stopped(&fleet, &id, 2).await;
        fleet.end().await;
    })
    .await;
}
