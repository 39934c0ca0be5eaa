//! Plain jobs, served by workers in any language over HTTP.

mod beats;
mod ends;
mod failures;
mod fetching;
pub(crate) mod killed;
mod lease_tokens;
mod progress;
mod saved_states;
mod time;

use serde_json::{Value, json};
use turnstone_tests::OjsServer;
use turnstone_tests::ojs_server::Reply;

/// Enqueues a job of queue `q` with these options.
async fn push(server: &OjsServer, options: Value) -> String {
    let mut options = options;
    options["queue"] = "q".into();
    server.push(&json!({"type": "mail.send", "args": [], "options": options})).await
}

/// Fetches jobs of queue `q` for worker `w`.
async fn fetch(server: &OjsServer, more: Value) -> Vec<Value> {
    let mut body = json!({"queues": ["q"], "worker_id": "w"});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    let reply = server.post("/ojs/v1/workers/fetch", &body).await.expect(200).json();
    reply["jobs"].as_array().unwrap().clone()
}

/// Enqueues a job that worker `w` fetches.
async fn held(server: &OjsServer, options: Value) -> String {
    let id = push(server, options).await;
    let jobs = fetch(server, json!({})).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(jobs[0]["id"], id.as_str());
    id
}

async fn ack(server: &OjsServer, id: &str) -> Reply {
    server.post("/ojs/v1/workers/ack", &json!({"job_id": id})).await
}

async fn nack(server: &OjsServer, id: &str, error: Value) -> Reply {
    server.post("/ojs/v1/workers/nack", &json!({"job_id": id, "error": error})).await
}

async fn beat(server: &OjsServer, body: Value) -> Value {
    server.post("/ojs/v1/workers/heartbeat", &body).await.expect(200).json()
}

/// Returns a policy without jitter: a second between attempts.
fn retry(max_attempts: u32) -> Value {
    json!({"retry": {"max_attempts": max_attempts, "initial_interval": "PT1S", "jitter": false}})
}
