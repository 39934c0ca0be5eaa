//! The rules of the store, one named case each, through its traits.

use serde_json::json;
use std::sync::Arc;
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::engagement::{NewEngagement, User};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::{
    AgentDefinition, Checkpoint, EventName, Ids, JobId, JobState, NewEvent, NewJob, Phase, Settlement,
    Timestamp, TurnWrite,
};
use turnstone_store::{
    CancelOutcome, Claim, ClaimRequest, EventFilter, JobKind, LedgerError, SqliteStore, Store, StoreError,
};

const NOW: Timestamp = Timestamp(1_000_000);
const LEASE: i64 = 10_000;

async fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("t.db"), Arc::new(SystemIds)).await.unwrap();
    (dir, store)
}

fn plain(priority: i64) -> NewJob {
    NewJob {
        id: JobId(SystemIds.next()),
        job_type: "t".into(),
        queue: "q".into(),
        priority,
        run_at: NOW,
        expires_at: None,
        timeout_ms: None,
        retry: RetryPolicy::default(),
        envelope: Envelope::default(),
        engagement: None,
        created_at: NOW,
    }
}

fn agent(token_budget: Option<i64>) -> NewJob {
    let mut definition = AgentDefinition { name: "a".into(), ..AgentDefinition::default() };
    definition.limits.token_budget = token_budget;
    let engagement = NewEngagement { id: SystemIds.next().into(), agent: definition, user: User::default() };
    NewJob { engagement: Some(engagement), ..plain(0) }
}

async fn claim(store: &Store, kind: JobKind, limit: usize) -> Vec<Claim> {
    let request = ClaimRequest {
        kind,
        queues: vec!["*".into()],
        limit,
        worker_id: "w".into(),
        lease_ms: LEASE,
        now: NOW,
    };
    store.ledger.claim(request).await.unwrap()
}

fn done(phase: Phase) -> TurnWrite {
    let checkpoint = Checkpoint {
        turn: 1,
        phase,
        version: 1,
        body: json!({}),
        duration_ms: 0,
        tokens_in: 0,
        tokens_out: 0,
        at: NOW,
    };
    let event = NewEvent { name: EventName::PhaseCompleted, turn: 1, data: json!({"phase": phase}), at: NOW };
    TurnWrite { checkpoints: vec![checkpoint], events: vec![event], ..TurnWrite::default() }
}

async fn one_agent_job(store: &Store, budget: Option<i64>) -> Claim {
    store.intake.push(vec![agent(budget)]).await.unwrap();
    claim(store, JobKind::Agent, 1).await.remove(0)
}

#[tokio::test]
async fn higher_priority_goes_first_and_equal_priority_in_order_of_arrival() {
    let (_dir, store) = store().await;
    let jobs = [plain(0), plain(5), plain(0), plain(-3), plain(5)];
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    for job in jobs {
        store.intake.push(vec![job]).await.unwrap();
    }
    let order: Vec<JobId> =
        claim(&store, JobKind::Plain, 10).await.into_iter().map(|claim| claim.job).collect();
    assert_eq!(order, [1, 4, 0, 2, 3].map(|at: usize| ids[at].clone()));
}

#[tokio::test]
async fn two_claims_never_get_the_same_job() {
    let (_dir, store) = store().await;
    store.intake.push((0..50).map(|_| plain(0)).collect()).await.unwrap();
    let claims = futures::future::join_all((0..10).map(|_| claim(&store, JobKind::Plain, 10))).await;
    let mut ids: Vec<JobId> = claims.into_iter().flatten().map(|claim| claim.job).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 50);
}

#[tokio::test]
async fn an_agent_worker_never_claims_a_plain_job() {
    let (_dir, store) = store().await;
    store.intake.push(vec![plain(0)]).await.unwrap();
    assert!(claim(&store, JobKind::Agent, 1).await.is_empty());
    assert_eq!(claim(&store, JobKind::Plain, 1).await.len(), 1);
}

