//! The database loses the last commits of a turn, as a failover to a standby that misses them does. The worker lives and keeps its
//! lease; the job resumes from the record that is stored.

use crate::stores::on_stores;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::earlier::Earlier;
use turnstone_tests::model_server::{outcomes, trip};
use turnstone_tests::{Backend, Fleet, Gate};

on_stores!(
    everywhere: [a_turn_whose_commits_the_database_lost_is_run_again_without_a_hole],
    sqlite_first: [a_call_whose_intent_the_database_lost_is_made_again_without_a_hole],
);

fn job() -> Value {
    json!({"type": "agent.trip", "args": ["go"], "ext_agent_model": "m", "ext_agent_token_budget": 50_000,
           "ext_agent_tools": [{"name": "search"}, {"name": "book"}]})
}

/// Asserts that the job completes, and that its record is whole.
async fn ends_whole(fleet: Fleet, id: &str) {
    let done = fleet.wait_for(id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("booked")), "{done:#}");
    let engagement = fleet.engagement_of(id).await;
    let read = fleet.get(&format!("/engagements/{engagement}/checkpoints?per_page=100")).await;
    let rows = read["checkpoints"].as_array().unwrap();
    let phases: Vec<(i64, &str)> =
        rows.iter().map(|row| (row["turn"].as_i64().unwrap(), row["phase"].as_str().unwrap())).collect();
    let every = ["init", "norm", "resol", "infer", "exec", "persist", "emit"];
    let expected: Vec<(i64, &str)> = (1..=4).flat_map(|turn| every.map(|phase| (turn, phase))).collect();
    assert_eq!(phases, expected);
    assert!(read["missing"].is_null(), "{read:#}");
    fleet.end().await;
}

async fn a_turn_whose_commits_the_database_lost_is_run_again_without_a_hole(backend: Backend) {
    let gates = [Gate::default(), Gate::default()];
    let held = gates.clone();
    let model = move |request: &Value| match held.get(outcomes(request)) {
        Some(gate) => trip(request).behind(gate),
        None => trip(request),
    };
    let fleet = Fleet::builder().on(backend).model(model).start().await;
    let id = fleet.push(&job()).await;
    fleet.models.seen(1).await;
    let earlier = Earlier::keep(&fleet.place).await;
    gates[0].open();
    fleet.models.seen(2).await;
    // The answer of turn 1 and the beginning of turn 2 are lost; the worker waits for the answer of turn 2.
    earlier.restore().await;
    gates[1].open();
    ends_whole(fleet, &id).await;
}

async fn a_call_whose_intent_the_database_lost_is_made_again_without_a_hole(backend: Backend) {
    let (asked, called) = (Gate::default(), Gate::default());
    let held = asked.clone();
    let model = move |request: &Value| match outcomes(request) {
        0 => trip(request).behind(&held),
        _ => trip(request),
    };
    let fleet = Fleet::builder().on(backend).model(model).start().await;
    fleet.tools.hold(&called);
    let id = fleet.push(&job()).await;
    fleet.models.seen(1).await;
    let earlier = Earlier::keep(&fleet.place).await;
    asked.open();
    fleet.tools.seen(1).await;
    earlier.restore().await;
    called.open();
    ends_whole(fleet, &id).await;
}
