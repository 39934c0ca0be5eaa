//! The server is killed with SIGKILL during an import or a fork: all of it is stored or nothing, and the repeated
//! command succeeds.

use super::{exported, job, ran, runs_again, trip};
use crate::faults::gate::Gate;
use crate::faults::site::Site;
use crate::program::{PATIENCE, Program};
use reqwest::Client;
use serde_json::{Value, json};
use std::path::Path;
use turnstone_domain::record::EngagementRecord;
use turnstone_tests::wait::until;
use turnstone_tests::{Fleet, Place, journal};

/// Tables that an import and a fork write.
const TABLES: [&str; 6] = ["jobs", "engagements", "journal", "tool_calls", "forks", "inheritances"];

/// Transactions in progress.
const BUSY: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                    AND xact_start IS NOT NULL AND backend_type = 'client backend'";

fn client() -> Client {
    turnstone_tests::http::client_builder().timeout(PATIENCE).build().unwrap()
}

/// Sends a document; returns `None` without an answer.
async fn import(url: String, document: String) -> Option<u16> {
    let sent = client().post(format!("{url}/engagements/import")).body(document);
    let sent = sent.header("content-type", "application/x-ndjson").send().await;
    sent.ok().map(|answer| answer.status().as_u16())
}

/// Requests a fork; returns `None` without an answer.
async fn fork(url: String, engagement: String) -> Option<(u16, Value)> {
    let body = json!({"at_turn": 2, "phase": "exec"});
    let sent = client().post(format!("{url}/engagements/{engagement}/fork")).json(&body).send().await.ok()?;
    Some((sent.status().as_u16(), sent.json().await.unwrap_or_default()))
}

async fn export(url: &str, engagement: &str) -> String {
    let answer = client().get(format!("{url}/engagements/{engagement}/export")).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    answer.text().await.unwrap()
}

/// Records an engagement of four turns, and returns its id and its document.
async fn recorded() -> (String, String) {
    let fleet = Fleet::builder().model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let document = exported(&fleet, &engagement).await;
    fleet.end().await;
    (engagement, document)
}

/// Killed in the middle of the transaction, which waits at a gate in the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_killed_import_or_fork_leaves_nothing_on_postgres() {
    let (engagement, document) = recorded().await;
    let site = Site::start(&[]).await;
    let url = site.database.url.clone();
    let rows = async |site: &Site| {
        let mut rows = Vec::new();
        for table in TABLES {
            rows.push(site.number(&format!("SELECT count(*) FROM {table}")).await);
        }
        rows
    };
    let killed = async |site: &Site, gate: Gate, mut api: crate::faults::site::Api| {
        gate.reached(site).await;
        api.program.signal("KILL");
        api.program.ended().await;
        gate.open().await;
        site.until("the transaction is over", BUSY, |busy| busy == 0).await;
    };
    let api = site.api(&url).await;
    let gate = Gate::at_checkpoints(&site).await;
    let sent = tokio::spawn(import(api.url.clone(), document.clone()));
    killed(&site, gate, api).await;
    assert_eq!(sent.await.unwrap(), None, "it was not confirmed");
    assert_eq!(rows(&site).await, [0; TABLES.len()], "{TABLES:?}");

    let api = site.api(&url).await;
    assert_eq!(import(api.url.clone(), document).await, Some(201));
    assert_eq!(runs_again(&export(&api.url, &engagement).await).await, (4, 28));
    let before = rows(&site).await;
    let gate = Gate::again(&site).await;
    let sent = tokio::spawn(fork(api.url.clone(), engagement.clone()));
    killed(&site, gate, api).await;
    assert_eq!(sent.await.unwrap(), None);
    assert_eq!(rows(&site).await, before, "{TABLES:?}");

    let api = site.api(&url).await;
    let (status, answer) = fork(api.url.clone(), engagement.clone()).await.unwrap();
    assert_eq!(status, 201, "{answer:#}");
    let now = rows(&site).await;
    assert_eq!((now[0], now[1], now[4], now[5]), (2, 2, 1, 1), "{TABLES:?}: {now:?}");
    assert_eq!(runs_again(&export(&api.url, &engagement).await).await, (4, 28));
    api.program.stop().await;
}

/// Returns the size of a file, or 0 without one.
fn size(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |known| known.len())
}

/// Killed while the transaction grows in the write-ahead log, later in each round, and at last when it may have
/// ended. All of it is stored or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_import_or_fork_leaves_nothing_on_sqlite() {
    let (engagement, document) = recorded().await;
    let mut record = EngagementRecord::read(&document).unwrap();
    // So large that the log grows long before the commit.
    for event in &mut record.events {
        event.data["padding"] = "x".repeat(150_000).into();
    }
    let document = record.write().unwrap();
    let folder = turnstone_tests::scratch::folder();
    let place: Place = folder.path().join("data/turnstone.db").into();
    let log = folder.path().join("data/turnstone.db-wal");
    let start = async || {
        let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
        let mut server = Program::start(folder.path(), &arguments, &[]);
        let url = server.first_line("turnstone listens on ").await;
        (server, url)
    };
    let rows = async |table: &str| place.number(&format!("SELECT count(*) FROM {table}")).await;
    for step in 0..4 {
        let (mut server, url) = start().await;
        let enough = size(&log) + step * 1_100_000;
        let sent = tokio::spawn(import(url, document.clone()));
        until("the log grows, or it is answered", async || size(&log) > enough || sent.is_finished()).await;
        server.signal("KILL");
        server.ended().await;
        drop(server);
        let answered = sent.await.unwrap();
        let found = [rows("jobs").await, rows("engagements").await, place.number(journal::MESSAGES).await];
        let (done, reported) =
            (place.number(journal::CHECKPOINTS).await, place.number(journal::EVENTS).await);
        let found = (found, done, rows("tool_calls").await, reported > 0);
        let is_here = rows("jobs").await == 1;
        let expected = if is_here { ([1, 1, 8], 28, 3, true) } else { ([0, 0, 0], 0, 0, false) };
        assert_eq!(found, expected, "step {step}");
        assert!(is_here || answered != Some(201), "a confirmed import is stored");
        if is_here {
            break;
        }
    }
    let (mut server, url) = start().await;
    let again = import(url.clone(), document).await.unwrap();
    assert_eq!(again, if rows("jobs").await == 1 && again == 409 { 409 } else { 201 });
    assert_eq!(runs_again(&export(&url, &engagement).await).await, (4, 28));
    let sent = tokio::spawn(fork(url, engagement.clone()));
    until("it is on its way", async || sent.is_finished() || size(&log) > 0).await;
    server.signal("KILL");
    server.ended().await;
    drop(server);
    let answered = sent.await.unwrap();
    let forks = rows("forks").await;
    assert_eq!((rows("engagements").await, rows("inheritances").await), (1 + forks, forks));
    assert!(forks == 1 || answered.is_none(), "{answered:?}");
    let (server, url) = start().await;
    let (status, answer) = fork(url.clone(), engagement.clone()).await.unwrap();
    assert_eq!((status, rows("forks").await), (201, forks + 1), "{answer:#}");
    assert_eq!(runs_again(&export(&url, &engagement).await).await, (4, 28));
    server.stop().await;
}
