//! The operator's side: dead letters, jobs in bulk, statistics.

mod bulk;
mod dead_letters;
mod jobs;
mod stats;
mod workers;

use crate::conformance::jobs::{discard, nothing, request, retry};
use serde_json::{Value, json};
use turnstone_domain::Settlement;
use turnstone_store::JobKind;
use turnstone_tests::OjsServer;

/// Returns a job that becomes a dead letter when it fails.
pub(super) fn mortal(queue: &str, job_type: &str) -> Value {
    let retry = json!({"max_attempts": 1, "on_exhaustion": "dead_letter"});
    json!({"type": job_type, "args": [1], "options": {"queue": queue, "retry": retry}})
}

/// Claims every available plain job, ends one of them, and releases the others.
async fn end(server: &OjsServer, id: &str, how: Settlement) {
    let (ledger, now) = (&server.fleet.store.ledger, server.fleet.now());
    let mut found = false;
    for claim in ledger.claim(request(JobKind::Plain, 100, now)).await.unwrap() {
        if claim.job.as_str() == id {
            found = true;
            ledger.settle(&claim.lease, nothing(), how.clone(), now).await.unwrap();
        } else {
            ledger.release(&[claim.lease], now).await.unwrap();
        }
    }
    assert!(found, "{id} was not there to be claimed");
}

/// Fails the only attempt of a job.
pub(super) async fn fail(server: &OjsServer, id: &str) {
    end(server, id, discard()).await;
}

/// Fails an attempt; the next one is a minute later.
async fn stumble(server: &OjsServer, id: &str) {
    end(server, id, retry(server.fleet.now().plus_ms(60_000))).await;
}

/// Enqueues a job that becomes a dead letter.
pub(super) async fn dead(server: &OjsServer, queue: &str, job_type: &str) -> String {
    let id = server.push(&mortal(queue, job_type)).await;
    fail(server, &id).await;
    id
}

/// Returns the ids of a list.
pub(super) fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}
