//! The keys of a database: it opens only with the key that it was written with, and a new key replaces the old one.

use super::{completed, keys, sealed};
use crate::conformance::jobs::{NOW, plain};
use serde_json::json;
use turnstone_domain::{NewJob, RawJson};
use turnstone_store::{Store, StoreError};
use turnstone_tests::{Backend, Place};

async fn refusal(place: &Place, current: Option<u8>, previous: &[u8]) -> String {
    let keys = current.map(|current| keys(current, previous));
    match place.open_sealed(keys.as_ref()).await {
        Err(StoreError::Unfit(why) | StoreError::Misconfigured(why)) => why,
        Err(other) => panic!("it is refused for another reason: {other}"),
        Ok(_) => panic!("it was opened"),
    }
}

async fn opened(place: &Place, current: u8, previous: &[u8]) -> Store {
    place.open_sealed(Some(&keys(current, previous))).await.unwrap().0
}

/// Returns a job with content.
fn job() -> NewJob {
    let mut job = plain(0);
    job.envelope.args = RawJson::from_text("[\"of the new key\"]".into()).unwrap();
    job
}

/// Returns the result of a job, read by a store.
async fn result_of(store: &Store, id: &str) -> String {
    store.views.job(&id.into()).await.unwrap().unwrap().result.unwrap().as_str().to_owned()
}

#[tokio::test]
async fn without_its_key_a_database_is_refused_unchanged() {
    for backend in Backend::ALL {
        let server = sealed(backend).await;
        completed(&server, json!([1]), json!({"of": "mine"})).await;
        let place = &server.fleet.place;
        let sealed_with: Vec<(String,)> = place.rows("SELECT body FROM data_keys").await;
        let why = refusal(place, None, &[]).await;
        assert!(why.contains(keys(1, &[]).id()) && why.contains("no key is configured"), "{why}");
        let why = refusal(place, Some(2), &[3]).await;
        assert!(why.contains("none of the configured ones") && why.contains(keys(2, &[]).id()), "{why}");
        let now: Vec<(String,)> = place.rows("SELECT body FROM data_keys").await;
        assert_eq!(sealed_with, now, "{backend:?}");
        assert_eq!(now.len(), 1);
        server.end().await;
    }
}

#[tokio::test]
async fn a_new_key_reads_old_rows_and_replaces_the_old_key() {
    for backend in Backend::ALL {
        let server = sealed(backend).await;
        let place = server.fleet.place.clone();
        let old = completed(&server, json!([1]), json!({"of": "old"})).await;
        let values = "SELECT result FROM job_results ORDER BY job_seq";
        let before: Vec<(String,)> = place.rows(values).await;

        let store = opened(&place, 2, &[1]).await;
        assert_eq!(result_of(&store, &old).await, r#"{"of":"old"}"#, "it only reads so far");
        opened(&place, 1, &[]).await;
        let new = job();
        store.intake.push(vec![new.clone()]).await.unwrap();
        // From the first write on the old key is unnecessary, and a process with the old key only is refused.
        let store = opened(&place, 2, &[]).await;
        assert_eq!(result_of(&store, &old).await, r#"{"of":"old"}"#);
        assert!(refusal(&place, Some(1), &[]).await.contains("none of the configured ones"));
        let after: Vec<(String,)> = place.rows(values).await;
        assert_eq!(before, after, "a value was sealed anew on {backend:?}");
        let args: Vec<(String,)> = place.rows("SELECT args FROM job_envelopes ORDER BY job_seq").await;
        assert!(args[0].0.starts_with("sealed:1:1:") && args[1].0.starts_with("sealed:1:2:"), "{args:?}");
        let pushed = store.views.job(&new.id).await.unwrap().unwrap();
        assert_eq!(pushed.envelope.args, new.envelope.args);
        server.end().await;
    }
}

#[tokio::test]
async fn a_process_with_the_next_key_reads_rows_written_with_it() {
    for backend in Backend::ALL {
        let server = sealed(backend).await;
        let place = server.fleet.place.clone();
        completed(&server, json!([1]), json!(1)).await;
        // SQLite has one writer at a time, so these two do not run together.
        let (waiting, ahead) = (opened(&place, 1, &[2]).await, opened(&place, 2, &[1]).await);
        let job = job();
        ahead.intake.push(vec![job.clone()]).await.unwrap();
        let read = waiting.views.job(&job.id).await.unwrap().unwrap();
        assert_eq!(read.envelope.args, job.envelope.args, "{backend:?}");
        let term = waiting.upkeep.lead("w", 60_000, NOW).await.unwrap();
        assert!(term.is_some(), "it continues to write");
        server.end().await;
    }
}

#[tokio::test]
async fn a_data_key_that_is_damaged_is_named() {
    for backend in Backend::ALL {
        let server = sealed(backend).await;
        completed(&server, json!([1]), json!(1)).await;
        server
            .fleet
            .place
            .change("UPDATE data_keys SET body = replace(body, substr(body, 40, 4), 'AAAA')")
            .await;
        let why = refusal(&server.fleet.place, Some(1), &[]).await;
        assert!(why.contains("data key 1") && why.contains("data_keys") && why.contains("backup"), "{why}");
        server.end().await;
    }
}
