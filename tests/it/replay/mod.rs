//! Replays of recorded engagements: forks, differences, and transfers between stores.

mod branches;
mod damaged;
mod diff;
mod foreign;
mod fork;
mod fork_limits;
mod guarded;
mod killed;
mod memory;
mod move_together;
mod revived;
mod signed;
mod tenants;
mod transfer;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_domain::record::EngagementRecord;
use turnstone_tests::Fleet;
use turnstone_tests::model_server::trip;
use turnstone_worker::rerun;

/// Returns a job for an agent that may search and book.
fn job(input: &str) -> Value {
    json!({"type": "agent.trip", "args": [input], "ext_agent_model": "m", "ext_agent_token_budget": 50_000,
           "ext_agent_tools": [{"name": "search"}, {"name": "book"}],
           "options": {"retry": {"max_attempts": 1}}})
}

/// Runs a job to its end and returns its engagement.
async fn ran(fleet: &Fleet, job: &Value) -> String {
    let id = fleet.push(job).await;
    fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    fleet.engagement_of(&id).await
}

/// Forks successfully and returns the fork's engagement and job.
async fn forked(fleet: &Fleet, engagement: &str, body: Value) -> (String, String) {
    let (status, answer) = fleet.post(&format!("/engagements/{engagement}/fork"), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{body}: {answer:#}");
    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
    (text("engagement_id"), text("job_id"))
}

/// Forks and runs the fork to its end. Returns its engagement and its ended job.
async fn fork_ran(fleet: &Fleet, engagement: &str, body: Value) -> (String, Value) {
    let (fork, job) = forked(fleet, engagement, body).await;
    (fork, fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await)
}

/// Returns the turn, role and text of each message.
async fn said(fleet: &Fleet, engagement: &str) -> Vec<(i64, String, String)> {
    let answer = fleet.get(&format!("/engagements/{engagement}/messages?limit=1000")).await;
    let text = |m: &Value, name: &str| m[name].as_str().unwrap_or_default().to_owned();
    let line = |m: &Value| (m["turn"].as_i64().unwrap(), text(m, "role"), text(m, "content"));
    answer["messages"].as_array().unwrap().iter().map(line).collect()
}

async fn calls(fleet: &Fleet, engagement: &str) -> Vec<Value> {
    let answer = fleet.get(&format!("/engagements/{engagement}/tool-calls")).await;
    answer["tool_calls"].as_array().cloned().unwrap()
}

async fn exported(fleet: &Fleet, engagement: &str) -> String {
    let answer = turnstone_tests::http::client();
    let answer = answer.get(format!("{}/engagements/{engagement}/export", fleet.url)).send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert_eq!(status.as_u16(), 200, "{text}");
    text
}

async fn imported(fleet: &Fleet, document: &str) -> (u16, Value) {
    let (status, answer) = fleet.send(Method::POST, "/engagements/import", document.to_owned()).await;
    (status.as_u16(), answer)
}

/// Replays a document and asserts that it is equal.
async fn runs_again(document: &str) -> (i64, i64) {
    let record = EngagementRecord::read(document).unwrap();
    let reported = rerun(&record).await.unwrap();
    assert_eq!(reported.difference, None, "{reported:#?}");
    (reported.turns, reported.phases)
}
