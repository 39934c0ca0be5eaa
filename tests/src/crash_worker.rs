//! A worker process for the crash tests: the product's worker over a ledger that may kill it.
//!
//! `crash-worker DATABASE MODEL_URL TOOL_URL SLOTS [TURN:WHAT:before|after]`. It ends when its standard input does.

#![expect(clippy::expect_used, reason = "a program of the tests that cannot go on says so and fails")]

use std::io::Read;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turnstone_domain::SystemClock;
use turnstone_domain::ids::SystemIds;
use turnstone_store::SqliteStore;
use turnstone_tests::crash::{CrashLedger, Point};
use turnstone_tests::{fleet, worker};
use turnstone_worker::Worker;

#[tokio::main]
async fn main() {
    fleet::install_crypto();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, model_url, tool_url, slots, point @ ..] = args.as_slice() else {
        panic!("usage: crash-worker DATABASE MODEL_URL TOOL_URL SLOTS [TURN:WHAT:before|after]");
    };
    let point = point.first().map(|text| Point::parse(text).expect("a point"));
    let store = SqliteStore::open(path.as_ref(), Arc::new(SystemIds)).await.expect("the store");
    let ledger = Arc::new(CrashLedger::new(store.ledger, point));
    let id = format!("process-{}", std::process::id());
    let slots = slots.parse().expect("a number of slots");
    let deps = worker::deps(&id, (ledger, store.doorbell), Arc::new(SystemClock), model_url, tool_url, slots);
    let stop = CancellationToken::new();
    let running = tokio::spawn(Worker::new(deps).run(stop.clone()));
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0_u8; 1])).await;
    stop.cancel();
    running.await.expect("the worker").expect("the worker ends well");
}