#[tokio::test]
async fn a_push_is_whole_or_not_at_all_and_an_id_is_taken_once() {
    let (_dir, store) = store().await;
    let (first, second) = (plain(0), plain(0));
    store.intake.push(vec![first.clone()]).await.unwrap();
    let refused = store.intake.push(vec![second.clone(), first.clone()]).await.unwrap_err();
    assert!(matches!(refused, StoreError::DuplicateJob(id) if id == first.id));
    assert!(store.views.job(&second.id).await.unwrap().is_none());
    let twice = store.intake.push(vec![second.clone(), second.clone()]).await.unwrap_err();
    assert!(matches!(twice, StoreError::DuplicateJob(_)));
}

#[tokio::test]
async fn a_stale_lease_writes_nothing() {
    let (_dir, store) = store().await;
    let stale = one_agent_job(&store, None).await;
    assert_eq!(store.upkeep.reap_expired(NOW.plus_ms(LEASE - 1), 10).await.unwrap(), 0, "not yet");
    assert_eq!(store.upkeep.reap_expired(NOW.plus_ms(LEASE), 10).await.unwrap(), 1);
    let fresh = claim(&store, JobKind::Agent, 1).await.remove(0);
    assert_ne!(stale.lease.token, fresh.lease.token);
    let events = store.views.events_after(&EventFilter::Job(stale.job.clone()), 0, 100).await.unwrap().len();
    let refused = store.ledger.checkpoint(&stale.lease, done(Phase::Init), NOW, LEASE).await.unwrap_err();
    assert!(matches!(refused, LedgerError::LeaseLost(_)));
    let end = Settlement::Complete { result: json!(1) };
    let refused = store.ledger.settle(&stale.lease, TurnWrite::default(), end, NOW).await.unwrap_err();
    assert!(matches!(refused, LedgerError::LeaseLost(_)));
    let lost = store.ledger.lost(&[stale.lease.clone(), fresh.lease.clone()]).await.unwrap();
    assert_eq!(lost, vec![stale.lease.token.clone()]);
    let after = store.views.events_after(&EventFilter::Job(stale.job.clone()), 0, 100).await.unwrap().len();
    assert_eq!(events, after);
    store.ledger.checkpoint(&fresh.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
}

#[tokio::test]
async fn a_phase_is_committed_once() {
    let (_dir, store) = store().await;
    let held = one_agent_job(&store, None).await;
    store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
    let twice = store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.unwrap_err();
    assert!(matches!(twice, LedgerError::Store(_)), "{twice}");
    store.ledger.checkpoint(&held.lease, done(Phase::Norm), NOW, LEASE).await.unwrap();
    store.upkeep.release_all(NOW).await.unwrap();
    let next = claim(&store, JobKind::Agent, 1).await.remove(0).engagement.unwrap();
    let phases: Vec<Phase> = next.checkpoints.iter().map(|checkpoint| checkpoint.phase).collect();
    assert_eq!(phases, [Phase::Init, Phase::Norm]);
}

#[tokio::test]
async fn one_poisonous_write_fails_alone() {
    let (_dir, store) = store().await;
    store.intake.push((0..20).map(|_| agent(None)).collect()).await.unwrap();
    let claims = claim(&store, JobKind::Agent, 20).await;
    let poisoned = &claims[7];
    store.ledger.checkpoint(&poisoned.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
    let writes =
        claims.iter().map(|claim| store.ledger.checkpoint(&claim.lease, done(Phase::Init), NOW, LEASE));
    let outcomes = futures::future::join_all(writes).await;
    let failed: Vec<usize> = (0..20).filter(|at| outcomes[*at].is_err()).collect();
    assert_eq!(failed, [7], "the others of the same commit are not touched");
}

#[tokio::test]
async fn a_reservation_fits_or_is_refused_and_is_given_back_at_the_end() {
    let (_dir, store) = store().await;
    let held = one_agent_job(&store, Some(100)).await;
    let reserve = |tokens| TurnWrite { budget: Some(BudgetMove::Reserve { tokens }), ..done(Phase::Init) };
    let refused = store.ledger.checkpoint(&held.lease, reserve(101), NOW, LEASE).await.unwrap_err();
    assert!(matches!(refused, LedgerError::BudgetExceeded { left: 100, needed: 101 }));
    let budget = store.ledger.checkpoint(&held.lease, reserve(100), NOW, LEASE).await.unwrap();
    assert_eq!((budget.reserved, budget.left()), (100, Some(0)));
    let used =
        TurnWrite { budget: Some(BudgetMove::Settle { reserved: 100, used: 30 }), ..TurnWrite::default() };
    let budget = store.ledger.checkpoint(&held.lease, used, NOW, LEASE).await.unwrap();
    assert_eq!((budget.settled, budget.reserved), (30, 0));
    let again = TurnWrite { budget: Some(BudgetMove::Reserve { tokens: 70 }), ..TurnWrite::default() };
    store.ledger.checkpoint(&held.lease, again, NOW, LEASE).await.unwrap();
    store.ledger.settle(&held.lease, TurnWrite::default(), Settlement::Yield, NOW).await.unwrap();
    let engagement = held.engagement.unwrap().engagement.id;
    let budget = store.views.budget(&engagement).await.unwrap();
    assert_eq!((budget.settled, budget.reserved), (30, 0), "nothing stays reserved without a lease");
}

#[tokio::test]
async fn a_crash_gives_the_reservation_back() {
    let (_dir, store) = store().await;
    let held = one_agent_job(&store, Some(100)).await;
    let reserve = TurnWrite { budget: Some(BudgetMove::Reserve { tokens: 60 }), ..TurnWrite::default() };
    store.ledger.checkpoint(&held.lease, reserve, NOW, LEASE).await.unwrap();
    store.upkeep.reap_expired(NOW.plus_ms(LEASE), 10).await.unwrap();
    let next = claim(&store, JobKind::Agent, 1).await.remove(0).engagement.unwrap();
    assert_eq!(next.budget.left(), Some(100));
}

#[tokio::test]
async fn a_job_that_kills_its_workers_is_given_up() {
    let (_dir, store) = store().await;
    store.intake.push(vec![agent(None)]).await.unwrap();
    let mut claimed = 0;
    while let Some(held) = claim(&store, JobKind::Agent, 1).await.pop() {
        claimed += 1;
        assert!(claimed < 100, "it is claimed for ever");
        store.upkeep.reap_expired(held.lease.expires_at, 10).await.unwrap();
    }
    assert_eq!(claimed, 20);
}

#[tokio::test]
async fn cancel_ends_a_lease_and_an_ended_job_stays_as_it_is() {
    let (_dir, store) = store().await;
    let held = one_agent_job(&store, None).await;
    let outcome = store.intake.cancel(&held.job, NOW).await.unwrap();
    assert_eq!(outcome, CancelOutcome::Cancelled { previous: JobState::Active });
    let end = Settlement::Complete { result: json!(1) };
    assert!(store.ledger.settle(&held.lease, TurnWrite::default(), end, NOW).await.is_err());
    let again = store.intake.cancel(&held.job, NOW).await.unwrap();
    assert_eq!(again, CancelOutcome::AlreadyEnded(JobState::Cancelled));
}

#[tokio::test]
async fn acknowledged_jobs_are_there_after_the_store_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.db");
    let first = SqliteStore::open(&path, Arc::new(SystemIds)).await.unwrap();
    let job = agent(Some(7));
    first.intake.push(vec![job.clone()]).await.unwrap();
    drop(first);
    let second = SqliteStore::open(&path, Arc::new(SystemIds)).await.unwrap();
    let found = second.views.job(&job.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.job_type), (JobState::Available, job.job_type));
    assert_eq!(second.upkeep.next_due().await.unwrap(), None);
}

#[tokio::test]
async fn an_agent_that_cannot_be_read_does_not_block_the_others() {
    let (dir, store) = store().await;
    let (unreadable, good) = (agent(Some(1)), agent(None));
    store.intake.push(vec![unreadable.clone()]).await.unwrap();
    let newer = "UPDATE agent_definitions SET definition = '{\"format\": \"of_next_year\"}' RETURNING 1";
    turnstone_tests::fleet::sqlite(&dir.path().join("t.db"), newer).await;
    store.intake.push(vec![good.clone()]).await.unwrap();
    let claims: Vec<JobId> =
        claim(&store, JobKind::Agent, 10).await.into_iter().map(|claim| claim.job).collect();
    assert_eq!(claims, [good.id]);
    let left = store.views.job(&unreadable.id).await.unwrap().unwrap();
    assert_eq!((left.state, left.attempt), (JobState::Available, 0));
}
