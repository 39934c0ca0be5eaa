//! Artifacts: stored with the outcome of their call, once per content and tenant, and deleted with their engagement.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, agent, complete, engagement, nothing};
use super::on_every_store;
use serde_json::json;
use turnstone_domain::artifact::NewArtifact;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::tool_call::{ToolCallMove, ToolOutcome};
use turnstone_domain::{CallId, Ids, NewJob, Terms, TurnWrite};
use turnstone_store::{Claim, Duty, JobKind};

on_every_store![
    a_file_is_kept_with_the_outcome_of_its_call,
    a_repeated_write_is_stored_once,
    the_same_bytes_are_kept_once_per_tenant,
    concurrent_writers_of_one_file_each_have_it,
    a_file_is_deleted_with_its_engagement,
    a_lost_lease_stores_no_file,
];

/// Returns the outcome of a call and the file that it made.
fn made(call_id: &CallId, name: &str, content: &str, withheld: bool) -> TurnWrite {
    let outcome = ToolOutcome::Success { output: json!(name) };
    let settle =
        ToolCallMove::Settle { call_id: call_id.clone(), outcome, handled: None, duration_ms: 1, withheld };
    let file = NewArtifact::new(call_id, 0, name, "text/plain", content.as_bytes()).unwrap();
    TurnWrite { tool_calls: vec![settle], artifacts: vec![(1, file)], ..nothing() }
}

/// Starts a call and returns its id.
async fn called(at: &Opened, held: &Claim) -> CallId {
    let call_id: CallId = SystemIds.next().into();
    let before = at.store.views.tool_calls(&engagement(held)).await.unwrap().len();
    let intend = ToolCallMove::Intend {
        call_id: call_id.clone(),
        turn: 1,
        position: i64::try_from(before).unwrap(),
        name: "save_artifact".into(),
        input: json!({}),
        idempotent: true,
        sent: true,
    };
    let write = TurnWrite { tool_calls: vec![intend], ..nothing() };
    at.store.ledger.checkpoint(&held.lease, write, NOW, LEASE).await.unwrap();
    call_id
}

async fn make(at: &Opened, held: &Claim, name: &str, content: &str) {
    let call_id = called(at, held).await;
    at.store.ledger.checkpoint(&held.lease, made(&call_id, name, content, false), NOW, LEASE).await.unwrap();
}

/// Enqueues a job of a tenant and claims it.
async fn held_of(at: &Opened, tenant: Option<&str>) -> Claim {
    let terms = Terms { tenant: tenant.map(str::to_owned), ..Terms::default() };
    at.push(NewJob { terms, ..agent(None) }).await;
    at.claim(JobKind::Agent, 1).await.remove(0)
}

async fn contents(at: &Opened) -> (i64, i64) {
    let count = at.query("SELECT count(*) FROM artifact_contents").await;
    (count, at.query("SELECT CAST(coalesce(sum(uses), 0) AS BIGINT) FROM artifact_contents").await)
}

async fn a_file_is_kept_with_the_outcome_of_its_call(at: &Opened) {
    let held = at.held(None).await;
    let id = engagement(&held);
    make(at, &held, "Übersicht.txt", "first").await;
    let call_id = called(at, &held).await;
    let write = made(&call_id, "b.txt", "", true);
    at.store.ledger.checkpoint(&held.lease, write, NOW.plus_ms(1), LEASE).await.unwrap();
    let found = at.store.artifacts.artifacts(&id).await.unwrap();
    assert_eq!(found, at.store.ledger.reads().artifacts_of(&id).await.unwrap());
    let seen: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.bytes, one.withheld)).collect();
    assert_eq!(seen, [("Übersicht.txt", 5, false), ("b.txt", 0, true)]);
    let first = &found[0];
    assert_eq!((&first.engagement_id, first.job_id.as_ref()), (&id, Some(&held.job)));
    assert_eq!((first.turn, first.media_type.as_str(), first.created_at), (1, "text/plain", NOW));
    assert_eq!(at.store.artifacts.artifact(&first.id, None).await.unwrap().as_ref(), Some(first));
    let content = |at: usize| found[at].id.clone();
    assert_eq!(at.store.artifacts.artifact_content(&content(0)).await.unwrap(), Some(b"first".to_vec()));
    assert_eq!(at.store.artifacts.artifact_content(&content(1)).await.unwrap(), Some(Vec::new()));
    assert_eq!(at.store.artifacts.artifact_content(&"art_none".into()).await.unwrap(), None);
    // A withheld file is released when the answer passes.
    at.store
        .ledger
        .checkpoint(
            &held.lease,
            TurnWrite { artifacts: Vec::new(), ..made(&call_id, "b.txt", "", false) },
            NOW,
            LEASE,
        )
        .await
        .unwrap();
    assert!(!at.store.artifacts.artifacts(&id).await.unwrap()[1].withheld);
}

