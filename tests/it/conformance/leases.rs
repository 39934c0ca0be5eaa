//! Leases expire, are extended and are released.

use super::backend::Opened;
use super::jobs::{LAPSED, LEASE, NOW, agent, done, nothing, plain, reserve};
use super::on_every_store;
use turnstone_domain::{EventName, JobState, Lease, Phase, Settlement, TurnWrite};
use turnstone_store::{Claim, Duty, JobKind, Past, Ring, Target};

on_every_store![
    a_lease_expires_and_the_job_resumes_at_its_checkpoint,
    an_extended_lease_is_not_reaped,
    a_checkpoint_extends_the_lease,
    a_checkpoint_finds_a_pause_by_another_process,
    a_paused_job_resumes_from_its_last_checkpoint,
    a_released_job_is_available_at_once_and_has_not_failed,
    a_job_that_kills_its_workers_waits_and_is_held,
    a_job_that_makes_progress_is_never_held,
    a_reaped_lease_is_announced,
    a_bounded_tick_reaps_no_more_than_its_bound,
];

async fn a_lease_expires_and_the_job_resumes_at_its_checkpoint(at: &Opened) {
    let held = at.held(None).await;
    assert_eq!(held.lease.expires_at, LAPSED);
    at.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(LAPSED));
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED.plus_ms(-1)).await, 0);
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED).await, 1);
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED).await, 0);
    let job = at.job(&held.job).await;
    assert_eq!((job.state, job.failures, job.worker_id), (JobState::Available, 0, None));
    let next = at.claim_at(JobKind::Agent, 1, LAPSED).await.remove(0);
    assert_eq!((next.attempt, next.failures), (2, 0));
    let engagement = next.engagement.unwrap();
    assert!(matches!(engagement.past, Past::Messages(messages) if messages.is_empty()));
    assert_eq!(engagement.checkpoints.iter().map(|c| c.phase).collect::<Vec<_>>(), [Phase::Init]);
    let job = at.job(&held.job).await;
    assert_eq!(job.started_at, Some(NOW), "the first start stays");
    use EventName::{JobEnqueued, JobStarted, LeaseExpired, PhaseCompleted};
    // The second start is written with what comes first under the new lease.
    let events = [JobEnqueued, JobStarted, PhaseCompleted, LeaseExpired];
    assert_eq!(at.events(&held.job).await, events);
}

async fn an_extended_lease_is_not_reaped(at: &Opened) {
    let held = at.held(None).await;
    let leases = [held.lease.clone()];
    assert!(at.store.ledger.extend(&leases, LAPSED, LEASE).await.unwrap().is_empty());
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED.plus_ms(LEASE - 1)).await, 0);
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED.plus_ms(LEASE)).await, 1);
    assert_eq!(at.store.ledger.extend(&leases, LAPSED, LEASE).await.unwrap(), [held.lease.token]);
    assert!(at.store.ledger.extend(&[], NOW, LEASE).await.unwrap().is_empty());
}

async fn a_checkpoint_extends_the_lease(at: &Opened) {
    let held = at.held(None).await;
    at.store.ledger.checkpoint(&held.lease, nothing(), LAPSED, LEASE).await.unwrap();
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED).await, 0);
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(LAPSED.plus_ms(LEASE)));
}

/// Returns true when this checkpoint finds its job paused.
async fn finds_pause(at: &Opened, held: &Claim, write: TurnWrite) -> bool {
    at.store.ledger.checkpoint(&held.lease, write, NOW, LEASE).await.unwrap().paused
}

fn target(held: &Claim) -> Target {
    Target { job: held.job.clone(), tenant: None, by: None, at: NOW }
}

/// The rows of a leased job are cached. A write of its own row alone still finds the pause.
async fn a_checkpoint_finds_a_pause_by_another_process(at: &Opened) {
    let other = at.place.open().await;
    let held = at.held(Some(100)).await;
    let mut found = Vec::new();
    found.push(finds_pause(at, &held, done(Phase::Init)).await);
    other.control.pause(target(&held), None).await.unwrap().unwrap();
    for write in [nothing(), reserve(60), done(Phase::Norm)] {
        found.push(finds_pause(at, &held, write).await);
    }
    other.control.resume(target(&held), None, None).await.unwrap().unwrap();
    for write in [nothing(), done(Phase::Resol)] {
        found.push(finds_pause(at, &held, write).await);
    }
    at.store.control.pause(target(&held), None).await.unwrap().unwrap();
    found.push(finds_pause(at, &held, nothing()).await);
    assert_eq!(found, [false, true, true, true, false, false, true]);
}

