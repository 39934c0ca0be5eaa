//! Jobs and everything beside them that the damage meets: of each kind one that waits and one that has ended.

use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{OjsServer, Receiver, Reply, model_server};

/// The queue of the jobs that wait; it is paused while they are damaged.
pub const QUEUE: &str = "victims";

const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: victim
description: An agent that books.
intent: You book what you are asked to book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      assertion: recent["book"].inputs.price <= 800
      require_review: manager
"#;

/// Asks once for a tool, where the job is about a booking.
pub fn script(request: &Value) -> Reply {
    match (model_server::outcomes(request), request.to_string().contains("book it")) {
        (0, true) => Reply::call("book", json!({"price": 640})),
        _ => Reply::text("done"),
    }
}

/// Makes what stays: an agent, a webhook, a cron, limits, and jobs of every kind that have ended.
pub async fn lasting(server: &OjsServer, receiver: &Receiver) {
    let fleet = &server.fleet;
    assert!(fleet.send(reqwest::Method::POST, "/agents", AGENT).await.0.is_success());
    let hook = json!({"url": receiver.url, "events": ["job.completed"], "metadata": {"for": "tests"}});
    server.post("/ojs/v1/webhooks/subscriptions", &hook).await.expect(201);
    let template = json!({"type": "cron.job", "args": [1], "options": {"queue": "crons"}});
    for name in ["nightly", "hourly"] {
        let entry = json!({"name": name, "expression": "* * * * *", "job_template": template});
        server.post("/ojs/v1/cron", &entry).await.expect(201);
    }
    let config = json!({"concurrency": 50});
    server.put(&format!("/ojs/v1/queues/{QUEUE}/config"), &config).await;
    server.pass_ms(61_000).await;
}

/// Makes jobs that wait, and some that have ended; the queue is paused afterwards.
pub async fn waiting(server: &OjsServer, round: usize) {
    server.post(&format!("/ojs/v1/queues/{QUEUE}/resume"), &json!({})).await;
    plain(server, round).await;
    agent(server).await;
    server.post(&format!("/ojs/v1/queues/{QUEUE}/pause"), &json!({})).await.expect(200);
    let options =
        json!({"queue": QUEUE, "tags": ["t"], "retry": {"max_attempts": 3, "initial_interval": "PT1S"}});
    for n in 0..2 {
        let job = json!({"type": "mail.send", "args": [n], "meta": {"of": "tests"}, "options": options});
        server.push(&job).await;
    }
    let step = |n: i64| json!({"type": "flow.step", "args": [n], "options": {"queue": QUEUE}});
    let chain = json!({"type": "chain", "name": "c", "steps": [step(1), step(2)]});
    server.post("/ojs/v1/workflows", &chain).await.expect(201);
    for meta in [json!({}), json!({"agent": "victim"})] {
        let job = json!({"type": "agent.x", "args": ["hi"], "meta": meta, "ext_agent_model": "m", "options": options});
        server.push(&job).await;
    }
}

/// One that fails, one that completes, and one whose reservation lapses.
async fn plain(server: &OjsServer, round: usize) {
    let options = json!({"queue": QUEUE, "retry": {"max_attempts": 2, "initial_interval": "PT1S"},
                         "unique": {"keys": ["type", "args"], "period": "PT1H"}});
    for kind in ["fail", "complete", "lapse"] {
        let job = json!({"type": "mail.send", "args": [kind, round], "options": options, "x_note": "n"});
        let id = server.push(&job).await;
        let ask = json!({"queues": [QUEUE], "worker_id": "w", "visibility_timeout_ms": 2_000});
        server.post("/ojs/v1/workers/fetch", &ask).await.expect(200);
        match kind {
            "fail" => {
                let error = json!({"code": "e", "message": "no"});
                server.post("/ojs/v1/workers/nack", &json!({"job_id": id, "error": error})).await.expect(200);
            }
            "complete" => {
                let path = format!("/ojs/v1/jobs/{id}");
                server
                    .put(&format!("{path}/progress"), &json!({"progress": 0.5, "message": "m"}))
                    .await
                    .expect(200);
                server.put(&format!("{path}/checkpoint"), &json!({"state": {"at": 1}})).await.expect(200);
                let ack = json!({"job_id": id, "result": {"got": 1}});
                server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
            }
            _ => {}
        }
    }
}

/// One that waits for a review, and one that has completed.
async fn agent(server: &OjsServer) {
    let fleet = &server.fleet;
    let meta = json!({"agent": "victim"});
    let job = json!({"type": "agent.book", "args": ["book it"], "meta": meta, "options": {"queue": QUEUE}});
    let id = server.push(&job).await;
    fleet.wait_for(&id, &[JobState::Pending]).await;
    let job = json!({"type": "agent.x", "args": ["hi"], "meta": meta, "options": {"queue": QUEUE}});
    let id = server.push(&job).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
}
