//! Queues that share workers by weight.

use super::backend::Opened;
use super::jobs::{NOW, agent, plain, request};
use super::on_every_store;
use futures::future::join_all;
use std::collections::BTreeMap;
use turnstone_domain::NewJob;
use turnstone_store::{ClaimRequest, JobKind, Pool, PoolStrategy, Store};

on_every_store![
    weights_hold_over_thousands_of_claims_by_several_processes,
    weights_hold_for_agent_jobs,
    an_idle_queue_does_not_save_up,
    round_robin_takes_turns_and_strict_serves_the_heaviest,
    a_queue_outside_of_the_pool_keeps_its_place,
    a_claim_of_one_queue_is_served_and_counted,
    shares_are_counted_since_the_pool_was_set,
];

async fn set(at: &Opened, strategy: PoolStrategy, queues: &[(&str, i64)]) {
    let queues = queues.iter().map(|(queue, weight)| ((*queue).to_owned(), *weight)).collect();
    let pool = Pool { name: "p".into(), strategy, config: serde_json::Map::new(), queues };
    at.store.queues.set_pool(pool, NOW).await.unwrap();
}

async fn fill(at: &Opened, queue: &str, jobs: usize) {
    for _ in 0..jobs / 500 {
        let jobs = (0..500).map(|_| NewJob { queue: queue.into(), ..plain(0) }).collect();
        at.store.intake.push(jobs).await.unwrap();
    }
    let rest = (0..jobs % 500).map(|_| NewJob { queue: queue.into(), ..plain(0) }).collect();
    at.store.intake.push(rest).await.unwrap();
}

async fn active(at: &Opened, queue: &str) -> i64 {
    at.query(&format!("SELECT count(*) FROM jobs WHERE state = 'active' AND queue = '{queue}'")).await
}

async fn claim(store: &Store, kind: JobKind, queues: &[&str], limit: usize) -> usize {
    let queues = queues.iter().map(|queue| (*queue).to_owned()).collect();
    store.ledger.claim(ClaimRequest { queues, ..request(kind, limit, NOW) }).await.unwrap().len()
}

async fn weights_hold_over_thousands_of_claims_by_several_processes(at: &Opened) {
    let weights = [("a", 5), ("b", 3), ("c", 2)];
    set(at, PoolStrategy::Weighted, &weights).await;
    for (queue, _) in weights {
        fill(at, queue, 1_500).await;
    }
    let other = at.place.open().await;
    // Batches of 1 to 8, from all queues or from named ones, in two processes at once.
    let work = |store: &Store, worker: usize| {
        let store = store.clone();
        async move {
            let mut got = 0;
            for _ in 0..50 {
                let queues: &[&str] = if worker.is_multiple_of(2) { &["*"] } else { &["c", "a", "b"] };
                got += claim(&store, JobKind::Plain, queues, 1 + worker).await;
            }
            got
        }
    };
    let workers = (0..8).map(|n| work(if n < 4 { &at.store } else { &other }, n));
    let got: usize = join_all(workers).await.into_iter().sum();
    assert!(got > 1_500, "{got} claims");
    for (queue, weight) in weights {
        let part = active(at, queue).await * 1_000 / i64::try_from(got).unwrap();
        assert!((part - weight * 100).abs() <= 20, "{queue} got {part} of a thousand");
    }
    let shares = at.store.queues.shares().await.unwrap();
    let counted: BTreeMap<String, i64> = shares.into_iter().map(|s| (s.queue, s.claims)).collect();
    for (queue, _) in weights {
        assert_eq!(counted[queue], active(at, queue).await);
    }
}

