//! Agent state is committed whole or not at all, and only if the state that was read is unchanged (RS-28, RS-30).

use super::backend::Opened;
use super::jobs::{LEASE, NOW, done, nothing, reserve};
use super::on_every_store;
use serde_json::{Value, json};
use turnstone_domain::session_state::{Expect, Scope, StateCommit, StateSnapshot, StateWrite};
use turnstone_domain::{Phase, Settlement, Timestamp, TurnWrite};
use turnstone_store::{Claim, Duty, LedgerError};

on_every_store![
    a_commit_is_visible_and_a_refused_one_leaves_nothing,
    a_changed_scope_refuses_its_earlier_readers,
    changed_keys_refuse_their_earlier_readers,
    commits_of_one_transaction_see_one_another,
    keys_are_deleted_when_they_expire,
    state_of_an_engagement_ends_with_it,
];

fn shared() -> Scope {
    Scope { name: "agent [\"a\",\"user\",\"u\"]".into(), of_engagement: false }
}

fn of(held: &Claim) -> Scope {
    let id = &held.engagement.as_ref().unwrap().engagement.id;
    Scope { name: format!("engagement {id}"), of_engagement: true }
}

fn commit(scope: &Scope, expect: Expect, writes: &[(&str, Option<Value>)]) -> TurnWrite {
    let write = |(key, value): &(&str, Option<Value>)| StateWrite {
        key: (*key).to_owned(),
        value: value.clone(),
        expires_at: None,
    };
    let writes = writes.iter().map(write).collect();
    let state = Some(StateCommit { scope: scope.clone(), expect, writes });
    TurnWrite { state, ..nothing() }
}

async fn put(at: &Opened, held: &Claim, write: TurnWrite) -> Result<(), LedgerError> {
    at.store.ledger.checkpoint(&held.lease, write, NOW, LEASE).await.map(|_| ())
}

async fn seen(at: &Opened, scope: &Scope) -> (i64, Vec<(String, Value)>) {
    let StateSnapshot { version, entries } = at.store.ledger.reads().state(scope, NOW).await.unwrap();
    (version, entries.into_iter().map(|entry| (entry.key, entry.value)).collect())
}

/// RS-28, RS-51: on both databases.
async fn a_commit_is_visible_and_a_refused_one_leaves_nothing(at: &Opened) {
    let held = at.held(Some(100)).await;
    let scope = of(&held);
    assert_eq!(seen(at, &scope).await, (0, vec![]));
    let writes = [("b", Some(json!({"n": [1, "ü"]}))), ("a", Some(Value::Null)), ("gone", None)];
    put(at, &held, commit(&scope, Expect::Scope(0), &writes)).await.unwrap();
    let both = vec![("a".to_owned(), Value::Null), ("b".to_owned(), json!({"n": [1, "ü"]}))];
    assert_eq!(seen(at, &scope).await, (1, both.clone()));
    // A refused reservation or a lost lease refuses the state of the same write, too.
    let too_much =
        TurnWrite { budget: reserve(101).budget, ..commit(&scope, Expect::Anything, &[("a", None)]) };
    assert!(matches!(put(at, &held, too_much).await, Err(LedgerError::BudgetExceeded { .. })));
    let mut stale = held.clone();
    stale.lease.token = "of another time".into();
    let refused = put(at, &stale, commit(&scope, Expect::Anything, &[("a", None)])).await;
    assert!(matches!(refused, Err(LedgerError::LeaseLost(_))));
    assert_eq!(seen(at, &scope).await, (1, both));
    put(at, &held, commit(&scope, Expect::Scope(1), &[("b", None)])).await.unwrap();
    assert_eq!(seen(at, &scope).await, (2, vec![("a".to_owned(), Value::Null)]));
}

async fn a_changed_scope_refuses_its_earlier_readers(at: &Opened) {
    let (one, two) = (at.held(None).await, at.held(None).await);
    put(at, &one, commit(&shared(), Expect::Scope(0), &[("a", Some(json!(1)))])).await.unwrap();
    let late = TurnWrite {
        checkpoints: done(Phase::Persist).checkpoints,
        ..commit(&shared(), Expect::Scope(0), &[("b", Some(json!(2)))])
    };
    assert!(matches!(put(at, &two, late).await, Err(LedgerError::StateConflict)));
    assert_eq!(seen(at, &shared()).await, (1, vec![("a".to_owned(), json!(1))]));
    assert_eq!(at.query(turnstone_tests::journal::CHECKPOINTS).await, 0, "the write left nothing");
    put(at, &two, commit(&shared(), Expect::Anything, &[("a", Some(json!(3)))])).await.unwrap();
    assert_eq!(seen(at, &shared()).await, (2, vec![("a".to_owned(), json!(3))]));
    assert!(
        at.store.ledger.reads().lost(std::slice::from_ref(&two.lease)).await.unwrap().is_empty(),
        "the lease is still held"
    );
}

