//! Batches of agent jobs: their progress, their spending, and the costs by tag.

use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply};

fn script(request: &Value) -> Reply {
    match request["model"].as_str() {
        Some("broken") => Reply::Status(400),
        _ => Reply::text("done"),
    }
}

/// The progress counts states, last errors, tokens and costs of the jobs with the tag, and of no others.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_batch_adds_up_its_jobs() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let job = |model: &str, tags: &[&str]| {
            json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": model,
                   "options": {"tags": tags, "retry": {"max_attempts": 1}}})
        };
        let mut used = 0;
        for _ in 0..2 {
            let id = fleet.push(&job("m", &["run=7"])).await;
            let done = fleet.wait_for(&id, &[JobState::Completed]).await;
            used += done["ext_agent_tokens_used"].as_i64().unwrap();
        }
        let other = fleet.push(&job("m", &["run=8"])).await;
        fleet.wait_for(&other, &[JobState::Completed]).await;
        let broken = fleet.push(&job("broken", &["run=7"])).await;
        let failed = fleet.wait_for(&broken, &[JobState::Discarded]).await;
        used += failed["ext_agent_tokens_used"].as_i64().unwrap_or_default();
        let batch = fleet.get("/batches/run%3D7").await;
        assert_eq!((&batch["jobs"], &batch["open"]), (&json!(3), &json!(0)), "{batch:#}");
        let states = &batch["states"];
        assert_eq!((&states["completed"], &states["discarded"]), (&json!(2), &json!(1)), "{batch:#}");
        assert_eq!(batch["errors"], json!([{"code": failed["error"]["code"], "jobs": 1}]), "{batch:#}");
        assert!(used > 0);
        assert_eq!(batch["tokens"], json!({"used": used, "reserved": 0}), "{batch:#}");
        let runs = async |query: &str| {
            let costs = fleet.get(&format!("/costs?{query}")).await;
            costs["costs"].as_array().unwrap().iter().filter_map(|row| row["runs"].as_i64()).sum::<i64>()
        };
        assert_eq!((runs("tag=run%3D7").await, runs("tag=none").await), (2, 0));
        assert_eq!(runs("days=7").await, 3);
        fleet.end().await;
    }
}
