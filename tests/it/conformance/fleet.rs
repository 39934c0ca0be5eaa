//! The scheduler's leader and the registered workers.

use super::backend::Opened;
use super::jobs::{NOW, plain};
use super::on_every_store;
use turnstone_domain::{JobState, NewJob, Timestamp};
use turnstone_store::{Duty, StoreError, Term, WorkerBeat, WorkerKind, WorkerState};

on_every_store![
    one_scheduler_leads_until_its_term_runs_out,
    a_leader_that_resigns_is_replaced_at_once,
    of_concurrent_candidates_one_leads,
    a_deposed_leader_changes_nothing,
    a_worker_name_belongs_to_one_live_worker,
    a_worker_that_leaves_is_off_the_list,
];

pub const TERM_MS: i64 = 2_000;

pub async fn lead(at: &Opened, holder: &str, now: Timestamp) -> Option<Term> {
    at.store.upkeep.lead(holder, TERM_MS, now).await.unwrap()
}

async fn one_scheduler_leads_until_its_term_runs_out(at: &Opened) {
    let first = lead(at, "a", NOW).await.unwrap();
    assert_eq!((first.holder.as_str(), first.expires_at), ("a", NOW.plus_ms(TERM_MS)));
    assert_eq!(lead(at, "b", NOW.plus_ms(TERM_MS - 1)).await, None);
    let renewed = lead(at, "a", NOW.plus_ms(1_000)).await.unwrap();
    assert_eq!((&renewed.token, renewed.expires_at), (&first.token, NOW.plus_ms(1_000 + TERM_MS)));
    assert_eq!(lead(at, "b", NOW.plus_ms(TERM_MS)).await, None, "it was renewed");
    let second = lead(at, "b", NOW.plus_ms(1_000 + TERM_MS)).await.unwrap();
    assert_ne!(second.token, first.token);
    assert_eq!(lead(at, "a", NOW.plus_ms(1_000 + TERM_MS)).await, None);
}

async fn a_leader_that_resigns_is_replaced_at_once(at: &Opened) {
    let first = lead(at, "a", NOW).await.unwrap();
    at.store.upkeep.resign(&first).await.unwrap();
    let refused = at.store.upkeep.perform(Duty::PromoteDue, &first, NOW, 10).await.unwrap_err();
    assert!(matches!(refused, StoreError::Deposed), "{refused}");
    let second = lead(at, "b", NOW).await.unwrap();
    at.store.upkeep.resign(&first).await.unwrap();
    assert_eq!(lead(at, "a", NOW).await, None, "a deposed leader cannot resign for its successor");
    assert_eq!(at.store.upkeep.perform(Duty::PromoteDue, &second, NOW, 10).await.unwrap(), 0);
}

async fn of_concurrent_candidates_one_leads(at: &Opened) {
    let names: Vec<String> = (0..8).map(|n| format!("s{n}")).collect();
    for round in 0..10 {
        let now = NOW.plus_ms(round * TERM_MS);
        let terms = futures::future::join_all(names.iter().map(|name| lead(at, name, now))).await;
        assert_eq!(terms.iter().flatten().count(), 1, "{terms:?}");
    }
}

async fn a_deposed_leader_changes_nothing(at: &Opened) {
    let id = at.push(NewJob { run_at: NOW.plus_ms(1), ..plain(0) }).await;
    let deposed = lead(at, "a", NOW).await.unwrap();
    let now = NOW.plus_ms(TERM_MS);
    let leader = lead(at, "b", now).await.unwrap();
    let duties = [
        Duty::PromoteDue,
        Duty::ReapExpired,
        Duty::BoundWaits,
        Duty::ExpireJobs,
        Duty::ExpireReviews,
        Duty::RemindReviews,
        Duty::SetAsideReviews,
        Duty::TimeOutJobs,
        Duty::Prune { before: now },
        Duty::FoldStatistics { until: now },
    ];
    for duty in duties {
        let refused = at.store.upkeep.perform(duty, &deposed, now, 10).await.unwrap_err();
        assert!(matches!(refused, StoreError::Deposed), "{duty:?}: {refused}");
    }
    assert_eq!(at.state(&id).await, JobState::Scheduled);
    assert_eq!(at.query("SELECT ended_at FROM statistics_mark").await, 0);
    assert_eq!(at.store.upkeep.perform(Duty::PromoteDue, &leader, now, 10).await.unwrap(), 1);
}

pub fn beat(instance: &str, seen_at: Timestamp) -> WorkerBeat {
    WorkerBeat {
        name: "w1".into(),
        instance: instance.into(),
        host: "h".into(),
        pid: 42,
        version: "1".into(),
        queues: vec!["*".into(), "q\"'".into()],
        slots: 8,
        busy: 3,
        state: WorkerState::Running,
        started_at: NOW,
        seen_at,
        kind: WorkerKind::Own,
        directive: None,
    }
}

async fn a_worker_name_belongs_to_one_live_worker(at: &Opened) {
    const SILENT: i64 = WorkerBeat::SILENT_MS;
    at.store.ledger.beat(beat("one", NOW), SILENT).await.unwrap();
    assert_eq!(at.store.views.workers().await.unwrap(), [beat("one", NOW)]);
    let now = NOW.plus_ms(SILENT - 1);
    let refused = at.store.ledger.beat(beat("two", now), SILENT).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::WorkerNameTaken { name, host, pid: 42 } if name == "w1" && host == "h"),
        "{refused}"
    );
    let draining = WorkerBeat { state: WorkerState::Draining, busy: 0, ..beat("one", now) };
    at.store.ledger.beat(draining.clone(), SILENT).await.unwrap();
    assert_eq!(at.store.views.workers().await.unwrap(), [draining]);
    let later = now.plus_ms(SILENT);
    at.store.ledger.beat(beat("two", later), SILENT).await.unwrap();
    assert_eq!(at.store.views.workers().await.unwrap(), [beat("two", later)]);
    let refused = at.store.ledger.beat(beat("one", later), SILENT).await.unwrap_err();
    assert!(matches!(refused, StoreError::WorkerNameTaken { .. }), "the one that was silent has lost it");
}

async fn a_worker_that_leaves_is_off_the_list(at: &Opened) {
    at.store.ledger.beat(beat("one", NOW), 1).await.unwrap();
    at.store.ledger.leave("w1", "two").await.unwrap();
    assert_eq!(at.store.views.workers().await.unwrap().len(), 1, "another instance cannot take it off");
    at.store.ledger.leave("w1", "one").await.unwrap();
    assert!(at.store.views.workers().await.unwrap().is_empty());
    at.store.ledger.beat(beat("two", NOW), 1_000).await.unwrap();
}
