//! The feed of all events.

mod list;
mod lost;
mod order;
mod stream;

use serde_json::{Value, json};
use turnstone_domain::{Lease, RawJson, Settlement, TurnWrite};
use turnstone_store::{Claim, ClaimRequest, JobKind};
use turnstone_tests::OjsServer;

/// Claims the next plain job.
pub async fn claim(server: &OjsServer) -> Claim {
    let request = ClaimRequest {
        kind: JobKind::Plain,
        queues: vec!["*".to_owned()],
        limit: 1,
        worker_id: "w".to_owned(),
        lease_ms: 60_000,
        now: server.fleet.now(),
        runtime_tags: None,
        tenant: None,
    };
    server.fleet.store.ledger.claim(request).await.unwrap().remove(0)
}

/// Ends a claimed job.
pub async fn settle(server: &OjsServer, lease: &Lease, end: Settlement) {
    let ledger = &server.fleet.store.ledger;
    ledger.settle(lease, TurnWrite::default(), end, server.fleet.now()).await.unwrap();
}

/// Enqueues a job, claims it and completes it with this result.
pub async fn complete(server: &OjsServer, job: &Value, result: &str) -> String {
    let id = server.push(job).await;
    let claim = claim(server).await;
    assert_eq!(claim.job.as_str(), id, "another job stood in the way");
    server.fleet.clock.advance_ms(250);
    let result = RawJson::from_text(result.to_owned()).unwrap();
    settle(server, &claim.lease, Settlement::Complete { result, withheld: false }).await;
    id
}

/// Returns a job for a queue.
pub fn job(queue: &str) -> Value {
    json!({"type": "a.b", "args": [], "options": {"queue": queue}})
}

/// Waits for a page with `enough` events.
pub async fn page(server: &OjsServer, query: &str, enough: usize) -> Value {
    let mut page = Value::Null;
    server
        .fleet
        .until("the events are there", async || {
            page = server.get(&format!("/ojs/v1/events?{query}")).await.expect(200).json();
            events(&page).len() >= enough
        })
        .await;
    page
}

/// Returns the events of a page.
pub fn events(page: &Value) -> &Vec<Value> {
    page["events"].as_array().unwrap()
}

/// Returns the names of the events of a page.
pub fn names(page: &Value) -> Vec<&str> {
    events(page).iter().map(|event| event["type"].as_str().unwrap()).collect()
}
