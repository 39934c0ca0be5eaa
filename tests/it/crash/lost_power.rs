//! On SQLite, a claim of agents does not wait for the disk. A loss of power may undo it, and then its lease is good for nothing.

use crate::conformance::jobs::{LEASE, NOW, agent, plain, request};
use std::fs;
use turnstone_domain::TurnWrite;
use turnstone_domain::feed::{Cursor, FeedFilter, names_by_default};
use turnstone_store::{JobKind, LedgerError, StoreError};
use turnstone_tests::{Place, scratch};

#[tokio::test]
async fn a_claim_that_a_loss_of_power_undid_is_made_again_and_its_first_lease_writes_nothing() {
    let (used, left) = (scratch::folder(), scratch::folder());
    let place = Place::from(used.path().join("t.db"));
    place.migrate().await;
    let (store, _) = place.open().await;
    store.intake.push(vec![agent(None)]).await.unwrap();
    // The claim is only in the log's last part, which is not on the disk yet. So a loss of power leaves these files.
    for name in ["t.db", "t.db-wal"] {
        fs::copy(used.path().join(name), left.path().join(name)).unwrap();
    }
    let first = store.ledger.claim(request(JobKind::Agent, 1, NOW)).await.unwrap().remove(0).lease;
    drop(store);
    let (store, _) = Place::from(left.path().join("t.db")).open().await;
    let again = store.ledger.claim(request(JobKind::Agent, 1, NOW)).await.unwrap().remove(0);
    assert!(again.job == first.job && again.lease.token != first.token, "{:?}", again.lease);
    let written = store.ledger.checkpoint(&first, TurnWrite::default(), NOW, LEASE).await;
    assert!(matches!(written, Err(LedgerError::LeaseLost(_))), "{written:?}");
    store.ledger.checkpoint(&again.lease, TurnWrite::default(), NOW, LEASE).await.unwrap();
}

#[tokio::test]
async fn an_older_copy_of_the_file_refuses_cursors_of_events_that_it_lacks() {
    let folder = scratch::folder();
    let [used, copy] = ["t.db", "older.db"].map(|name| Place::from(folder.path().join(name)));
    used.migrate().await;
    let (store, _) = used.open().await;
    let filter = FeedFilter::of_names(names_by_default());
    store.intake.push(vec![plain(0)]).await.unwrap();
    let kept = store.feed.feed(&filter, Cursor::START, 10).await.unwrap().cursor;
    used.change(&format!("VACUUM INTO '{copy}'")).await;
    store.intake.push(vec![plain(0)]).await.unwrap();
    let lost = store.feed.feed(&filter, kept, 10).await.unwrap().cursor;
    drop(store);
    let (store, _) = copy.open().await;
    let new = plain(0);
    let id = new.id.clone();
    store.intake.push(vec![new]).await.unwrap();
    let refused = store.feed.feed(&filter, lost, 10).await;
    assert!(matches!(refused, Err(StoreError::CursorLost { .. })), "{refused:?}");
    let rest = store.feed.feed(&filter, kept, 10).await.unwrap().events;
    assert_eq!(rest.iter().map(|event| event.job_id.as_ref()).collect::<Vec<_>>(), [Some(&id)]);
}
