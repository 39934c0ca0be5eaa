//! `[providers.x] concurrency` bounds the calls that one worker process makes at once.

use super::languages::providers;
use serde_json::json;
use turnstone_domain::JobState;
use turnstone_tests::model_server::Gate;
use turnstone_tests::{Fleet, Reply};

#[tokio::test]
async fn calls_beyond_a_providers_concurrency_wait() {
    let gate = Gate::default();
    let held = gate.clone();
    let mut fleet =
        Fleet::builder().workers(0).model(move |_| Reply::text("done").behind(&held)).start().await;
    let providers = providers(json!({"kind": "openai", "base_url": fleet.models.url, "concurrency": 2}));
    fleet.add_worker_with(8, |mut deps| {
        deps.providers = providers;
        deps
    });
    let mut jobs = Vec::new();
    for _ in 0..6 {
        jobs.push(fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await);
    }
    for id in &jobs {
        fleet.wait_for(id, &[JobState::Active]).await;
    }
    fleet.models.seen(2).await;
    assert_eq!(fleet.models.count(), 2, "the others wait for a place");
    gate.open();
    for id in &jobs {
        assert_eq!(fleet.settled(id).await["state"], "completed");
    }
    assert_eq!(fleet.models.count(), 6);
    fleet.end().await;
}
