//! Engagements that are forked, merged, compared, and moved to another store.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, Stage, job};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_tests::documents::oas;
use turnstone_tests::{Reply, model_server};

recordings!(
    everywhere: [fork_at_a_turn, export_and_import],
    sqlite_first: [fork_of_a_fork, branches_that_are_merged],
);

/// Searches, books, and then answers.
fn trip(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": 1})),
        1 => Reply::call("book", json!({"seat": 1})),
        _ => Reply::text("booked"),
    }
}

/// Forks an engagement, waits for the end of the fork, and returns its engagement.
async fn forked(stage: &mut Stage, engagement: &str, body: Value) -> String {
    let fork = stage.post(&format!("/engagements/{engagement}/fork"), &body).await;
    stage.ended(fork["job_id"].as_str().unwrap_or_else(|| panic!("{fork:#}"))).await;
    fork["engagement_id"].as_str().unwrap().to_owned()
}

async fn ran(stage: &mut Stage) -> String {
    let id = stage.run(&job("a trip")).await;
    stage.fleet.engagement_of(&id).await
}

async fn fork_at_a_turn(ground: Ground) -> Value {
    let mut stage = ground.stage(trip).await;
    let origin = ran(&mut stage).await;
    let fork = forked(&mut stage, &origin, json!({"at_turn": 1, "phase": "exec"})).await;
    stage.get(&format!("/engagements/{origin}/diff?with={fork}")).await;
    let set = json!({"prompt": "Be terse.", "model": "small"});
    let other = forked(&mut stage, &origin, json!({"at_turn": 3, "phase": "infer", "set": set})).await;
    stage.get(&format!("/engagements/{origin}/diff?with={other}")).await;
    stage.recorded().await
}

/// A fork receives another result; a fork of it calls its tools.
async fn fork_of_a_fork(ground: Ground) -> Value {
    let mut stage = ground.stage(trip).await;
    let origin = ran(&mut stage).await;
    let calls = stage.fleet.get(&format!("/engagements/{origin}/tool-calls")).await;
    let call = calls["tool_calls"][0]["call_id"].as_str().unwrap();
    let set = json!({"tool_results": {call: {"hits": 0}}});
    let fork = forked(&mut stage, &origin, json!({"at_turn": 1, "phase": "exec", "set": set})).await;
    forked(&mut stage, &fork, json!({"at_turn": 2, "phase": "exec", "live_tools": true})).await;
    stage.recorded().await
}

/// Two branches differ in their second turn, and are merged.
async fn branches_that_are_merged(ground: Ground) -> Value {
    let requested = AtomicUsize::new(0);
    let script = move |_: &Value| match requested.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::call("search", json!({"q": 1})),
        n => Reply::text(format!("answer {n}")),
    };
    let mut stage = ground.stage(script).await;
    let id = stage.run(&job("go")).await;
    for name in ["a", "b"] {
        let path = format!("/ojs/v1/agents/{id}/fork");
        let fork = stage.post(&path, &json!({"at_turn": 2, "branch_name": name})).await;
        stage.ended(fork["job_id"].as_str().unwrap()).await;
    }
    let body = json!({"branch_a": "a", "branch_b": "b", "strategy": "union"});
    let merged = stage.post(&format!("/ojs/v1/agents/{id}/merge"), &body).await;
    let job = merged["job_id"].as_str().unwrap();
    stage.post(&format!("/ojs/v1/agents/{job}/resume"), &json!({})).await;
    stage.ended(job).await;
    stage.recorded().await
}

/// An engagement with a review moves to another fleet.
async fn export_and_import(ground: Ground) -> Value {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("booked"),
    };
    let mut from = ground.stage(script).await;
    let rest = "capabilities: {book: {user_identity: false, input_restriction: {require_review: ann}}}";
    from.register(&[oas("booker", rest)]).await;
    let id = from.push(&crate::recorded::stage::job_of("booker")).await;
    from.parked(&id).await;
    from.answer_review("approve", "ann").await;
    from.ended(&id).await;
    let path = format!("/engagements/{}/export", from.fleet.engagement_of(&id).await);
    let (_, document) = from.unrecorded(Method::GET, &path, &[], String::new()).await;
    let document = document.as_str().unwrap();

    let mut to = Stage::of(ground.fleet(|_| Reply::text("again")).workers(0)).await;
    to.fleet.clock.advance_ms(3_600_000);
    to.send(Method::POST, "/engagements/import", document).await;
    to.send(Method::POST, "/engagements/import", document).await;
    json!({"fleets": [from.recorded().await, to.recorded().await]})
}