async fn a_repeated_write_is_stored_once(at: &Opened) {
    let held = at.held(None).await;
    let call_id = called(at, &held).await;
    for _ in 0..3 {
        at.store
            .ledger
            .checkpoint(&held.lease, made(&call_id, "a.txt", "x", false), NOW, LEASE)
            .await
            .unwrap();
    }
    assert_eq!(at.store.artifacts.artifacts(&engagement(&held)).await.unwrap().len(), 1);
    assert_eq!(contents(at).await, (1, 1));
}

async fn the_same_bytes_are_kept_once_per_tenant(at: &Opened) {
    let (acme, other) = (held_of(at, Some("acme")).await, held_of(at, None).await);
    make(at, &acme, "a.txt", "the same").await;
    make(at, &acme, "b.txt", "the same").await;
    make(at, &acme, "b.txt", "another").await;
    make(at, &other, "a.txt", "the same").await;
    assert_eq!(contents(at).await, (3, 4));
    let found = at.store.artifacts.artifacts(&engagement(&acme)).await.unwrap();
    let first = &found[0].id;
    for (tenant, there) in [(None, true), (Some("acme"), true), (Some("else"), false), (Some(""), false)] {
        let seen = at.store.artifacts.artifact(first, tenant).await.unwrap();
        assert_eq!(seen.is_some(), there, "{tenant:?}");
    }
    let own = at.store.artifacts.artifacts(&engagement(&other)).await.unwrap();
    assert!(at.store.artifacts.artifact(&own[0].id, Some("acme")).await.unwrap().is_none());
}

async fn concurrent_writers_of_one_file_each_have_it(at: &Opened) {
    let mut jobs = Vec::new();
    for _ in 0..8 {
        let held = at.held(None).await;
        let call_id = called(at, &held).await;
        jobs.push((held, call_id));
    }
    let one = async |(held, call_id): &(Claim, CallId)| {
        let write = made(call_id, "a.txt", "the same", false);
        at.store.ledger.checkpoint(&held.lease, write, NOW, LEASE).await.unwrap();
    };
    futures::future::join_all(jobs.iter().map(one)).await;
    assert_eq!(contents(at).await, (1, 8));
    for (held, _) in &jobs {
        assert_eq!(at.store.artifacts.artifacts(&engagement(held)).await.unwrap().len(), 1);
    }
}

async fn a_file_is_deleted_with_its_engagement(at: &Opened) {
    let (first, second) = (at.held(None).await, at.held(None).await);
    make(at, &first, "a.txt", "the same").await;
    make(at, &first, "b.txt", "the same").await;
    make(at, &first, "c.txt", "its own").await;
    make(at, &second, "a.txt", "the same").await;
    for (held, ended) in [(&first, 10), (&second, 20)] {
        at.store.ledger.settle(&held.lease, nothing(), complete(), NOW.plus_ms(ended)).await.unwrap();
    }
    let later = NOW.plus_ms(1_000_000);
    while at.perform(Duty::FoldStatistics { until: later }, later).await > 0 {}
    for (before, kept) in [(5, (2, 4)), (15, (1, 1)), (25, (0, 0))] {
        at.perform(Duty::Prune { before: NOW.plus_ms(before) }, NOW).await;
        assert_eq!(contents(at).await, kept, "before {before}");
    }
    assert_eq!(at.query("SELECT count(*) FROM artifacts").await, 0);
}

async fn a_lost_lease_stores_no_file(at: &Opened) {
    let held = at.held(None).await;
    let call_id = called(at, &held).await;
    at.settle(&held.lease, complete()).await;
    let write = made(&call_id, "a.txt", "x", false);
    assert!(at.store.ledger.checkpoint(&held.lease, write, NOW, LEASE).await.is_err());
    assert_eq!(contents(at).await, (0, 0));
}
