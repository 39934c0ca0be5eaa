//! A worker is killed during its model calls: other workers resume its turns when its leases have expired.

use super::Site;
use serde_json::json;
use std::collections::HashMap;
use turnstone_domain::JobState;
use turnstone_tests::{Gate, Reply, model_server};

const JOBS: usize = 9;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn other_workers_resume_the_turns_of_a_killed_one() {
    let gate = Gate::default();
    let held = gate.clone();
    // The second turn of every job is in a model call when the worker dies.
    let site = Site::start(move |request| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"n": 1})),
        _ => Reply::text("done").behind(&held),
    })
    .await;
    let _time = site.keep_time();
    let mut workers = Vec::new();
    for name in ["first", "second", "third"] {
        workers.push(site.worker(name, &["--slots", "9", "--lease", "60m"], &[]).await);
    }
    let mut jobs = Vec::new();
    for n in 0..JOBS {
        jobs.push(site.push(&format!("job {n}")).await);
    }
    site.fleet.models.seen(2 * JOBS).await;
    let mut at = 0;
    while site.jobs_of(["first", "second", "third"][at]).await.is_empty() {
        at += 1;
    }
    let name = ["first", "second", "third"][at];
    let orphans = site.jobs_of(name).await;
    let mut victim = workers.remove(at);
    victim.signal("KILL");
    assert_eq!(victim.ended().await, None);

    // Its leases expire, and no others.
    let over =
        format!("UPDATE jobs SET lease_expires_at = 0 WHERE state = 'active' AND worker_id = '{name}'");
    site.fleet.place.change(&over).await;
    // The others are not notified: they call the model for these jobs again when the leases have expired.
    site.fleet.models.seen(2 * JOBS + orphans.len()).await;
    gate.open();
    for id in &jobs {
        let done =
            site.fleet.wait_for(id, &[JobState::Completed, JobState::Discarded, JobState::Pending]).await;
        let attempts = if orphans.contains(id) { 2 } else { 1 };
        assert_eq!((&done["state"], &done["attempt"]), (&json!("completed"), &json!(attempts)), "{done:#}");
        assert_ne!(site.last_worker(id).await, name, "{done:#}");
        assert_eq!(done["ext_agent_tokens_used"], 12 + 7 + 10 + 5, "{done:#}");
    }
    let mut requested: HashMap<(String, usize), usize> = HashMap::new();
    for call in site.fleet.models.calls() {
        *requested.entry((call.input().to_owned(), call.outcomes())).or_default() += 1;
    }
    for (n, id) in jobs.iter().enumerate() {
        let times = |turn| requested[&(format!("job {n}"), turn)];
        assert_eq!(times(0), 1, "an answer that was durable was bought again: {id}");
        assert_eq!(times(1), 1 + usize::from(orphans.contains(id)), "{id}");
    }
    assert_eq!(site.fleet.tools.calls().len(), JOBS, "a call that is not idempotent was repeated");
    let checkpoints = site.fleet.number(turnstone_tests::journal::CHECKPOINTS).await;
    assert_eq!(checkpoints, i64::try_from(JOBS * 2 * 7).unwrap());
    for worker in workers {
        worker.stop().await;
    }
    site.fleet.end().await;
}
