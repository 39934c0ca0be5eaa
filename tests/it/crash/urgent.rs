//! A worker process is killed around the settlement by which a less urgent turn yields its slot.

use super::budgets::{PRICES, assert_booked, assert_nothing_reserved};
use super::{die, on_every_store, replace, shared_out};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply};

const MANIFEST: &str = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: desk}\nspec:\n  role: You work at the desk.\n  \
                        tools: [{type: http, name: web_search}]\n  constraints: {max_turns: 1000000}\n  \
                        turn_chain: {max_tool_turns: 1000000}\n";

fn job(input: &str, priority: i64) -> Value {
    json!({"type": "agent.desk", "args": [input], "meta": {"agent": "desk"}, "ext_agent_model": "m",
           "options": {"priority": priority}})
}

/// A worker with one slot is killed before or after its turn has yielded the slot. Its successor runs the more urgent
/// job first and then resumes the other one.
async fn makes_way(backend: Backend, point: &str) {
    let served = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&served);
    // The long job calls a tool until the urgent one has run.
    let script = move |request: &Value| {
        let input = request["messages"].to_string();
        if input.contains("urgent") {
            seen.store(true, Ordering::SeqCst);
        }
        match input.contains("long") && !seen.load(Ordering::SeqCst) {
            true => Reply::call("web_search", json!({})),
            false => Reply::text("done"),
        }
    };
    let fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
    fleet.register(MANIFEST).await;
    let at = format!("at {point} on {backend:?}");
    let long = fleet.push(&job("long", 0)).await;
    let urgent = async {
        fleet.models.seen(1).await;
        fleet.push(&job("urgent", 10)).await
    };
    let ((), urgent) = tokio::join!(die(&fleet, 1, PRICES, point), urgent);
    let left = if point.ends_with("before") { JobState::Active } else { JobState::Available };
    assert_eq!(fleet.job(&long).await["state"], left.as_str(), "{at}");
    assert!(!served.load(Ordering::SeqCst), "the dead worker had one slot, {at}");
    fleet.release_all().await;
    assert_nothing_reserved(&fleet, &at).await;
    replace(&fleet, 1, PRICES, &long).await;
    let states = [fleet.job(&long).await, fleet.job(&urgent).await].map(|job| job["state"].clone());
    assert_eq!(states, ["completed", "completed"], "{at}");
    let calls = fleet.models.calls();
    let mut order: Vec<&str> = calls.iter().map(|call| call.input()).collect();
    order.dedup();
    assert_eq!(order, ["long", "urgent", "long"], "{at}");
    let answered: i64 = calls.iter().map(|call| call.reported).sum();
    let used = "SELECT CAST(sum(tokens_used) AS BIGINT) FROM jobs";
    assert_eq!(fleet.number(used).await, answered, "no answer was lost, {at}");
    assert_booked(&fleet, &[], &at).await;
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_yields_once_although_its_worker_is_killed() {
    for (backend, point) in shared_out(&["0:give_way:before", "0:give_way:after"]) {
        makes_way(backend, point).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: both points on both databases, each with dozens of turns"]
async fn a_turn_yields_once_on_both_databases() {
    on_every_store(async |backend| {
        for point in ["0:give_way:before", "0:give_way:after"] {
            makes_way(backend, point).await;
        }
    })
    .await;
}
