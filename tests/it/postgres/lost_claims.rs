//! A claim of agents does not wait for the disk. A crash of the server may undo it, and then its lease is good for nothing.

use super::{few, opened};
use crate::conformance::jobs::{LEASE, NOW, agent, plain, request};
use turnstone_domain::{NewJob, TurnWrite};
use turnstone_store::{JobKind, LedgerError, PostgresOptions, Store};
use turnstone_tests::Place;
use turnstone_tests::servers::{Database, Postgres};

/// A server of the test's own that writes nothing out before it is asked to.
async fn lazy() -> (Postgres, Database, Store) {
    let server = Postgres::own_with(&[("wal_writer_delay", "10s"), ("wal_writer_flush_after", "1GB")]).await;
    let database = server.database().await;
    Place::from(&database).migrate().await;
    let store = opened(&PostgresOptions { listen: false, ..few(&database.url) }).await;
    (server, database, store)
}

/// Enqueues a job. The hint of a push is a commit that waits; so it comes from another process, which is gone then.
async fn push(database: &Database, job: NewJob) {
    let other = opened(&PostgresOptions { listen: false, ..few(&database.url) }).await;
    other.intake.push(vec![job]).await.unwrap();
}

const ACTIVE: &str = "SELECT count(*) FROM jobs WHERE state = 'active'";

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_claim_that_a_crash_undid_is_made_again_and_its_first_lease_writes_nothing() {
    let (server, database, store) = lazy().await;
    let claim = async || store.ledger.claim(request(JobKind::Agent, 1, NOW)).await.unwrap().remove(0);
    let mut undone = None;
    // A claim that fills a page of the log to its end is written out; so another one may be needed.
    for _ in 0..5 {
        let active = Place::from(&database).number(ACTIVE).await;
        push(&database, agent(None)).await;
        let last = claim().await;
        server.restart_immediate().await;
        if Place::from(&database).number(ACTIVE).await == active {
            undone = Some(last);
            break;
        }
    }
    let first = undone.expect("a crash undoes a claim").lease;
    let again = store.ledger.claim(request(JobKind::Agent, 1, NOW)).await.unwrap().remove(0);
    assert!(again.job == first.job && again.lease.token != first.token, "{:?}", again.lease);
    let written = store.ledger.checkpoint(&first, TurnWrite::default(), NOW, LEASE).await;
    assert!(matches!(written, Err(LedgerError::LeaseLost(_))), "{written:?}");
    store.ledger.checkpoint(&again.lease, TurnWrite::default(), NOW, LEASE).await.unwrap();
}

/// Its start is an event that readers may have seen.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_claim_of_a_plain_job_outlives_a_crash() {
    let (server, database, store) = lazy().await;
    for claimed in 1..=3 {
        push(&database, plain(0)).await;
        assert_eq!(store.ledger.claim(request(JobKind::Plain, 1, NOW)).await.unwrap().len(), 1);
        server.restart_immediate().await;
        assert_eq!(Place::from(&database).number(ACTIVE).await, claimed);
    }
}

/// The first write of a turn flushes its claim.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_claim_outlives_a_crash_once_its_turn_has_written() {
    let (server, database, store) = lazy().await;
    push(&database, agent(None)).await;
    let claim = store.ledger.claim(request(JobKind::Agent, 1, NOW)).await.unwrap().remove(0);
    store.ledger.checkpoint(&claim.lease, TurnWrite::default(), NOW, LEASE).await.unwrap();
    server.restart_immediate().await;
    assert_eq!(Place::from(&database).number(ACTIVE).await, 1);
}
