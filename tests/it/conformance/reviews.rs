//! A review is answered once, and before its deadline.

use super::backend::Opened;
use super::jobs::{NOW, complete, discard, engagement, nothing, question};
use super::on_every_store;
use turnstone_domain::fork::{ForkChanges, ForkPoint};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::review::{NewReview, Review, ReviewKind, ReviewState};
use turnstone_domain::{
    EventName, Ids, JobId, JobState, Overrides, Phase, ReviewId, Settlement, Timestamp, Wait,
};
use turnstone_store::{
    ActionOutcome, Claim, Decision, DecisionOutcome, Duty, JobKind, NewFork, Page, ReviewFilter,
};

on_every_store![
    an_answer_wakes_the_job_and_counts_once,
    of_concurrent_answers_one_counts,
    an_answer_after_the_deadline_is_too_late,
    silence_rejects_at_the_deadline,
    the_answer_to_a_cancelled_job_is_too_late,
    a_parked_job_holds_nothing,
    a_rejection_does_not_count_after_a_retry,
    a_late_answer_is_published_once_per_reviewer,
];

const EVERYTHING: Page = Page { limit: 1000, offset: 0 };

async fn parked(at: &Opened, deadline_at: Option<Timestamp>) -> (Claim, ReviewId) {
    let held = at.held(Some(100)).await;
    let review = question(deadline_at);
    let id = review.id.clone();
    at.settle(&held.lease, Settlement::Park { wait: Wait::Review(review) }).await;
    (held, id)
}

fn answer(approve: bool, at: Timestamp) -> Decision {
    Decision {
        approve,
        by: "ann".into(),
        principal: None,
        reason: Some("because".into()),
        reported: None,
        at,
    }
}

async fn review(at: &Opened, id: &ReviewId) -> Review {
    at.store.views.review(id).await.unwrap().unwrap()
}

async fn an_answer_wakes_the_job_and_counts_once(at: &Opened) {
    for (approve, state) in [(true, ReviewState::Approved), (false, ReviewState::Rejected)] {
        let (held, id) = parked(at, Some(NOW.plus_ms(10))).await;
        assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(NOW.plus_ms(10)));
        let outcome = at.store.intake.decide_review(&id, answer(approve, NOW.plus_ms(9))).await.unwrap();
        let DecisionOutcome::Decided(decided) = outcome else { panic!("{outcome:?}") };
        assert_eq!(*decided, review(at, &id).await);
        assert_eq!((decided.state, decided.decided_by.as_deref()), (state, Some("ann")));
        assert_eq!((decided.reason.as_deref(), decided.decided_at), (Some("because"), Some(NOW.plus_ms(9))));
        assert_eq!(at.state(&held.job).await, JobState::Available);
        let again = at.store.intake.decide_review(&id, answer(!approve, NOW)).await.unwrap();
        assert_eq!(again, DecisionOutcome::TooLate(state));
        assert_eq!(review(at, &id).await, *decided);
        let events = at.events(&held.job).await;
        use EventName::{JobAvailable, JobParked, ReviewAnsweredLate, ReviewDecided, ReviewOpened};
        assert_eq!(
            events[2..],
            [ReviewOpened, JobParked, ReviewDecided, JobAvailable, ReviewAnsweredLate],
            "a late answer is on record"
        );
        let next = at.claim(JobKind::Agent, 1).await.remove(0);
        assert_eq!((next.job.clone(), next.failures), (held.job.clone(), 0));
        let recalled = at.store.ledger.reads().recall(&held.job, 1, 10, true).await.unwrap();
        assert_eq!(recalled.reviews.iter().map(|answer| answer.state).collect::<Vec<_>>(), [state]);
        at.settle(&next.lease, complete()).await;
    }
    let unknown = at.store.intake.decide_review(&ReviewId("nobody".into()), answer(true, NOW)).await.unwrap();
    assert_eq!(unknown, DecisionOutcome::NotFound);
}

async fn of_concurrent_answers_one_counts(at: &Opened) {
    for _ in 0..10 {
        let (held, id) = parked(at, None).await;
        let answers = (0..4).map(|n| at.store.intake.decide_review(&id, answer(n % 2 == 0, NOW)));
        let outcomes = futures::future::join_all(answers).await;
        let counted =
            |outcome: &&Result<DecisionOutcome, _>| matches!(outcome, Ok(DecisionOutcome::Decided(_)));
        assert_eq!(outcomes.iter().filter(counted).count(), 1, "{outcomes:?}");
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let decided = at.events(&held.job).await;
        assert_eq!(decided.iter().filter(|name| **name == EventName::ReviewDecided).count(), 1);
        at.store.intake.cancel(&held.job, NOW).await.unwrap();
    }
}

async fn an_answer_after_the_deadline_is_too_late(at: &Opened) {
    let (held, id) = parked(at, Some(NOW.plus_ms(10))).await;
    let outcome = at.store.intake.decide_review(&id, answer(true, NOW.plus_ms(10))).await.unwrap();
    assert_eq!(outcome, DecisionOutcome::TooLate(ReviewState::Expired));
    assert_eq!(at.state(&held.job).await, JobState::Pending, "the scheduler wakes it");
}

