//! Pushes are stored whole or not at all, once, and survive a restart. Jobs are cancelled.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, agent, complete, done, engagement, nothing, park, plain, reserve, retry};
use super::on_every_store;
use turnstone_domain::review::ReviewState;
use turnstone_domain::{JobId, JobState, NewJob, Phase, RawJson, RawObject, Settlement};
use turnstone_store::{CancelOutcome, JobFilter, JobKind, LedgerError, Page, ReviewFilter, StoreError};

on_every_store![
    a_push_is_whole_or_not_at_all_and_an_id_is_taken_once,
    of_two_concurrent_pushes_of_one_id_exactly_one_wins,
    a_refused_push_does_not_touch_the_others_of_its_commit,
    acknowledged_jobs_are_there_after_the_store_is_opened_again,
    a_job_is_read_back_unchanged,
    an_agent_that_cannot_be_read_does_not_block_the_others,
    an_agent_of_an_import_that_nothing_admits_is_never_claimed,
    every_state_that_has_not_ended_can_be_cancelled,
    cancel_ends_a_lease_and_an_ended_job_stays_as_it_is,
    lists_and_counts_agree,
];

const EVERYTHING: Page = Page { limit: 1000, offset: 0 };

async fn a_push_is_whole_or_not_at_all_and_an_id_is_taken_once(at: &Opened) {
    let (first, second) = (plain(0), agent(Some(1)));
    at.push(first.clone()).await;
    let refused = at.store.intake.push(vec![second.clone(), first.clone()]).await.unwrap_err();
    assert!(matches!(refused, StoreError::DuplicateJob(id) if id == first.id));
    assert!(at.store.views.job(&second.id).await.unwrap().is_none());
    let twice = at.store.intake.push(vec![second.clone(), second.clone()]).await.unwrap_err();
    assert!(matches!(twice, StoreError::DuplicateJob(id) if id == second.id));
    assert_eq!(at.query("SELECT count(*) FROM engagements").await, 0);
    assert_eq!(at.query(turnstone_tests::journal::EVENTS).await, 1);
    at.push(second).await;
}

async fn of_two_concurrent_pushes_of_one_id_exactly_one_wins(at: &Opened) {
    for _ in 0..20 {
        let job = plain(0);
        let pushes = (0..4).map(|_| at.store.intake.push(vec![plain(0), job.clone()]));
        let outcomes = futures::future::join_all(pushes).await;
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "{lost:?}");
        for refused in lost {
            let refused = refused.unwrap_err();
            assert!(matches!(&refused, StoreError::DuplicateJob(id) if *id == job.id), "{refused}");
        }
    }
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 40, "a refused push leaves nothing");
}

async fn a_refused_push_does_not_touch_the_others_of_its_commit(at: &Opened) {
    let known = at.push(plain(0)).await;
    let jobs: Vec<NewJob> =
        (0..20).map(|n| if n == 7 { NewJob { id: known.clone(), ..plain(0) } } else { plain(0) }).collect();
    let pushes = jobs.into_iter().map(|job| at.store.intake.push(vec![job]));
    let outcomes = futures::future::join_all(pushes).await;
    let refused: Vec<usize> = (0..20).filter(|at| outcomes[*at].is_err()).collect();
    assert_eq!(refused, [7]);
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 20);
}

/// Whatever made the job: a claim is the last check.
async fn an_agent_of_an_import_that_nothing_admits_is_never_claimed(at: &Opened) {
    let mut job = agent(None);
    job.engagement.as_mut().unwrap().agent.imported = true;
    let foreign = at.push(job).await;
    let own = at.push(agent(None)).await;
    let claimed: Vec<JobId> = at.claim(JobKind::Agent, 10).await.into_iter().map(|claim| claim.job).collect();
    assert_eq!(claimed, [own]);
    // A claim in one statement gives the job back; the next one ends it.
    assert!(at.claim(JobKind::Agent, 10).await.is_empty());
    let ended = at.job(&foreign).await;
    assert_eq!(ended.state, JobState::Discarded);
    let error = format!("{:?}", ended.errors);
    assert!(error.contains("came with an imported engagement"), "{error}");
}

async fn acknowledged_jobs_are_there_after_the_store_is_opened_again(at: &Opened) {
    let job = agent(Some(7));
    at.push(job.clone()).await;
    let second = at.place.open().await;
    let found = second.views.job(&job.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.job_type), (JobState::Available, job.job_type));
    assert_eq!(second.upkeep.next_due().await.unwrap(), None);
}

