//! A worker process for the crash tests: the product's worker over a ledger that may kill it.
//!
//! `crash-worker DATABASE MODEL_URL TOOL_URL SLOTS LEASE_MS SETTINGS [POINT]`. The database is an SQLite file
//! or a `postgres://` address. The settings are those of [`worker::with_settings`], the points those of
//! [`Point::parse`]. The process ends when its standard input does.

#![expect(clippy::expect_used, reason = "a program of the tests that cannot continue says so and fails")]

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use turnstone_tests::crash::{CrashLedger, Point};
use turnstone_tests::{Place, fleet, worker};
use turnstone_worker::Worker;

#[tokio::main]
async fn main() {
    fleet::install_crypto();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [place, model_url, tool_url, slots, lease_ms, settings, point @ ..] = args.as_slice() else {
        panic!("usage: crash-worker DATABASE MODEL_URL TOOL_URL SLOTS LEASE_MS SETTINGS [POINT]");
    };
    let point = point.first().map(|text| Point::parse(text).expect("a point"));
    let lease = Duration::from_millis(lease_ms.parse().expect("milliseconds"));
    let slots = slots.parse().expect("a number of slots");
    let (store, clock) = Place::from(place.as_str()).open().await;
    let id = format!("process-{}", std::process::id());
    let deps = worker::deps(&id, (store.ledger, store.doorbell), clock, model_url, tool_url, slots)
        .with_breakers(store.breakers)
        .with_freezes(store.freezes);
    let mut deps = worker::with_settings(deps, settings);
    deps.options.lease = lease;
    deps.ledger = Arc::new(CrashLedger::new(deps.ledger, point));
    let stop = CancellationToken::new();
    let running = tokio::spawn(Worker::new(deps).run(stop.clone()));
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0_u8; 1])).await;
    stop.cancel();
    running.await.expect("the worker").expect("the worker ends well");
}