async fn weights_hold_for_agent_jobs(at: &Opened) {
    set(at, PoolStrategy::Weighted, &[("a", 3), ("b", 1)]).await;
    for queue in ["a", "b"] {
        let jobs = (0..100).map(|_| NewJob { queue: queue.into(), ..agent(None) }).collect();
        at.store.intake.push(jobs).await.unwrap();
    }
    for _ in 0..20 {
        assert_eq!(claim(&at.store, JobKind::Agent, &["b", "a"], 4).await, 4);
    }
    assert_eq!((active(at, "a").await, active(at, "b").await), (60, 20));
}

async fn an_idle_queue_does_not_save_up(at: &Opened) {
    set(at, PoolStrategy::Weighted, &[("a", 1), ("b", 1)]).await;
    fill(at, "a", 300).await;
    assert_eq!(claim(&at.store, JobKind::Plain, &["*"], 200).await, 200);
    fill(at, "b", 100).await;
    assert_eq!(claim(&at.store, JobKind::Plain, &["*"], 40).await, 40);
    let b = active(at, "b").await;
    assert!((19..=21).contains(&b), "{b}");
}

async fn round_robin_takes_turns_and_strict_serves_the_heaviest(at: &Opened) {
    set(at, PoolStrategy::RoundRobin, &[("a", 9), ("b", 1)]).await;
    fill(at, "a", 50).await;
    fill(at, "b", 50).await;
    for _ in 0..10 {
        claim(&at.store, JobKind::Plain, &["*"], 1).await;
    }
    assert_eq!((active(at, "a").await, active(at, "b").await), (5, 5));
    set(at, PoolStrategy::Strict, &[("a", 1), ("b", 9)]).await;
    claim(&at.store, JobKind::Plain, &["a", "b"], 50).await;
    assert_eq!((active(at, "a").await, active(at, "b").await), (10, 50));
}

async fn a_queue_outside_of_the_pool_keeps_its_place(at: &Opened) {
    set(at, PoolStrategy::Weighted, &[("a", 1), ("b", 1)]).await;
    for queue in ["a", "b", "first", "last"] {
        fill(at, queue, 10).await;
    }
    assert_eq!(claim(&at.store, JobKind::Plain, &["first", "a", "last", "b"], 24).await, 24);
    assert_eq!((active(at, "first").await, active(at, "last").await), (10, 0));
    assert_eq!((active(at, "a").await, active(at, "b").await), (7, 7));
}

async fn a_claim_of_one_queue_is_served_and_counted(at: &Opened) {
    set(at, PoolStrategy::Weighted, &[("a", 1), ("b", 1)]).await;
    fill(at, "a", 100).await;
    fill(at, "b", 100).await;
    assert_eq!(claim(&at.store, JobKind::Plain, &["a"], 30).await, 30);
    // The workers of both queues compensate for the jobs that one worker took from `a` alone.
    assert_eq!(claim(&at.store, JobKind::Plain, &["*"], 50).await, 50);
    assert_eq!((active(at, "a").await, active(at, "b").await), (40, 40));
}

async fn shares_are_counted_since_the_pool_was_set(at: &Opened) {
    set(at, PoolStrategy::Weighted, &[("a", 2), ("b", 1)]).await;
    fill(at, "a", 10).await;
    claim(&at.store, JobKind::Plain, &["*"], 4).await;
    let claims = |shares: Vec<turnstone_store::Share>| {
        shares.into_iter().map(|share| (share.queue, share.weight, share.claims)).collect::<Vec<_>>()
    };
    let row = |queue: &str, weight, claims| (queue.to_owned(), weight, claims);
    let shares = at.store.queues.shares().await.unwrap();
    assert_eq!(claims(shares), [row("a", 2, 4), row("b", 1, 0)]);
    set(at, PoolStrategy::Weighted, &[("a", 3)]).await;
    assert_eq!(claims(at.store.queues.shares().await.unwrap()), [row("a", 3, 0)]);
    let pools = at.store.queues.pools(Some("p")).await.unwrap();
    assert_eq!(pools[0].queues, [("a".to_owned(), 3)]);
    assert!(at.store.queues.pools(Some("x")).await.unwrap().is_empty());
}
