//! Cron entries: their creation, their occurrences, and the outcome of each.

mod clock_changes;
mod entries;
mod firing;
mod overlap;

use serde_json::{Value, json};
use turnstone_tests::OjsServer;

const MINUTE: i64 = 60_000;

/// Creates an entry that fires every minute, with these changes.
async fn every_minute(server: &OjsServer, name: &str, more: Value) -> Value {
    let mut body = json!({
        "name": name, "expression": "* * * * *",
        "job_template": {"type": "report.build", "args": [name, 1], "options": {"queue": "reports"}},
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.post("/ojs/v1/cron", &body).await.expect(201).json()["cron"].clone()
}

/// Returns the entry.
async fn entry(server: &OjsServer, name: &str) -> Value {
    server.get(&format!("/ojs/v1/cron/{name}")).await.expect(200).json()["cron"].clone()
}

/// Returns the outcomes of the latest occurrences, newest first.
async fn outcomes(server: &OjsServer, name: &str) -> Vec<String> {
    let history = server.get(&format!("/ojs/v1/cron/{name}/history?limit=100")).await.expect(200).json();
    let runs = history["runs"].as_array().unwrap().clone();
    runs.iter().map(|run| run["outcome"].as_str().unwrap().to_owned()).collect()
}

/// Returns the jobs of the entry's queue, oldest first.
async fn jobs(server: &OjsServer) -> Vec<Value> {
    let list = server.get("/ojs/v1/admin/jobs?queue=reports&per_page=100").await.expect(200).json();
    let mut jobs = list["items"].as_array().unwrap().clone();
    jobs.reverse();
    jobs
}

async fn states(server: &OjsServer) -> Vec<String> {
    jobs(server).await.iter().map(|job| job["state"].as_str().unwrap().to_owned()).collect()
}

/// Moves the clock to just before the next full minute.
async fn to_the_minute(server: &OjsServer) {
    let now = server.fleet.now().0;
    server.fleet.clock.advance_ms(MINUTE - now.rem_euclid(MINUTE));
}
