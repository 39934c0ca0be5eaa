//! A few jobs on both databases, and workers that are killed at random.
//!
//! `fleet/chaos.rs` has the larger run, with several workers at once and a database that breaks too.

use crate::crash::spawn;
use crate::random::Random;
use futures::future::join_all;
use serde_json::json;
use std::collections::HashMap;
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_survive_random_kills() {
    join_all(Backend::ALL.map(|backend| survive(backend, 12, 4))).await;
}

#[ignore = "long: fifty jobs and twelve kills on each database"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_jobs_survive_random_kills() {
    join_all(Backend::ALL.map(|backend| survive(backend, 50, 12))).await;
}

async fn survive(backend: Backend, jobs: usize, rounds: usize) {
    let fleet = Fleet::builder()
        .on(backend)
        .workers(0)
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("search", json!({"n": 1})),
            1 => Reply::call("search", json!({"n": 2})),
            _ => Reply::text("done"),
        })
        .start()
        .await;
    let mut ids = Vec::new();
    for n in 0..jobs {
        let job = json!({"type": "agent.chaos", "args": [format!("job {n}")], "ext_agent_model": "m",
                         "ext_agent_token_budget": 50_000, "ext_agent_tools": [{"name": "search"}]});
        ids.push(fleet.push(&job).await);
    }
    let mut random = Random::new(0x5eed_cafe);
    for _ in 0..rounds {
        let mut worker = spawn(&fleet, 8, None);
        let more = random.below(12) + 1;
        let seen = fleet.models.calls().len();
        fleet.models.seen((seen + more).min(jobs * 3)).await;
        worker.kill().await.expect("SIGKILL");
        fleet.release_all().await;
    }
    let last = spawn(&fleet, 16, None);
    for id in &ids {
        let done = fleet.wait_for(id, &[JobState::Completed, JobState::Discarded, JobState::Pending]).await;
        assert_eq!(done["state"], "completed", "on {backend:?}: {done:#}");
        assert_eq!(done["ext_agent_tokens_used"], 2 * (12 + 7) + (10 + 5), "tokens of {id} on {backend:?}");
    }
    drop(last);
    // An idempotent call may reach its tool twice, but never under two keys.
    let mut keys: HashMap<String, usize> = HashMap::new();
    for call in fleet.tools.calls() {
        *keys.entry(call.key).or_default() += 1;
    }
    assert_eq!(keys.len(), jobs * 2, "on {backend:?}");
    let checkpoints = fleet.number(turnstone_tests::journal::CHECKPOINTS).await;
    assert_eq!(checkpoints, i64::try_from(jobs * 3 * 7).unwrap(), "on {backend:?}");
    fleet.end().await;
}
