//! Engagements with several inputs, and recalled memory.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, job_of, with};
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Reply, model_server};

recordings!(
    everywhere: [several_inputs],
    sqlite_first: [inputs_in_a_row, recalled_memory],
);

fn parrot(request: &Value) -> Reply {
    match newest(request) {
        "look" if model_server::outcomes(request) == 0 => Reply::call("search", json!({"q": "tides"})),
        text => Reply::text(format!("answer to {text}")),
    }
}

/// Each input follows the answer to the one before.
async fn several_inputs(ground: Ground) -> Value {
    let mut stage = ground.stage(parrot).await;
    stage.register(&[oas("desk", "capabilities: {search: {}}")]).await;
    let begun =
        stage.post("/agents/desk", &json!({"input": "look", "metadata": {"user": {"id": "ann"}}})).await;
    let path = format!("/engagements/{}", begun["engagement_id"].as_str().unwrap());
    let first = stage.fleet.get(&path).await["job_id"].as_str().unwrap().to_owned();
    stage.ended(&first).await;
    stage.post(&path, &json!("without reopening")).await;
    for text in ["and then?", "at last"] {
        let sent = stage.post(&format!("{path}?reopen=true"), &json!(text)).await;
        stage.ended(sent["job_id"].as_str().unwrap()).await;
    }
    stage.recorded().await
}

/// The inputs wait for one another.
async fn inputs_in_a_row(ground: Ground) -> Value {
    let mut stage = crate::recorded::stage::Stage::of(ground.fleet(parrot).workers(0)).await;
    stage.register(&[oas("desk", "capabilities: {search: {}}")]).await;
    let id = stage.push(&job_of("desk")).await;
    let path = format!("/engagements/{}", stage.fleet.engagement_of(&id).await);
    let mut last = id;
    for text in ["second", "third"] {
        let sent = stage.post(&path, &json!(text)).await;
        last = sent["job_id"].as_str().unwrap().to_owned();
    }
    stage.fleet.add_worker(4);
    stage.ended(&last).await;
    stage.recorded().await
}

async fn recalled_memory(ground: Ground) -> Value {
    let mut stage = ground.stage(parrot).await;
    stage
        .register(&[oas(
            "kept",
            "capabilities: {search: {}}\nlifespan: {retain_memory: true, short_circuit: 2}",
        )])
        .await;
    for text in ["look", "and then"] {
        stage.run(&with(job_of("kept"), json!({"args": [text]}))).await;
    }
    stage.recorded().await
}