async fn a_paused_job_resumes_from_its_last_checkpoint(at: &Opened) {
    let other = at.place.open().await;
    let held = at.held(Some(100)).await;
    assert!(!finds_pause(at, &held, done(Phase::Init)).await);
    other.control.pause(target(&held), None).await.unwrap().unwrap();
    assert!(finds_pause(at, &held, reserve(60)).await);
    at.settle(&held.lease, Settlement::Yield).await;
    assert!(at.claim(JobKind::Agent, 1).await.is_empty());
    other.control.resume(target(&held), None, None).await.unwrap().unwrap();
    let next = at.claim(JobKind::Agent, 1).await.remove(0);
    let engagement = next.engagement.as_ref().unwrap();
    assert_eq!(engagement.checkpoints.iter().map(|c| c.phase).collect::<Vec<_>>(), [Phase::Init]);
    assert_eq!(engagement.budget.reserved, 0);
    assert!(!finds_pause(at, &next, done(Phase::Norm)).await);
}

async fn a_released_job_is_available_at_once_and_has_not_failed(at: &Opened) {
    at.store.intake.push((0..3).map(|_| plain(0)).collect()).await.unwrap();
    let claims = at.claim(JobKind::Plain, 3).await;
    let invented = Lease { token: "x".into(), ..claims[2].lease.clone() };
    let leases = [claims[0].lease.clone(), invented, claims[1].lease.clone()];
    at.store.ledger.release(&leases, NOW).await.unwrap();
    at.store.ledger.release(&leases, NOW).await.unwrap();
    for (claim, state) in claims.iter().zip([JobState::Available, JobState::Available, JobState::Active]) {
        let job = at.job(&claim.job).await;
        assert_eq!((job.state, job.failures, job.attempt), (state, 0, 1));
    }
    let again = at.claim(JobKind::Plain, 3).await;
    assert_eq!(again.iter().map(|claim| claim.attempt).collect::<Vec<_>>(), [2, 2]);
}

async fn a_job_that_kills_its_workers_waits_and_is_held(at: &Opened) {
    let id = at.push(agent(None)).await;
    let mut now = NOW;
    for (lapses, delay_ms) in (0_i64..).zip([0, 1_000, 5_000, 60_000]) {
        let held = at.claim_at(JobKind::Agent, 1, now).await.pop().unwrap();
        assert_eq!((held.lapses, held.runs_alone()), (lapses, lapses >= 3));
        now = held.lease.expires_at;
        at.perform(Duty::ReapExpired, now).await;
        if delay_ms > 0 {
            assert_eq!(at.state(&id).await, JobState::Scheduled);
            assert!(at.claim_at(JobKind::Agent, 1, now.plus_ms(delay_ms - 1)).await.is_empty());
        }
        now = now.plus_ms(delay_ms);
    }
    let last = at.claim_at(JobKind::Agent, 1, now).await.pop().unwrap();
    let now = last.lease.expires_at;
    at.perform(Duty::ReapExpired, now).await;
    let job = at.job(&id).await;
    assert_eq!((job.state, job.held, job.failures), (JobState::Available, true, 0));
    assert!(at.claim_at(JobKind::Agent, 1, now).await.is_empty());
    assert_eq!(at.events(&id).await.last(), Some(&EventName::AgentPaused));
    at.store.control.resume(target(&last), None, None).await.unwrap().unwrap();
    assert!(at.claim_at(JobKind::Agent, 1, now).await.remove(0).runs_alone());
}

async fn a_job_that_makes_progress_is_never_held(at: &Opened) {
    let id = at.push(agent(None)).await;
    let mut now = NOW;
    for n in 0..18 {
        let held = at.claim_at(JobKind::Agent, 1, now).await.pop().unwrap();
        if let Some(phase) = Phase::ALL.get(n / 3).filter(|_| n % 3 == 2) {
            at.store.ledger.checkpoint(&held.lease, done(*phase), now, LEASE).await.unwrap();
        }
        now = now.plus_ms(LEASE);
        at.perform(Duty::ReapExpired, now).await;
        now = now.plus_ms(60_000);
    }
    assert!(!at.job(&id).await.held);
}

async fn a_reaped_lease_is_announced(at: &Opened) {
    let held = at.held(None).await;
    let mut rings = at.store.doorbell.listen();
    at.perform(Duty::ReapExpired, LAPSED).await;
    let mut heard = Vec::new();
    while let Ok(ring) = rings.try_recv() {
        heard.push(ring);
    }
    assert!(heard.contains(&Ring::Revoked(held.lease.token)), "{heard:?}");
    assert!(heard.contains(&Ring::Available), "{heard:?}");
}

async fn a_bounded_tick_reaps_no_more_than_its_bound(at: &Opened) {
    at.store.intake.push((0..5).map(|_| plain(0)).collect()).await.unwrap();
    let claims = at.claim(JobKind::Plain, 5).await;
    let term = at.term().await;
    for expected in [2, 2, 1, 0] {
        let reaped = at.store.upkeep.perform(Duty::ReapExpired, &term, LAPSED, 2).await.unwrap();
        assert_eq!(reaped, expected);
    }
    let leases: Vec<Lease> = claims.into_iter().map(|claim| claim.lease).collect();
    assert_eq!(at.store.ledger.reads().lost(&leases).await.unwrap().len(), 5);
    let yielding = at.claim(JobKind::Plain, 1).await.remove(0);
    at.settle(&yielding.lease, Settlement::Yield).await;
    assert_eq!(at.store.upkeep.release_all(NOW).await.unwrap(), 0);
}