async fn changed_keys_refuse_their_earlier_readers(at: &Opened) {
    let (one, two) = (at.held(None).await, at.held(None).await);
    let keys =
        |seen: &[(&str, i64)]| Expect::Keys(seen.iter().map(|(key, v)| ((*key).to_owned(), *v)).collect());
    put(at, &one, commit(&shared(), keys(&[("a", 0)]), &[("a", Some(json!(1)))])).await.unwrap();
    // A write to another key is no conflict.
    put(at, &two, commit(&shared(), keys(&[("b", 0)]), &[("b", Some(json!(1)))])).await.unwrap();
    let refused = put(at, &two, commit(&shared(), keys(&[("a", 0)]), &[("a", Some(json!(2)))])).await;
    assert!(matches!(refused, Err(LedgerError::StateConflict)));
    put(at, &two, commit(&shared(), keys(&[("a", 1), ("b", 2)]), &[("a", None)])).await.unwrap();
    let refused = put(at, &one, commit(&shared(), keys(&[("a", 1)]), &[("a", Some(json!(3)))])).await;
    assert!(matches!(refused, Err(LedgerError::StateConflict)), "it was deleted");
    assert_eq!(seen(at, &shared()).await, (3, vec![("b".to_owned(), json!(1))]));
}

/// Of many turns that read the same version exactly one commits, in one transaction or in several.
async fn commits_of_one_transaction_see_one_another(at: &Opened) {
    let mut held = Vec::new();
    for _ in 0..12 {
        held.push(at.held(None).await);
    }
    let all =
        held.iter().map(|one| put(at, one, commit(&shared(), Expect::Scope(0), &[("n", Some(json!(1)))])));
    let won = futures::future::join_all(all).await.into_iter().filter(Result::is_ok).count();
    assert_eq!((won, seen(at, &shared()).await.0), (1, 1));
    let all =
        held.iter().map(|one| put(at, one, commit(&shared(), Expect::Anything, &[("n", Some(json!(2)))])));
    assert!(futures::future::join_all(all).await.into_iter().all(|done| done.is_ok()));
    assert_eq!(seen(at, &shared()).await.0, 13, "each commit counts");
}

async fn keys_are_deleted_when_they_expire(at: &Opened) {
    let held = at.held(None).await;
    let mut write = commit(&shared(), Expect::Anything, &[("a", Some(json!(1))), ("b", Some(json!(2)))]);
    write.state.as_mut().unwrap().writes[0].expires_at = Some(NOW.plus_ms(100));
    put(at, &held, write).await.unwrap();
    let keys =
        async |when: Timestamp| at.store.ledger.reads().state(&shared(), when).await.unwrap().entries.len();
    assert_eq!((keys(NOW.plus_ms(99)).await, keys(NOW.plus_ms(100)).await), (2, 1));
    at.perform(Duty::Prune { before: Timestamp(0) }, NOW.plus_ms(100)).await;
    assert_eq!(at.query("SELECT count(*) FROM state_keys").await, 1);
}

async fn state_of_an_engagement_ends_with_it(at: &Opened) {
    let held = at.held(None).await;
    put(at, &held, commit(&of(&held), Expect::Anything, &[("a", Some(json!(1)))])).await.unwrap();
    put(at, &held, commit(&shared(), Expect::Anything, &[("a", Some(json!(1)))])).await.unwrap();
    at.settle(&held.lease, Settlement::Yield).await;
    at.store.intake.cancel(&held.job, NOW).await.unwrap();
    let later = NOW.plus_ms(30 * 86_400_000);
    at.perform(Duty::FoldStatistics { until: later }, later).await;
    at.perform(Duty::Prune { before: later }, later).await;
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 0);
    assert_eq!((seen(at, &of(&held)).await, seen(at, &shared()).await.0), ((0, vec![]), 1));
}
