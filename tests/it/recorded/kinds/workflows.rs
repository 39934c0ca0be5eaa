//! Workflows of agents' jobs, and plain jobs for contrast.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, Stage, job, retry, with};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::model_server::newest;
use turnstone_tests::{Reply, model_server};

recordings!(
    everywhere: [chain_of_agents, plain_job_with_progress],
    sqlite_first: [],
);

/// Starts a workflow before there is a worker, waits for its end, and records it.
async fn workflow(stage: &mut Stage, body: &Value) {
    let begun = stage.post("/ojs/v1/workflows", body).await;
    let path = format!(
        "/ojs/v1/workflows/{}",
        begun["workflow"]["id"].as_str().unwrap_or_else(|| panic!("{begun:#}"))
    );
    stage.fleet.add_worker(1);
    stage
        .fleet
        .until("the workflow ends", async || stage.fleet.get(&path).await["workflow"]["state"] != "running")
        .await;
    stage.get(&path).await;
}

async fn chain_of_agents(ground: Ground) -> Value {
    let search = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": newest(request)})),
        _ => Reply::text("found"),
    };
    let mut stage = Stage::of(ground.fleet(search).workers(0)).await;
    workflow(&mut stage, &json!({"type": "chain", "steps": [job("first"), job("second")]})).await;
    stage.recorded().await
}

fn plain() -> Value {
    json!({"type": "mail.send", "args": [{"to": "ann"}], "options": with(retry(2), json!({"queue": "mail"}))})
}

/// A worker over HTTP fetches the job.
async fn fetch(stage: &mut Stage) {
    stage.post("/ojs/v1/workers/fetch", &json!({"queues": ["mail"], "worker_id": "w"})).await;
}

async fn plain_job_with_progress(ground: Ground) -> Value {
    let mut stage = Stage::of(ground.fleet(|_| Reply::text("none")).workers(0)).await;
    let id = stage.push(&plain()).await;
    fetch(&mut stage).await;
    let path = format!("/ojs/v1/jobs/{id}/progress");
    for (progress, message) in [(0.25, "begun"), (0.75, "three of four")] {
        let body = json!({"progress": progress, "message": message, "data": {"n": 3}});
        stage.send(Method::PUT, &path, body).await;
        stage.pass_ms(1_000).await;
    }
    stage.post("/ojs/v1/workers/ack", &json!({"job_id": id, "result": {"sent": true}})).await;
    stage.recorded().await
}
