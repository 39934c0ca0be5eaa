//! Errors: retries within a turn, handlers, circuit breakers, escalations, and limits of turns (OSSA §1.5, §2, §4,
//! §6).

mod approvals;
mod at_once;
mod breaker;
mod chain;
mod damaged;
mod escalation;
mod handlers;
mod outage;
mod parallel;
mod retries;
mod urgent;

use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, FleetBuilder, Reply, model_server};

/// A manifest of the agent `desk` with these lines below `spec`.
fn manifest(spec: &str) -> String {
    format!(
        "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: desk}}\nspec:\n  role: You work at the desk.\n{spec}\n"
    )
}

/// A tool of the manifest with short delays between its retries.
fn tool(name: &str, rest: &str) -> String {
    format!(
        "    - {{type: http, name: {name}, retry_policy: {{initial_delay_ms: 1, backoff: fixed}}{rest}}}\n"
    )
}

/// Starts a fleet with the agent `desk`. Its model calls these tools once, all in one answer, and then answers
/// `done`.
async fn desk(builder: FleetBuilder, spec: &str, calls: &'static [&'static str]) -> Fleet {
    let script = move |request: &Value| match model_server::outcomes(request) {
        0 => {
            let calls = calls.iter().enumerate();
            Reply::Calls(calls.map(|(n, name)| ((*name).to_owned(), json!({"n": n}))).collect(), (12, 7))
        }
        _ => Reply::text("done"),
    };
    let fleet = builder.model(script).start().await;
    register(&fleet, spec).await;
    fleet
}

async fn register(fleet: &Fleet, spec: &str) {
    fleet.register(manifest(spec)).await;
}

async fn push(fleet: &Fleet) -> String {
    fleet.push(&json!({"type": "agent.desk", "args": ["go"], "meta": {"agent": "desk"}})).await
}

/// Runs one job of the agent until it settles.
async fn run(fleet: &Fleet) -> (String, Value) {
    let id = push(fleet).await;
    let done = fleet.settled(&id).await;
    (id, done)
}

/// Returns the tool attempts in the audit of a job's engagement.
async fn attempts(fleet: &Fleet, id: &str) -> Vec<Value> {
    let engagement = fleet.engagement_of(id).await;
    let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
    audit["attempts"].as_array().cloned().unwrap_or_default()
}

/// Returns the open review.
async fn open_review(fleet: &Fleet) -> Value {
    let reviews = fleet.get("/reviews?state=open").await;
    assert_eq!(reviews["items"].as_array().map(Vec::len), Some(1), "{reviews:#}");
    reviews["items"][0].clone()
}

async fn answer(fleet: &Fleet, review: &Value, verb: &str) {
    let path = format!("/reviews/{}/{verb}", review["id"].as_str().unwrap());
    let (status, body) = fleet.post(&path, &json!({"by": "ann", "reason": "because"})).await;
    assert!(status.is_success(), "{body}");
}

const ENDED: [JobState; 3] = [JobState::Completed, JobState::Discarded, JobState::Retryable];
