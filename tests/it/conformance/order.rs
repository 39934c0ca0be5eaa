//! Which jobs a claim returns, and in which order.

use super::backend::Opened;
use super::jobs::{NOW, agent, plain, request};
use super::on_every_store;
use std::collections::BTreeSet;
use turnstone_domain::{JobId, NewJob};
use turnstone_store::{Claim, ClaimRequest, JobKind};

on_every_store![
    higher_priority_goes_first_and_equal_priority_in_order_of_arrival,
    order_of_arrival_holds_within_a_batch,
    two_claims_never_get_the_same_job,
    an_agent_worker_never_claims_a_plain_job,
    queues_are_served_in_the_order_in_which_they_are_named,
    a_claim_takes_no_more_than_it_asks_for,
];

fn ids(claims: Vec<Claim>) -> Vec<JobId> {
    claims.into_iter().map(|claim| claim.job).collect()
}

async fn higher_priority_goes_first_and_equal_priority_in_order_of_arrival(at: &Opened) {
    let mut ids_pushed = Vec::new();
    for priority in [0, 5, 0, -3, 5, 100, -100] {
        ids_pushed.push(at.push(plain(priority)).await);
    }
    let order = ids(at.claim(JobKind::Plain, 10).await);
    assert_eq!(order, [5, 1, 4, 0, 2, 3, 6].map(|at: usize| ids_pushed[at].clone()));
}

async fn order_of_arrival_holds_within_a_batch(at: &Opened) {
    let jobs: Vec<NewJob> = (0..50).map(|_| plain(0)).collect();
    let pushed: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    at.store.intake.push(jobs).await.unwrap();
    let mut order = ids(at.claim(JobKind::Plain, 20).await);
    order.extend(ids(at.claim(JobKind::Plain, 100).await));
    assert_eq!(order, pushed);
}

async fn two_claims_never_get_the_same_job(at: &Opened) {
    at.store.intake.push((0..50).map(|_| plain(0)).collect()).await.unwrap();
    let mut claimed = Vec::new();
    // A claim may find every row locked by another one, so the claims are repeated until no job is left.
    for _ in 0..10 {
        let claims = futures::future::join_all((0..10).map(|_| at.claim(JobKind::Plain, 10))).await;
        claimed.extend(claims.into_iter().flatten().map(|claim| claim.job));
    }
    let different: BTreeSet<&JobId> = claimed.iter().collect();
    assert_eq!((claimed.len(), different.len()), (50, 50));
}

async fn an_agent_worker_never_claims_a_plain_job(at: &Opened) {
    let id = at.push(plain(0)).await;
    assert!(at.claim(JobKind::Agent, 1).await.is_empty());
    assert_eq!(ids(at.claim(JobKind::Plain, 1).await), [id]);
    let id = at.push(agent(None)).await;
    assert!(at.claim(JobKind::Plain, 1).await.is_empty());
    assert_eq!(ids(at.claim(JobKind::Agent, 1).await), [id]);
}

async fn queues_are_served_in_the_order_in_which_they_are_named(at: &Opened) {
    let in_queue = |queue: &str| NewJob { queue: queue.into(), ..plain(0) };
    let a = at.push(in_queue("a")).await;
    let b = at.push(in_queue("b")).await;
    let other = at.push(in_queue("c")).await;
    let queues = vec!["b".into(), "nobody-knows-it".into(), "a".into()];
    let claims = at.store.ledger.claim(ClaimRequest { queues, ..request(JobKind::Plain, 10, NOW) }).await;
    assert_eq!(ids(claims.unwrap()), [b, a]);
    assert_eq!(ids(at.claim(JobKind::Plain, 10).await), [other]);
}

async fn a_claim_takes_no_more_than_it_asks_for(at: &Opened) {
    at.store.intake.push((0..5).map(|_| plain(0)).collect()).await.unwrap();
    assert!(at.claim(JobKind::Plain, 0).await.is_empty());
    assert_eq!(at.claim(JobKind::Plain, 3).await.len(), 3);
    assert_eq!(at.claim(JobKind::Plain, 3).await.len(), 2);
    assert!(at.claim(JobKind::Plain, 3).await.is_empty());
}
