//! Between turns a worker keeps the lease, unless a more urgent job waits (design §3, OSSA §4).

use super::register;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply};

/// A long job yields the only slot to a more urgent one between two turns, and then resumes without a failed attempt.
/// An equally urgent job waits until it has ended.
#[tokio::test]
async fn a_more_urgent_job_gets_the_slot_between_two_turns() {
    for backend in Backend::ALL {
        let seen = Arc::new(AtomicBool::new(false));
        let was_sent = Arc::clone(&seen);
        let mut fleet = Fleet::builder()
            .on(backend)
            .workers(0)
            .model(move |request: &Value| {
                let input = request["messages"].to_string();
                if input.contains("urgent") {
                    was_sent.store(true, Ordering::SeqCst);
                }
                // The long job continues until the urgent one has run.
                match input.contains("long") && !was_sent.load(Ordering::SeqCst) {
                    true => Reply::call("search", json!({})),
                    false => Reply::text("done"),
                }
            })
            .start()
            .await;
        let limits = "  constraints: {max_turns: 1000000}\n  turn_chain: {max_tool_turns: 1000000}";
        register(&fleet, &format!("  tools: [{{type: http, name: search}}]\n{limits}")).await;
        let job = |input: &str, priority: i64| json!({"type": "agent.desk", "args": [input], "meta": {"agent": "desk"}, "options": {"priority": priority}});
        let long = fleet.push(&job("long", 0)).await;
        fleet.add_worker(1);
        fleet.models.seen(1).await;
        let equal = fleet.push(&job("equal", 0)).await;
        let urgent = fleet.push(&job("urgent", 10)).await;
        fleet.wait_for(&urgent, &[JobState::Completed]).await;
        let done = fleet.wait_for(&long, &[JobState::Completed]).await;
        assert_eq!((&done["result"], &done["attempt"]), (&json!("done"), &json!(2)), "{done:#}");
        assert!(done["errors"].as_array().is_none_or(Vec::is_empty), "{done:#}");
        fleet.wait_for(&equal, &[JobState::Completed]).await;
        let mut order: Vec<String> =
            fleet.models.calls().iter().map(|call| call.input().to_owned()).collect();
        order.dedup();
        assert_eq!(order, ["long", "urgent", "long", "equal"]);
        fleet.end().await;
    }
}
