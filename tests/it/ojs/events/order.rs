//! One order of all events, with concurrent writers and deletions.

use super::super::on_every_store;
use super::{events, job, page};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::feed::{Cursor, FeedFilter, names_by_default};
use turnstone_domain::{RawJson, Settlement, TurnWrite};
use turnstone_store::JobKind;
use turnstone_tests::servers::Postgres;
use turnstone_tests::{Backend, OjsServer, Place};

use crate::conformance::jobs;

on_every_store![
    every_event_comes_once_while_events_are_written,
    events_of_a_stream_are_numbered_in_its_order,
    numbers_are_never_reused,
];

const WRITERS: usize = 8;
const BATCH: usize = 50;
const JOBS: usize = 12;

async fn every_event_comes_once_while_events_are_written(server: &OjsServer) {
    every_event_comes_once(server, 5).await;
}

#[tokio::test]
#[ignore = "long: 10,000 events"]
async fn ten_thousand_events_come_once_each_on_postgres() {
    let server = OjsServer::start(Backend::Postgres).await;
    every_event_comes_once(&server, 25).await;
    server.end().await;
}

/// Reads all events while each of the writers enqueues so many batches of jobs.
async fn every_event_comes_once(server: &OjsServer, batches: usize) {
    // Two processes write, where the database allows two.
    let other = match &server.fleet.place {
        Place::Url(_) => server.fleet.place.open().await.0,
        Place::File(_) => server.fleet.store.clone(),
    };
    let left = Arc::new(AtomicUsize::new(WRITERS));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let store = if writer % 2 == 0 { server.fleet.store.clone() } else { other.clone() };
        let left = Arc::clone(&left);
        writers.push(tokio::spawn(async move {
            for _ in 0..batches {
                let batch = (0..BATCH).map(|_| jobs::plain(0)).collect();
                store.intake.push(batch).await.unwrap();
            }
            left.fetch_sub(1, Ordering::SeqCst);
        }));
    }
    let (feed, filter) = (&server.fleet.store.feed, FeedFilter::of_names(names_by_default()));
    let (mut cursor, mut seen, mut subjects) = (Cursor::START, Vec::new(), BTreeSet::new());
    server
        .fleet
        .until("every event was read", async || {
            let written = left.load(Ordering::SeqCst) == 0;
            let page = feed.feed(&filter, cursor, 97).await.unwrap();
            for event in page.events {
                subjects.insert(event.job_id.clone().unwrap().0);
                seen.push(event.cursor);
            }
            cursor = page.cursor;
            written && seen.len() >= WRITERS * batches * BATCH
        })
        .await;
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(seen.len(), WRITERS * batches * BATCH);
    assert_eq!(subjects.len(), seen.len(), "an event came twice");
    assert!(
        seen.windows(2).all(|pair| pair[0].place() < pair[1].place()),
        "an event came behind one that is later"
    );
    assert_eq!(feed.feed(&filter, cursor, 1).await.unwrap().events, []);
}

async fn numbers_are_never_reused(server: &OjsServer) {
    const DAYS_31: i64 = 31 * 24 * 60 * 60 * 1_000;
    for _ in 0..3 {
        let id = server.push(&job("q")).await;
        server.delete(&format!("/ojs/v1/jobs/{id}")).await.expect(200);
    }
    let before = page(server, "", 6).await["cursor"].as_str().unwrap().to_owned();
    server.pass_ms(DAYS_31).await;
    server.pass_ms(60_000).await;
    assert_eq!(server.fleet.number(turnstone_tests::journal::EVENTS).await, 0, "no event was deleted");
    assert_eq!(server.fleet.number("SELECT count(*) FROM commits").await, 1, "the newest commit stays");
    let id = server.push(&job("q")).await;
    let after = page(server, &format!("after={before}"), 1).await;
    assert_eq!(events(&after)[0]["subject"], id);
}

/// Transactions of this database and of another one of the server have begun and do not end.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_open_transaction_delays_no_reader() {
    let server = OjsServer::start(Backend::Postgres).await;
    let Place::Url(url) = &server.fleet.place else { panic!("a database") };
    let elsewhere = Postgres::shared().await.database().await;
    let mut foreign = PgConnection::connect(&elsewhere.url).await.unwrap();
    foreign.execute("BEGIN; CREATE TABLE held (n BIGINT)").await.unwrap();
    let mut late = PgConnection::connect(url).await.unwrap();
    late.execute(
        "BEGIN; INSERT INTO journal (commit_id, stream, last_event, events, job_seq, turn, names, at, body) VALUES \
         (77, 900000, 1, 1, 900000, 0, 'job.enqueued', 0, '[{\"event\":{\"data\":{\"queue\":\"late\"}}}]'); \
         INSERT INTO new_commits (id) VALUES (77)",
    )
    .await
    .unwrap();
    let id = server.push(&job("q")).await;
    let early = server.get("/ojs/v1/events").await.expect(200).json();
    assert_eq!(events(&early)[0]["subject"], id, "{early}");
    let cursor = early["cursor"].as_str().unwrap();
    late.execute("COMMIT").await.unwrap();
    let later = server.get(&format!("/ojs/v1/events?after={cursor}")).await.expect(200).json();
    assert_eq!(events(&later)[0]["subject"], "late", "{later}");
    foreign.execute("ROLLBACK").await.unwrap();
    server.end().await;
}

/// Jobs are enqueued, claimed and completed by two processes at once, and the events are read meanwhile.
async fn events_of_a_stream_are_numbered_in_its_order(server: &OjsServer) {
    let other = match &server.fleet.place {
        Place::Url(_) => server.fleet.place.open().await.0,
        Place::File(_) => server.fleet.store.clone(),
    };
    let stores = [server.fleet.store.clone(), other];
    let now = server.fleet.now();
    let ended = Arc::new(AtomicUsize::new(0));
    let mut workers = Vec::new();
    for worker in 0..WRITERS {
        let (pusher, claimer) = (stores[worker % 2].clone(), stores[(worker + 1) % 2].clone());
        let ended = Arc::clone(&ended);
        workers.push(tokio::spawn(async move {
            for _ in 0..JOBS {
                pusher.intake.push(vec![jobs::plain(0)]).await.unwrap();
                let request = jobs::request(JobKind::Plain, 1, now);
                for claim in claimer.ledger.claim(request).await.unwrap() {
                    let result = RawJson::from_text("1".to_owned()).unwrap();
                    let end = Settlement::Complete { result, withheld: false };
                    pusher.ledger.settle(&claim.lease, TurnWrite::default(), end, now).await.unwrap();
                }
            }
            ended.fetch_add(1, Ordering::SeqCst);
        }));
    }
    let (feed, filter) = (&server.fleet.store.feed, FeedFilter::of_names(names_by_default()));
    let (mut cursor, mut last) = (Cursor::START, BTreeMap::new());
    let is_written = async || ended.load(Ordering::SeqCst) == WRITERS;
    loop {
        let written = is_written().await;
        let page = feed.feed(&filter, cursor, 50).await.unwrap();
        for event in &page.events {
            let before = last.insert(event.cursor.stream, event.cursor.seq).unwrap_or(0);
            assert_eq!(event.cursor.seq, before + 1, "stream {}", event.cursor.stream);
        }
        cursor = page.cursor;
        if written && page.events.is_empty() {
            break;
        }
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let read: i64 = last.values().sum();
    assert_eq!(read, server.fleet.number(turnstone_tests::journal::EVENTS).await, "every event was read");
}
