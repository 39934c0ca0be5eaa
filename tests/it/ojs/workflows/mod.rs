//! Workflows over HTTP: created, read, listed and ended by jobs of any worker.

mod histories;
mod requests;
mod steps;

use serde_json::{Value, json};
use turnstone_tests::OjsServer;

const PATH: &str = "/ojs/v1/workflows";

fn job(job_type: &str) -> Value {
    json!({"type": job_type, "args": [], "options": {"queue": "flow"}})
}

async fn made(server: &OjsServer, body: &Value) -> String {
    let reply = server.post(PATH, body).await.expect(201).json();
    assert_eq!(reply["workflow"]["state"], "running");
    reply["workflow"]["id"].as_str().unwrap().to_owned()
}

async fn shown(server: &OjsServer, id: &str) -> Value {
    server.get(&format!("{PATH}/{id}")).await.expect(200).json()["workflow"].clone()
}

async fn fetched(server: &OjsServer) -> Vec<Value> {
    let requested = json!({"queues": ["flow"], "count": 100, "worker_id": "w"});
    let reply = server.post("/ojs/v1/workers/fetch", &requested).await.expect(200).json();
    reply["jobs"].as_array().unwrap().clone()
}

/// Fetches the only available job.
async fn one(server: &OjsServer) -> Value {
    let mut jobs = fetched(server).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.remove(0)
}

async fn ack(server: &OjsServer, job: &Value, result: Value) {
    server.post("/ojs/v1/workers/ack", &json!({"job_id": job["id"], "result": result})).await.expect(200);
}

async fn fail(server: &OjsServer, job: &Value) {
    let error = json!({"code": "no", "message": "no", "retryable": false});
    server.post("/ojs/v1/workers/nack", &json!({"job_id": job["id"], "error": error})).await.expect(200);
}
