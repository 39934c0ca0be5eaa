//! A job with a damaged row is set aside with its own code and does not block other jobs.

use futures::future::join_all;
use serde_json::json;
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply};

async fn push(fleet: &Fleet, kind: &str) -> String {
    let job = json!({"type": "agent.ask", "args": [kind], "ext_agent_model": "m",
                     "options": {"retry": {"max_attempts": 3, "on_exhaustion": "discard"}}});
    fleet.push(&job).await
}

/// Rows that no version of the product writes: one that is no JSON, one of the wrong form, and a missing one. The job
/// beside them runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_job_is_a_dead_letter_and_others_run() {
    join_all(Backend::ALL.map(damaged)).await;
}

async fn damaged(backend: Backend) {
    let mut fleet = Fleet::builder().on(backend).workers(0).model(|_| Reply::text("done")).start().await;
    let mut broken = Vec::new();
    for damage in [
        "UPDATE job_envelopes SET args = '[1' WHERE job_seq = (SELECT max(seq) FROM jobs)",
        "UPDATE job_envelopes SET retry = '{\"max_attempts\": \"many\"}' WHERE job_seq = (SELECT max(seq) FROM jobs)",
        "DELETE FROM job_envelopes WHERE job_seq = (SELECT max(seq) FROM jobs)",
    ] {
        broken.push(push(&fleet, "broken").await);
        fleet.place.change(damage).await;
    }
    let whole = push(&fleet, "whole").await;
    fleet.add_worker(4);
    let done = fleet.wait_for(&whole, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let gone =
        "SELECT count(*) FROM jobs WHERE state = 'discarded' AND dead_letter = 1 AND lease_token IS NULL";
    fleet.until("the broken ones are set aside", async || fleet.number(gone).await == 3).await;
    assert_eq!(fleet.models.calls().len(), 1, "no model call for {broken:?}");
    let errors_of_jobs = "SELECT count(*) FROM job_errors WHERE error LIKE '%cannot be read%'";
    assert_eq!(fleet.number(errors_of_jobs).await, 3);
    fleet.end_unchecked().await;
}