async fn a_job_is_read_back_unchanged(at: &Opened) {
    let object = |text: &str| serde_json::from_str::<RawObject>(text).unwrap();
    let mut job = agent(Some(i64::MAX));
    let text = "[\"\u{1F980} ' \\\" \\\\ \u{7f} $1\\u0000\", [1.50, null , 1e400]]";
    job.envelope.args = RawJson::from_text(text.to_owned()).unwrap();
    job.envelope.meta = object(r#"{"z": 1, "a": {"b": [100000000000000000000000000000000]}}"#);
    job.envelope.options = object(r#"{"priority": -100}"#);
    job.envelope.extra = object(r#"{"ext_agent_model": "m", "x": false}"#);
    job.priority = -100;
    job.timeout_ms = Some(5);
    job.expires_at = Some(NOW.plus_ms(9));
    at.push(job.clone()).await;
    let found = at.job(&job.id).await;
    assert_eq!(found.envelope, job.envelope);
    assert_eq!((found.priority, found.timeout_ms, found.expires_at), (-100, Some(5), job.expires_at));
    assert_eq!((found.retry, found.created_at, found.run_at), (job.retry.clone(), NOW, NOW));
    let claim = at.claim(JobKind::Agent, 1).await.remove(0);
    assert_eq!((claim.envelope, claim.retry, claim.timeout_ms), (job.envelope, job.retry, Some(5)));
    assert_eq!(claim.engagement.unwrap().budget.limit, Some(i64::MAX));
}

async fn an_agent_that_cannot_be_read_does_not_block_the_others(at: &Opened) {
    let (unreadable, good) = (agent(Some(1)), agent(None));
    at.push(unreadable.clone()).await;
    at.query("UPDATE agent_definitions SET definition = '{\"format\": \"of_next_year\"}'").await;
    at.push(good.clone()).await;
    let claims: Vec<JobId> = at.claim(JobKind::Agent, 10).await.into_iter().map(|claim| claim.job).collect();
    assert_eq!(claims, [good.id]);
    let next = at.push(agent(None)).await;
    let claims = at.claim(JobKind::Agent, 1).await;
    assert_eq!(claims.iter().map(|claim| &claim.job).collect::<Vec<_>>(), [&next], "one free slot");
    // A claim that takes before it reads gives the job back, once.
    let left = at.job(&unreadable.id).await;
    assert_eq!((left.state, left.failures), (JobState::Available, 0));
    assert!(left.attempt <= 1, "{}", left.attempt);
}

async fn every_state_that_has_not_ended_can_be_cancelled(at: &Opened) {
    let scheduled = at.push(NewJob { run_at: NOW.plus_ms(1), ..agent(None) }).await;
    let active = at.held(Some(100)).await;
    at.store.ledger.checkpoint(&active.lease, reserve(60), NOW, LEASE).await.unwrap();
    let parked = at.held(None).await;
    at.settle(&parked.lease, park(None)).await;
    let retryable = at.held(None).await;
    at.settle(&retryable.lease, retry(NOW.plus_ms(1))).await;
    let available = at.push(agent(None)).await;
    let waiting = [
        (scheduled, JobState::Scheduled),
        (active.job.clone(), JobState::Active),
        (parked.job.clone(), JobState::Pending),
        (retryable.job.clone(), JobState::Retryable),
        (available, JobState::Available),
    ];
    for (id, previous) in waiting {
        let outcome = at.store.intake.cancel(&id, NOW).await.unwrap();
        assert_eq!(outcome, CancelOutcome::Cancelled { previous });
        let job = at.job(&id).await;
        assert_eq!((job.state, job.ended_at, job.worker_id), (JobState::Cancelled, Some(NOW), None));
    }
    assert_eq!(at.store.views.budget(&engagement(&active)).await.unwrap().left(), Some(100));
    let reviews = at.store.views.reviews(&ReviewFilter::default(), EVERYTHING).await.unwrap();
    assert_eq!(reviews.iter().map(|review| review.state).collect::<Vec<_>>(), [ReviewState::Expired]);
    assert!(at.claim_at(JobKind::Agent, 10, NOW.plus_ms(10)).await.is_empty());
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), None);
}

async fn cancel_ends_a_lease_and_an_ended_job_stays_as_it_is(at: &Opened) {
    let held = at.held(None).await;
    let outcome = at.store.intake.cancel(&held.job, NOW).await.unwrap();
    assert_eq!(outcome, CancelOutcome::Cancelled { previous: JobState::Active });
    let refused = at.store.ledger.settle(&held.lease, nothing(), complete(), NOW).await.unwrap_err();
    assert!(matches!(refused, LedgerError::LeaseLost(id) if id == held.job));
    let refused = at.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.unwrap_err();
    assert!(matches!(refused, LedgerError::LeaseLost(_)));
    let again = at.store.intake.cancel(&held.job, NOW.plus_ms(1)).await.unwrap();
    assert_eq!(again, CancelOutcome::AlreadyEnded(JobState::Cancelled));
    assert_eq!(at.job(&held.job).await.ended_at, Some(NOW));
    let unknown = at.store.intake.cancel(&JobId("nobody".into()), NOW).await.unwrap();
    assert_eq!(unknown, CancelOutcome::NotFound);
}

async fn lists_and_counts_agree(at: &Opened) {
    for queue in ["a", "b", "b"] {
        at.push(NewJob { queue: queue.into(), ..plain(0) }).await;
    }
    let held = at.held(None).await;
    at.settle(&held.lease, Settlement::Yield).await;
    at.push(agent(None)).await;
    assert_eq!(at.claim(JobKind::Agent, 1).await.len(), 1);
    let all = at.store.views.jobs(&JobFilter::default(), EVERYTHING).await.unwrap();
    assert_eq!((all.0.len(), all.1), (5, 5));
    let second = at.store.views.jobs(&JobFilter::default(), Page { limit: 2, offset: 1 }).await.unwrap();
    assert_eq!(second.0, all.0[1..3]);
    assert_eq!(second.1, 5);
    let in_b = JobFilter { queue: Some("b".into()), ..JobFilter::default() };
    assert_eq!(at.store.views.jobs(&in_b, EVERYTHING).await.unwrap().1, 2);
    let active = JobFilter { state: Some(JobState::Active), ..JobFilter::default() };
    assert_eq!(at.store.views.jobs(&active, EVERYTHING).await.unwrap().1, 1);
    assert_eq!(at.store.views.counts(Some("b")).await.unwrap(), [(JobState::Available, 2)]);
    let mut counts = at.store.views.counts(None).await.unwrap();
    counts.sort_by_key(|(state, _)| state.as_str());
    assert_eq!(counts, [(JobState::Active, 1), (JobState::Available, 4)]);
    let queues = at.store.views.queues().await.unwrap();
    assert!(["a", "b", "q"].iter().all(|queue| queues.iter().any(|known| known == queue)), "{queues:?}");
}
