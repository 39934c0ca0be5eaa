//! One order of all events, with concurrent writers and deletions.

use super::super::on_every_store;
use super::{events, job, page};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::feed::{Cursor, FeedFilter, names_by_default};
use turnstone_tests::{Backend, OjsServer, Place};

use crate::conformance::jobs;

on_every_store![every_event_comes_once_while_events_are_written, numbers_are_never_reused];

const WRITERS: usize = 8;
const BATCH: usize = 50;

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
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "an event came behind one that is later");
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
    let id = server.push(&job("q")).await;
    let after = page(server, &format!("after={before}"), 1).await;
    assert_eq!(events(&after)[0]["subject"], id);
}

/// PostgreSQL may commit transactions in another order than they began.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_older_transaction_that_commits_late_is_waited_for() {
    let server = OjsServer::start(Backend::Postgres).await;
    let Place::Url(url) = &server.fleet.place else { panic!("a database") };
    let mut late = PgConnection::connect(url).await.unwrap();
    late.execute("BEGIN").await.unwrap();
    late.execute(
        "INSERT INTO journal (stream, last_event, events, job_seq, turn, names, at, body) VALUES \
         (900000, 1, 1, 900000, 0, 'job.enqueued', 0, '[{\"event\":{\"data\":{\"queue\":\"late\"}}}]')",
    )
    .await
    .unwrap();
    let id = server.push(&job("q")).await;
    let early = page(&server, "", 0).await;
    assert_eq!(events(&early).len(), 0, "an event is hidden while an earlier one may commit: {early}");
    let cursor = early["cursor"].as_str().unwrap().to_owned();
    late.execute("COMMIT").await.unwrap();
    let both = page(&server, &format!("after={cursor}"), 2).await;
    let subjects: Vec<_> = events(&both).iter().map(|event| event["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["late", &id]);
    server.end().await;
}