async fn silence_rejects_at_the_deadline(at: &Opened) {
    let (held, id) = parked(at, Some(NOW.plus_ms(10))).await;
    let (waits, open) = parked(at, None).await;
    assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(9)).await, 0);
    assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(10)).await, 1);
    assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(1_000_000)).await, 0);
    let expired = review(at, &id).await;
    assert_eq!((expired.state, expired.decided_at), (ReviewState::Expired, Some(NOW.plus_ms(10))));
    assert_eq!(at.state(&held.job).await, JobState::Available);
    assert_eq!(at.state(&waits.job).await, JobState::Pending);
    let filter = ReviewFilter {
        state: Some(ReviewState::Open),
        reviewer: Some("ann".into()),
        ..ReviewFilter::default()
    };
    let waiting = at.store.views.reviews(&filter, EVERYTHING).await.unwrap();
    assert_eq!(waiting.iter().map(|review| &review.id).collect::<Vec<_>>(), [&open]);
    let late = at.store.intake.decide_review(&id, answer(true, NOW)).await.unwrap();
    assert_eq!(late, DecisionOutcome::TooLate(ReviewState::Expired));
}

async fn the_answer_to_a_cancelled_job_is_too_late(at: &Opened) {
    let (held, id) = parked(at, None).await;
    at.store.intake.cancel(&held.job, NOW).await.unwrap();
    let outcome = at.store.intake.decide_review(&id, answer(true, NOW)).await.unwrap();
    assert_eq!(outcome, DecisionOutcome::TooLate(ReviewState::Expired));
    assert_eq!(at.state(&held.job).await, JobState::Cancelled);
}

async fn a_parked_job_holds_nothing(at: &Opened) {
    let (held, _) = parked(at, None).await;
    let job = at.job(&held.job).await;
    assert_eq!((job.state, job.worker_id, job.failures), (JobState::Pending, None, 0));
    assert!(at.claim_at(JobKind::Agent, 10, NOW.plus_ms(1_000_000_000)).await.is_empty());
    let refused = at.store.ledger.settle(&held.lease, nothing(), complete(), NOW).await;
    assert!(refused.is_err());
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), None);
    assert_eq!(at.query("SELECT count(*) FROM jobs WHERE lease_token IS NOT NULL").await, 0);
}

/// When a job is retried after a rejection, the rejection no longer counts, neither for the job nor for its forks.
/// Its record says so.
async fn a_rejection_does_not_count_after_a_retry(at: &Opened) {
    let (held, id) = parked(at, None).await;
    at.store.intake.decide_review(&id, answer(false, NOW)).await.unwrap();
    let refused = at.claim(JobKind::Agent, 1).await.remove(0);
    at.settle(&refused.lease, discard()).await;
    let (job, overrides) = (&held.job, Overrides::default());
    let revived = at.store.operate.retry(job, None, false, overrides, NOW).await.unwrap();
    assert_eq!(revived, ActionOutcome::Done { previous: JobState::Discarded });
    let again = at.claim(JobKind::Agent, 1).await.remove(0);
    let review = question(None);
    let second = review.id.clone();
    at.settle(&again.lease, Settlement::Park { wait: Wait::Review(review) }).await;
    at.store.intake.decide_review(&second, answer(true, NOW)).await.unwrap();
    let granted = at.claim(JobKind::Agent, 1).await.remove(0);
    at.settle(&granted.lease, complete()).await;
    let filter = ReviewFilter { engagement: Some(engagement(&held)), ..ReviewFilter::default() };
    let all = at.store.views.reviews(&filter, EVERYTHING).await.unwrap();
    let reported: Vec<_> = all.iter().map(|review| (&review.id, review.spent)).collect();
    assert_eq!(reported, [(&id, true), (&second, false)]);
    let fork = NewFork {
        from: engagement(&held),
        tenant: None,
        point: ForkPoint { turn: 1, phase: Phase::Init },
        changes: ForkChanges::default(),
        live_tools: false,
        engagement: SystemIds.next().into(),
        job: JobId(SystemIds.next()),
        by: None,
        at: NOW,
    };
    let job = fork.job.clone();
    at.store.forks.fork(fork).await.unwrap().unwrap();
    let (_, recorded) = at.store.ledger.reads().recall(&job, 1, 10, true).await.unwrap().fork.unwrap();
    let states: Vec<ReviewState> = recorded.reviews.iter().map(|review| review.state).collect();
    assert_eq!(states, [ReviewState::Approved]);
}

/// Late answers do not fill a stream: those of strangers are refused, and each reviewer's late answer is one event.
async fn a_late_answer_is_published_once_per_reviewer(at: &Opened) {
    let (held, id) = parked(at, None).await;
    at.store.intake.decide_review(&id, answer(true, NOW)).await.unwrap();
    let late = async || {
        let names = at.events(&held.job).await;
        names.into_iter().filter(|name| *name == EventName::ReviewAnsweredLate).count()
    };
    for _ in 0..3 {
        let bob = Decision { by: "bob".into(), ..answer(false, NOW) };
        let outcome = at.store.intake.decide_review(&id, bob).await.unwrap();
        assert!(matches!(outcome, DecisionOutcome::NotAsked(_)), "{outcome:?}");
    }
    assert_eq!(late().await, 0);
    for approve in [false, true, false] {
        let outcome = at.store.intake.decide_review(&id, answer(approve, NOW)).await.unwrap();
        assert_eq!(outcome, DecisionOutcome::TooLate(ReviewState::Approved));
    }
    assert_eq!(late().await, 1);
    // Late answers to a review that any reviewer may answer are published up to a bound.
    let error = NewReview { kind: ReviewKind::Escalation, ..question(None) };
    let id = error.id.clone();
    let lease = at.claim(JobKind::Agent, 1).await.remove(0).lease;
    at.settle(&lease, Settlement::Park { wait: Wait::Review(error) }).await;
    for n in 0..300 {
        let by = format!("{n:04}");
        at.store.intake.decide_review(&id, Decision { by, ..answer(true, NOW) }).await.unwrap();
    }
    assert_eq!(late().await, 1 + 166, "six characters each of a thousand");
}
