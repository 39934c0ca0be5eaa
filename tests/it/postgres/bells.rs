//! Notifications between processes, through the database.

use super::{few, migrated, opened};
use crate::conformance::jobs::{NOW, agent, plain, request};
use sqlx::postgres::PgListener;
use tokio::sync::broadcast::Receiver;
use turnstone_store::{JobKind, PostgresOptions, Ring, Store};
use turnstone_tests::servers::Postgres;
use turnstone_tests::wait;
use turnstone_tests::wait::until;

/// Waits for one notification among others.
async fn heard(ear: &mut Receiver<Ring>, wanted: &Ring) {
    let heard = async { while ear.recv().await.unwrap() != *wanted {} };
    wait::output(&format!("{wanted:?} arrives"), heard).await;
}

/// Notifies from one store until the other receives it: a notification without a listener is lost.
async fn connected(from: &Store, to: &Store, word: &str) {
    let mut ear = to.doorbell.listen();
    let ring = Ring::Revoked(word.to_owned());
    until("a notification arrives", async || {
        from.doorbell.ring(ring.clone());
        while let Ok(heard) = ear.try_recv() {
            if heard == ring {
                return true;
            }
        }
        false
    })
    .await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_push_wakes_another_process_also_after_a_reconnect() {
    let database = migrated().await;
    let options = few(&database.url);
    let (pushing, claiming) = (opened(&options).await, opened(&options).await);
    connected(&pushing, &claiming, "first").await;

    let mut ear = claiming.doorbell.listen();
    let id = pushing.intake.push(vec![agent(None)]).await.unwrap().remove(0).id;
    heard(&mut ear, &Ring::Available).await;
    let claims = claiming.ledger.claim(request(JobKind::Agent, 1, NOW)).await.unwrap();
    assert_eq!(claims[0].job, id, "the notification came before its job was visible");

    let mut ear = claiming.doorbell.listen();
    let ended = Postgres::shared().await.terminate_connections(&database).await;
    assert!(ended > 0);
    // Notifications during the outage are lost, so the listener looks for all kinds of work.
    heard(&mut ear, &Ring::Available).await;
    connected(&pushing, &claiming, "again").await;
    let mut ear = claiming.doorbell.listen();
    pushing.intake.push(vec![agent(None)]).await.unwrap();
    heard(&mut ear, &Ring::Available).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_relay_that_lags_drops_no_revocation() {
    let database = migrated().await;
    let options = few(&database.url);
    let (ringing, hearing) = (opened(&options).await, opened(&options).await);
    connected(&ringing, &hearing, "first").await;
    let mut ear = hearing.doorbell.listen_for_work();
    let revoked = Ring::Revoked("between thousands of events".to_owned());
    ringing.doorbell.ring(revoked.clone());
    // More than a relay keeps, without a moment in which it could send.
    for number in 0..10_000 {
        ringing.doorbell.ring(Ring::Events(number.to_string()));
    }
    heard(&mut ear, &revoked).await;
    ringing.doorbell.ring(Ring::Available);
    heard(&mut ear, &Ring::Available).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_listener_does_not_take_the_only_connection_that_reads() {
    let database = migrated().await;
    let options = PostgresOptions { connections: 1, ..PostgresOptions::new(&database.url) };
    let (one, other) = (opened(&options).await, opened(&options).await);
    connected(&one, &other, "listening").await;
    connected(&other, &one, "listening, too").await;
    assert_eq!(other.upkeep.next_due().await.unwrap(), None);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_process_without_notifications_finds_its_jobs_by_polling() {
    let database = migrated().await;
    let listening = few(&database.url);
    let polling = PostgresOptions { listen: false, ..listening.clone() };
    let (one, other, deaf) = (opened(&listening).await, opened(&listening).await, opened(&polling).await);
    let mut ear = deaf.doorbell.listen();
    connected(&one, &other, "between the two").await;
    let id = one.intake.push(vec![plain(0)]).await.unwrap().remove(0).id;
    let claims = deaf.ledger.claim(request(JobKind::Plain, 1, NOW)).await.unwrap();
    assert_eq!(claims[0].job, id);
    while let Ok(ring) = ear.try_recv() {
        assert!(!matches!(ring, Ring::Revoked(_)), "{ring:?} came from another process");
    }
    let mut ear = other.doorbell.listen();
    deaf.doorbell.ring(Ring::Revoked("by the deaf one".into()));
    connected(&one, &other, "once more").await;
    while let Ok(ring) = ear.try_recv() {
        assert_ne!(ring, Ring::Revoked("by the deaf one".into()));
    }
}

/// Notifies about a lease, which is always sent, and returns the message in which that went out.
async fn message(wire: &mut PgListener, store: &Store, word: &str) -> String {
    store.doorbell.ring(Ring::Available);
    store.doorbell.ring(Ring::Events("stream".to_owned()));
    store.doorbell.ring(Ring::Revoked(word.to_owned()));
    let sent = async {
        let mut sent = String::new();
        while !sent.contains(word) {
            Box::pin(wire.recv()).await.unwrap().payload().clone_into(&mut sent);
        }
        sent
    };
    Box::pin(wait::output("the ring about a lease is sent", sent)).await
}

/// A process sends only what another process waits for, and one that begins to wait misses nothing.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn hints_are_sent_only_while_another_process_waits_for_them() {
    let database = migrated().await;
    // It listens, and does not announce itself.
    let mut wire = PgListener::connect(&database.url).await.unwrap();
    wire.listen("turnstone").await.unwrap();
    let alone = opened(&few(&database.url)).await;
    let mut word = 0;
    until("a process that is alone sends no hint", async || {
        word += 1;
        let message = message(&mut wire, &alone, &format!("token-{word}")).await;
        !message.contains("available") && !message.contains("stream")
    })
    .await;

    let worker = opened(&few(&database.url)).await;
    let mut work = worker.doorbell.listen_for_work();
    heard(&mut work, &Ring::Available).await;
    until("hints about work are sent, and events are not", async || {
        word += 1;
        let message = message(&mut wire, &alone, &format!("token-{word}")).await;
        message.contains("available") && !message.contains("stream")
    })
    .await;

    // The first follower of events looks once for what was not sent, and is notified from then on.
    let mut events = worker.doorbell.listen();
    heard(&mut events, &Ring::AllEvents).await;
    alone.doorbell.ring(Ring::Events("followed".to_owned()));
    heard(&mut events, &Ring::Events("followed".to_owned())).await;
}
