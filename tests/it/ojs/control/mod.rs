//! Control of agents over HTTP, on both databases, with real workers.

mod fork;
mod merge;
mod pause;
mod tool_retry;

use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_tests::Fleet;

/// Sends a control request for a job.
async fn control(fleet: &Fleet, id: &str, verb: &str, body: Value) -> (StatusCode, Value) {
    fleet.post(&format!("/ojs/v1/agents/{id}/{verb}"), &body).await
}

/// Sends a control request that must succeed.
async fn granted(fleet: &Fleet, id: &str, verb: &str, body: Value) -> Value {
    let (status, answer) = control(fleet, id, verb, body).await;
    assert_eq!(status, StatusCode::OK, "{verb}: {answer:#}");
    answer
}

/// An agent job that may use the tools.
fn agent_job(input: &str) -> Value {
    json!({"type": "agent.test", "args": [input], "ext_agent_model": "m", "ext_agent_token_budget": 50_000,
           "ext_agent_tools": [{"name": "search"}, {"name": "book"}]})
}

/// Returns the reservations of all budgets and all jobs.
async fn reserved(fleet: &Fleet) -> i64 {
    fleet.number("SELECT CAST(coalesce((SELECT sum(reserved) FROM totals), 0) + coalesce((SELECT sum(reserved) FROM jobs), 0) AS BIGINT)").await
}
