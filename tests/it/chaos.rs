//! Fifty jobs, and workers that are killed at random.

use crate::crash::spawn;
use serde_json::json;
use std::collections::HashMap;
use turnstone_domain::JobState;
use turnstone_tests::fleet::{check, sqlite};
use turnstone_tests::{Fleet, Reply, model_server};

const JOBS: usize = 50;
const ROUNDS: u64 = 12;

/// A small generator of random numbers, so that a failing run can be repeated (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_jobs_survive_random_kills() {
    let fleet = Fleet::builder()
        .workers(0)
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("search", json!({"n": 1})),
            1 => Reply::call("search", json!({"n": 2})),
            _ => Reply::text("done"),
        })
        .start()
        .await;
    let mut ids = Vec::new();
    for n in 0..JOBS {
        let job = json!({"type": "agent.chaos", "args": [format!("job {n}")], "ext_agent_model": "m",
                         "ext_agent_token_budget": 50_000, "ext_agent_tools": [{"name": "search"}]});
        ids.push(fleet.push(&job).await);
    }
    let mut random = Random(0x5eed_cafe);
    for _ in 0..ROUNDS {
        let mut worker = spawn(&fleet, 8, None);
        let more = usize::try_from(random.below(12) + 1).unwrap();
        let seen = fleet.models.calls().len();
        fleet.models.seen((seen + more).min(JOBS * 3)).await;
        worker.kill().await.expect("SIGKILL");
        fleet.store.upkeep.release_all(fleet.now()).await.unwrap();
    }
    let last = spawn(&fleet, 16, None);
    for id in &ids {
        let done = fleet.wait_for(id, &[JobState::Completed, JobState::Discarded, JobState::Pending]).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!(done["ext_agent_tokens_used"], 2 * (12 + 7) + (10 + 5), "tokens of {id}");
    }
    drop(last);
    // An idempotent call may reach its tool twice, but never under two keys.
    let mut keys: HashMap<String, usize> = HashMap::new();
    for call in fleet.tools.calls() {
        *keys.entry(call.key).or_default() += 1;
    }
    assert_eq!(keys.len(), JOBS * 2);
    assert_eq!(
        sqlite(&fleet.path, "SELECT count(*) FROM checkpoints").await,
        i64::try_from(JOBS * 3 * 7).unwrap()
    );
    check(&fleet.path).await;
}
