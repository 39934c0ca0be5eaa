//! OpenAgentSpec: restrictions, exposed values, repetitions, and the Engagement object, over HTTP and through real
//! workers.

mod engagement;
mod exposes;
pub mod memory;
mod restrictions;
mod short_circuit;

use futures::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// Starts a fleet with one worker whose model gives these replies in order, and repeats the last one.
pub async fn fleet(backend: Backend, replies: Vec<Reply>) -> Fleet {
    let replies = Arc::new(replies);
    let script = move |request: &Value| {
        let said = model_server::outcomes(request).min(replies.len() - 1);
        replies[said].clone()
    };
    Fleet::builder().on(backend).model(script).start().await
}

/// Enqueues a job for an agent.
pub async fn ask(fleet: &Fleet, agent: &str) -> String {
    let user = json!({"id": "u-17", "email": "u@example.org"});
    fleet.push(&json!({"type": "agent.policy", "args": ["go"], "meta": {"agent": agent, "user": user}})).await
}

/// Runs a job to its end and returns it with its engagement's id.
pub async fn run(fleet: &Fleet, agent: &str) -> (Value, String) {
    let id = ask(fleet, agent).await;
    let job = fleet.settled(&id).await;
    let engagement = fleet.engagement_of(&id).await;
    (job, engagement)
}

/// Returns everything that a caller can read of an engagement, as one text.
pub async fn visible(fleet: &Fleet, job: &str, engagement: &str) -> String {
    let mut seen = String::new();
    for path in [
        format!("/engagements/{engagement}"),
        format!("/engagements/{engagement}/events"),
        format!("/engagements/{engagement}/messages"),
        format!("/engagements/{engagement}/tool-calls"),
        format!("/engagements/{engagement}/checkpoints?bodies=true"),
        format!("/ojs/v1/jobs/{job}"),
        format!("/ojs/v1/jobs/{job}/events"),
    ] {
        seen.push_str(&fleet.get(&path).await.to_string());
    }
    // The same through the Agent Protocol and A2A.
    let agent = fleet.get(&format!("/engagements/{engagement}")).await["agent"].as_str().unwrap().to_owned();
    seen.push_str(&fleet.get(&format!("/agents/{agent}/getevents/{engagement}")).await.to_string());
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": job, "historyLength": 100}});
    let client = turnstone_tests::http::client();
    let task = client.post(format!("{}/a2a/{agent}", fleet.url)).header("a2a-version", "1.0").json(&call);
    let task: Value = task.send().await.unwrap().json().await.unwrap();
    assert_eq!(task["result"]["id"], job, "{task:#}");
    seen.push_str(&task.to_string());
    seen
}

/// Runs a test on both databases at the same time.
pub async fn on_every_store<F: Future<Output = ()>>(test: impl Fn(Backend) -> F) {
    join_all(Backend::ALL.map(test)).await;
}
