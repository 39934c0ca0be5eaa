//! The closed table: every operation in every state either takes an edge of the table or changes nothing.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, agent, complete, discard, done, nothing, park, question, request, retry};
use super::on_every_store;
use std::collections::BTreeSet;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::state::{TRANSITIONS, Trigger};
use turnstone_domain::terms::{OnLimit, Rate, RateLimit};
use turnstone_domain::{
    JobId, JobState, Lease, NewJob, Overrides, Phase, ReviewId, Settlement, Terms, Timestamp, Wait,
};
use turnstone_store::{ClaimRequest, Decision, Duty, JobKind};

on_every_store![every_operation_in_every_state_takes_an_edge_of_the_table_or_changes_nothing];

/// The time at which a scheduled or failed job is due, before its lease would expire.
const DUE: Timestamp = Timestamp(NOW.0 + 1_000);
/// The time at which a lease has expired.
const LAPSED: Timestamp = Timestamp(NOW.0 + LEASE);
/// The time at which an attempt has exceeded its timeout and its grace.
const LATE: Timestamp = Timestamp(NOW.0 + 2_000 + 5_000);
/// The time at which a job has expired.
const EXPIRED: Timestamp = Timestamp(NOW.0 + 1_000_000);

#[derive(Clone, Copy, Debug)]
enum Operation {
    Promote,
    Claim,
    ClaimWhenDue,
    Checkpoint,
    Complete,
    Retry,
    Discard,
    Park,
    Yield,
    Release,
    Reap,
    ReleaseAll,
    TimeOut,
    Cancel,
    Decide,
    ExpireReview,
    Expire,
    Revive,
    ClaimWhenShut(OnLimit),
}

/// Every operation, with the sequences of edges that it may take.
const OPERATIONS: &[(Operation, &[&[Trigger]])] = {
    use Operation as O;
    use Trigger as T;
    &[
        (O::Promote, &[&[T::Promote], &[T::RetryDue]]),
        (O::Claim, &[&[T::Claim]]),
        (O::ClaimWhenDue, &[&[T::Claim], &[T::Promote, T::Claim], &[T::RetryDue, T::Claim]]),
        (O::Checkpoint, &[]),
        (O::Complete, &[&[T::Complete]]),
        (O::Retry, &[&[T::Retry]]),
        (O::Discard, &[&[T::Discard]]),
        (O::Park, &[&[T::Park]]),
        (O::Yield, &[&[T::Yield]]),
        (O::Release, &[&[T::Yield]]),
        (O::Reap, &[&[T::LeaseExpired]]),
        (O::ReleaseAll, &[&[T::LeaseExpired]]),
        (O::TimeOut, &[&[T::Retry]]),
        (O::Cancel, &[&[T::Cancel]]),
        (O::Decide, &[&[T::Activate]]),
        (O::ExpireReview, &[&[T::Activate]]),
        (O::Expire, &[&[T::Expire]]),
        (O::Revive, &[&[T::Revive], &[T::RetryDue]]),
        (O::ClaimWhenShut(OnLimit::Wait), &[]),
        (O::ClaimWhenShut(OnLimit::Reschedule), &[&[T::Reschedule]]),
        (O::ClaimWhenShut(OnLimit::Drop), &[&[T::Drop]]),
    ]
};

/// Names a limit that allows every job until an operator overrides it.
fn limited_by(key: &str, on_limit: OnLimit) -> Terms {
    let limit = RateLimit { key: Some(key.to_owned()), on_limit, ..RateLimit::default() };
    Terms { rate_limit: Some(limit), ..Terms::default() }
}

/// A job in a state, with the lease and the review that it has or had.
struct Subject {
    id: JobId,
    queue: String,
    lease: Lease,
    review: ReviewId,
}

impl Subject {
    async fn bring(at: &Opened, state: JobState, queue: String, on_limit: OnLimit) -> Self {
        let scheduled = state == JobState::Scheduled;
        let job = NewJob {
            queue: queue.clone(),
            run_at: if scheduled { DUE } else { NOW },
            expires_at: Some(EXPIRED),
            timeout_ms: Some(2_000),
            retry: RetryPolicy { jitter: false, ..RetryPolicy::default() },
            terms: limited_by(&queue, on_limit),
            ..agent(Some(100))
        };
        let id = at.push(job).await;
        let review = question(Some(DUE));
        let lease = Lease { job: id.clone(), token: "never given".into(), expires_at: LAPSED };
        let mut subject = Self { id, queue, lease, review: review.id.clone() };
        match state {
            JobState::Scheduled | JobState::Available => {}
            JobState::Cancelled => drop(at.store.intake.cancel(&subject.id, NOW).await.unwrap()),
            _ => subject.lease = subject.claim(at, NOW).await.unwrap(),
        }
        let end = match state {
            JobState::Completed => complete(),
            JobState::Discarded => discard(),
            JobState::Retryable => retry(DUE),
            JobState::Pending => Settlement::Park { wait: Wait::Review(review) },
            _ => return subject,
        };
        at.settle(&subject.lease, end).await;
        subject
    }

    async fn claim(&self, at: &Opened, now: Timestamp) -> Option<Lease> {
        let request = ClaimRequest { queues: vec![self.queue.clone()], ..request(JobKind::Agent, 1, now) };
        at.store.ledger.claim(request).await.unwrap().pop().map(|claim| claim.lease)
    }

