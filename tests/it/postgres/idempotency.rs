//! Two processes push under one idempotency key at the same time.

use super::{few, migrated, opened};
use crate::conformance::jobs::{NOW, agent};
use futures::future::{join, join_all};
use std::sync::Arc;
use turnstone_domain::NewJob;
use turnstone_store::{IdempotentPush, RecordedPush, Store};
use turnstone_tests::Place;

/// The number of concurrent keys.
const KEYS: usize = 20;
const ROUNDS: usize = 5;

fn push(name: String, jobs: Vec<NewJob>) -> IdempotentPush {
    let (request, now) = ("r".to_owned(), NOW);
    let answer = Arc::new(|pushed: &[turnstone_store::Pushed]| Some(format!("{} jobs", pushed.len())));
    IdempotentPush { name, request, now, expires_at: NOW.plus_ms(1_000), jobs, answer }
}

async fn push_all(store: &Store, round: usize, reversed: bool) -> Vec<RecordedPush> {
    let once = async |key: usize| {
        let jobs = vec![agent(None), agent(None)];
        store.idempotency.push_once(push(format!("k-{round}-{key}"), jobs)).await.unwrap()
    };
    let order: Vec<usize> = if reversed { (0..KEYS).rev().collect() } else { (0..KEYS).collect() };
    let mut recorded: Vec<_> = join_all(order.into_iter().map(async |key| (key, once(key).await))).await;
    recorded.sort_by_key(|(key, _)| *key);
    recorded.into_iter().map(|(_, recorded)| recorded).collect()
}

/// Of two processes one pushes, and the other one returns its record, in whichever order they lock the keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn two_processes_push_once_under_one_key() {
    let database = migrated().await;
    let options = few(&database.url);
    let (one, other) = (opened(&options).await, opened(&options).await);
    for round in 0..ROUNDS {
        let (firsts, seconds) = join(push_all(&one, round, false), push_all(&other, round, true)).await;
        for (first, second) in firsts.iter().zip(&seconds) {
            assert_eq!((&first.pushed, &first.answer), (&second.pushed, &second.answer));
            assert_ne!(first.repeated, second.repeated, "one of the two has pushed");
        }
    }
    let stored = Place::from(&database).number("SELECT count(*) FROM jobs").await;
    assert_eq!(stored, i64::try_from(ROUNDS * KEYS * 2).unwrap());
}
