//! Jobs, writes and short forms of store calls for the cases.

use super::backend::Opened;
use serde_json::json;
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::engagement::{NewEngagement, User};
use turnstone_domain::error::FailureKind;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::review::{NewReview, ReviewKind, ReviewPlan};
use turnstone_domain::{
    AgentDefinition, EngagementId, EventName, Ids, Job, JobError, JobId, JobState, Lease, NewCheckpoint,
    NewEvent, NewJob, Phase, RawJson, Settlement, Spent, Timestamp, TurnWrite, Wait,
};
use turnstone_store::{Claim, ClaimRequest, Duty, EventFilter, JobKind, Term};

/// The time at which the cases begin.
pub const NOW: Timestamp = Timestamp(1_000_000);
/// The length of a lease in milliseconds.
pub const LEASE: i64 = 10_000;
/// The time at which a lease claimed at [`NOW`] has expired.
pub const LAPSED: Timestamp = Timestamp(NOW.0 + LEASE);

pub fn plain(priority: i64) -> NewJob {
    NewJob {
        id: JobId(SystemIds.next()),
        job_type: "t".into(),
        queue: "q".into(),
        priority,
        run_at: NOW,
        expires_at: None,
        timeout_ms: None,
        retry: RetryPolicy { jitter: false, ..RetryPolicy::default() },
        envelope: Envelope::default(),
        engagement: None,
        terms: turnstone_domain::Terms::default(),
        created_at: NOW,
    }
}

pub fn agent(token_budget: Option<i64>) -> NewJob {
    let mut definition = AgentDefinition { name: "a".into(), ..AgentDefinition::default() };
    definition.limits.token_budget = token_budget;
    let engagement =
        NewEngagement { id: SystemIds.next().into(), agent: definition, user: User::default(), depth: 0 };
    NewJob { engagement: Some(engagement), ..plain(0) }
}

pub fn request(kind: JobKind, limit: usize, now: Timestamp) -> ClaimRequest {
    ClaimRequest {
        kind,
        queues: vec!["*".into()],
        limit,
        worker_id: "w".into(),
        lease_ms: LEASE,
        tenant: None,
        runtime_tags: None,
        now,
    }
}

/// Returns a checkpoint of turn 1 with its event.
pub fn done(phase: Phase) -> TurnWrite {
    let checkpoint = NewCheckpoint {
        turn: 1,
        phase,
        version: 1,
        body: RawJson::empty_object(),
        duration_ms: 0,
        tokens_in: 0,
        tokens_out: 0,
        at: NOW,
        spent: Spent::default(),
    };
    let event =
        NewEvent { name: EventName::PhaseCompleted, turn: 1, data: json!({"phase": phase}).into(), at: NOW };
    TurnWrite { checkpoints: vec![checkpoint], events: vec![event], ..TurnWrite::default() }
}

pub fn nothing() -> TurnWrite {
    TurnWrite::default()
}

pub fn reserve(tokens: i64) -> TurnWrite {
    TurnWrite { budget: Some(BudgetMove::Reserve { tokens }), ..TurnWrite::default() }
}

pub fn book(reserved: i64, used: i64) -> TurnWrite {
    TurnWrite { budget: Some(BudgetMove::Settle { reserved, used }), ..TurnWrite::default() }
}

pub fn complete() -> Settlement {
    Settlement::Complete { result: json!({"answer": 1}).into(), withheld: false }
}

pub fn retry(run_at: Timestamp) -> Settlement {
    let error = JobError::new(FailureKind::Tool, "it broke");
    Settlement::Retry { error, run_at, delay_ms: run_at.since(NOW) }
}

pub fn discard() -> Settlement {
    Settlement::Discard { error: JobError::new(FailureKind::Policy, "it must not") }
}

pub fn question(deadline_at: Option<Timestamp>) -> NewReview {
    NewReview {
        id: SystemIds.next().into(),
        turn: 1,
        call_id: SystemIds.next().into(),
        kind: ReviewKind::Input,
        reviewer: "ann".into(),
        question: json!({"name": "pay"}),
        arguments_hash: "h".into(),
        deadline_at,
        plan: ReviewPlan::default(),
        asked: None,
    }
}

pub fn park(deadline_at: Option<Timestamp>) -> Settlement {
    Settlement::Park { wait: Wait::Review(question(deadline_at)) }
}

impl Opened {
    pub async fn push(&self, job: NewJob) -> JobId {
        self.store.intake.push(vec![job]).await.unwrap().remove(0).id
    }

    pub async fn claim_at(&self, kind: JobKind, limit: usize, now: Timestamp) -> Vec<Claim> {
        self.store.ledger.claim(request(kind, limit, now)).await.unwrap()
    }

    pub async fn claim(&self, kind: JobKind, limit: usize) -> Vec<Claim> {
        self.claim_at(kind, limit, NOW).await
    }

    /// Pushes an agent job and claims it.
    pub async fn held(&self, budget: Option<i64>) -> Claim {
        let id = self.push(agent(budget)).await;
        let held = self.claim(JobKind::Agent, 1).await.remove(0);
        assert_eq!(held.job, id, "another job stood in the way");
        held
    }

    pub async fn settle(&self, lease: &Lease, end: Settlement) {
        self.store.ledger.settle(lease, nothing(), end, NOW).await.unwrap();
    }

    pub async fn job(&self, id: &JobId) -> Job {
        self.store.views.job(id).await.unwrap().unwrap()
    }

    pub async fn state(&self, id: &JobId) -> JobState {
        self.job(id).await.state
    }

    /// Returns the names of a job's events in order, and asserts that their numbers have no gaps.
    pub async fn events(&self, id: &JobId) -> Vec<EventName> {
        let filter = EventFilter::Job(id.clone());
        let events = self.store.views.events_after(&filter, 0, 10_000).await.unwrap();
        let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..).take(numbers.len()).collect::<Vec<i64>>(), "the stream has gaps");
        events.into_iter().map(|event| event.name).collect()
    }

    /// Returns the leader's term, held by the test.
    pub async fn term(&self) -> Term {
        self.store.upkeep.lead("test", 1_000_000_000_000, NOW).await.unwrap().unwrap()
    }

    pub async fn perform(&self, duty: Duty, now: Timestamp) -> usize {
        self.store.upkeep.perform(duty, &self.term().await, now, 1000).await.unwrap()
    }
}

/// Returns the engagement of a claim.
pub fn engagement(claim: &Claim) -> EngagementId {
    claim.engagement.as_ref().unwrap().engagement.id.clone()
}