    async fn settle(&self, at: &Opened, end: Settlement) {
        // The state shows whether the call was refused.
        let _outcome = at.store.ledger.settle(&self.lease, nothing(), end, NOW).await;
    }

    /// Another job uses up the limit that this job names, too.
    async fn claim_when_shut(&self, at: &Opened) {
        let rate = Some(Rate { limit: 1, period_ms: 3_600_000 });
        let limit = RateLimit { rate, ..RateLimit::default() };
        at.store.queues.override_limit(None, &self.queue, Some(limit)).await.unwrap();
        let terms = limited_by(&self.queue, OnLimit::Wait);
        at.push(NewJob { queue: self.queue.clone(), priority: 100, terms, ..agent(None) }).await;
        self.claim(at, NOW).await.unwrap();
        assert!(self.claim(at, NOW).await.is_none());
    }

    async fn apply(&self, at: &Opened, operation: Operation) {
        match operation {
            Operation::Promote => drop(at.perform(Duty::PromoteDue, DUE).await),
            Operation::Claim => drop(self.claim(at, NOW).await),
            Operation::ClaimWhenDue => drop(self.claim(at, DUE).await),
            Operation::Checkpoint => {
                drop(at.store.ledger.checkpoint(&self.lease, done(Phase::Init), NOW, LEASE).await);
            }
            Operation::Complete => self.settle(at, complete()).await,
            Operation::Retry => self.settle(at, retry(DUE)).await,
            Operation::Discard => self.settle(at, discard()).await,
            Operation::Park => self.settle(at, park(None)).await,
            Operation::Yield => self.settle(at, Settlement::Yield).await,
            Operation::Release => {
                at.store.ledger.release(std::slice::from_ref(&self.lease), NOW).await.unwrap();
            }
            Operation::Reap => drop(at.perform(Duty::ReapExpired, LAPSED).await),
            Operation::ReleaseAll => drop(at.store.upkeep.release_all(NOW).await.unwrap()),
            Operation::TimeOut => drop(at.perform(Duty::TimeOutJobs, LATE).await),
            Operation::Cancel => drop(at.store.intake.cancel(&self.id, NOW).await.unwrap()),
            Operation::Decide => {
                let yes = Decision {
                    approve: true,
                    by: "ann".into(),
                    principal: None,
                    reported: None,
                    reason: None,
                    at: NOW,
                };
                drop(at.store.intake.decide_review(&self.review, yes).await.unwrap());
            }
            Operation::ExpireReview => drop(at.perform(Duty::ExpireReviews, DUE).await),
            Operation::Expire => drop(at.perform(Duty::ExpireJobs, EXPIRED).await),
            Operation::Revive => {
                let retried = at.store.operate.retry(&self.id, None, false, Overrides::default(), NOW);
                let _outcome = retried.await.unwrap();
            }
            Operation::ClaimWhenShut(_) => self.claim_when_shut(at).await,
        }
    }
}

/// Returns the state at the end of a path of edges, or `None` when the table has no such path.
fn walk(from: JobState, path: &[Trigger]) -> Option<JobState> {
    path.iter().try_fold(from, |state, trigger| state.after(*trigger))
}

/// Returns the number of a job's events, with the start that is written with what comes next.
async fn event_count(at: &Opened, id: &JobId) -> usize {
    let untold = format!("SELECT events FROM jobs WHERE id = '{id}' AND engagement_seq IS NOT NULL");
    at.events(id).await.len() + usize::try_from(at.query(&untold).await).unwrap()
}

async fn every_operation_in_every_state_takes_an_edge_of_the_table_or_changes_nothing(at: &Opened) {
    let mut walked = BTreeSet::new();
    for (operation, paths) in OPERATIONS {
        for state in JobState::ALL {
            let on_limit = match operation {
                Operation::ClaimWhenShut(on_limit) => *on_limit,
                _ => OnLimit::Wait,
            };
            let subject = Subject::bring(at, state, format!("{operation:?}-{state}"), on_limit).await;
            let (before, events) = (at.job(&subject.id).await, event_count(at, &subject.id).await);
            assert_eq!(before.state, state);
            subject.apply(at, *operation).await;
            let (after, news) = (at.job(&subject.id).await, event_count(at, &subject.id).await - events);
            let Some(path) = paths.iter().find(|path| walk(state, path).is_some()) else {
                let may_write = matches!((operation, state), (Operation::Checkpoint, JobState::Active));
                assert_eq!(after, before, "{operation:?} in {state}");
                assert_eq!(news, usize::from(may_write), "{operation:?} in {state}");
                continue;
            };
            assert_eq!(Some(after.state), walk(state, path), "{operation:?} in {state}");
            assert!(news >= path.len(), "{operation:?} in {state}: every edge leaves an event");
            assert_eq!(after.ended_at.is_some(), after.state.is_terminal());
            assert_eq!(after.worker_id.is_some(), after.state == JobState::Active);
            let mut from = state;
            for trigger in *path {
                walked.insert(format!("{from} {trigger:?}"));
                from = from.after(*trigger).unwrap();
            }
        }
    }
    let table = TRANSITIONS.iter().map(|(from, by, _)| format!("{from} {by:?}")).collect();
    assert_eq!(walked, table, "an edge that no operation takes, or one too many");
}
