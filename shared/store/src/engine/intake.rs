//! Everything that enters: jobs, agents, answers to reviews, cancellations.

use super::Engine;
use super::ops::{agents, answer, cancel, reviews};
use super::request::Work;
use crate::StoreError;
use async_recursion::async_recursion as boxed;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnstone_domain::question::Unanswered;
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::{AgentDefinition, CallId, JobId, JobState, NewJob, ReviewId, Timestamp};

/// The outcome of a push.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pushed {
    /// The id of the job, or of the existing job that replaces it.
    pub id: JobId,
    /// Its state.
    pub state: JobState,
    /// True when nothing was stored, because the job would not have been unique and an existing one replaces it.
    pub deduplicated: bool,
    /// How full its queue is, when an operator wants clients to know.
    pub pressure: Option<Pressure>,
}

/// How full a queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pressure {
    /// Jobs that wait.
    pub depth: i64,
    /// The most that may wait.
    pub bound: Option<i64>,
}

/// An agent to be registered.
#[derive(Clone, PartialEq, Debug)]
pub struct NewAgent {
    /// The definition that the document was read as.
    pub definition: AgentDefinition,
    /// The document as it was written.
    pub source: String,
    /// The tenants that it serves.
    pub tenants: NewTenants,
    /// Now.
    pub at: Timestamp,
}

/// The tenants that an agent serves after its registration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum NewTenants {
    /// The same as before; all, when the agent is new.
    #[default]
    Unchanged,
    /// All tenants.
    All,
    /// These tenants alone.
    Only(Vec<String>),
}

/// An agent to be removed from the register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentRemoval {
    /// Its name.
    pub name: String,
    /// True when the agent is removed although other registered agents name it; their calls of it fail from then
    /// on.
    pub even_if_named: bool,
    /// Now.
    pub at: Timestamp,
}

/// The outcome of a removal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AgentRemoved {
    /// The agent is gone. Engagements that run keep the definition they began with.
    Gone,
    /// There was none of that name.
    Unknown,
    /// It stays: these other agents name it, as a capability or as a reviewer.
    NamedBy(Vec<String>),
}

/// The outcome of a cancellation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CancelOutcome {
    /// The job is `cancelled` now.
    Cancelled {
        /// The state before.
        previous: JobState,
    },
    /// The job had ended already; nothing changed.
    AlreadyEnded(JobState),
    /// There is no such job.
    NotFound,
}

/// An answer to a review.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Yes or no.
    pub approve: bool,
    /// The reviewer who answers.
    pub by: String,
    /// The principal of the request, of whom a review takes one vote; `None` for clients that cannot be distinguished.
    pub principal: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The result of a call of unknown outcome, which the approval reports.
    pub reported: Option<Value>,
    /// Now.
    pub at: Timestamp,
}

/// The outcome of an answer to a review.
#[derive(Clone, PartialEq, Debug)]
pub enum DecisionOutcome {
    /// It counts; the job is `available` again.
    Decided(Box<Review>),
    /// It is one vote of several; the review is open still.
    Counted(Box<Review>),
    /// Another reviewer is asked; nothing changed.
    NotAsked(Box<Review>),
    /// This reviewer has voted already; nothing changed.
    VotedAlready,
    /// A concurrent answer was recorded first, the deadline passed, or the job has ended; nothing changed.
    TooLate(ReviewState),
    /// There is no such review.
    NotFound,
}

/// An answer of a user to the question that a job waits with.
#[derive(Clone, PartialEq, Debug)]
pub struct NewAnswer {
    /// The job.
    pub job: JobId,
    /// Finds only a job of this tenant; `None` means any tenant.
    pub tenant: Option<String>,
    /// The call that asks: the answer is to no other one.
    pub call: CallId,
    /// By what it is given: in one engagement the same key is the same answer, whatever is asked by then.
    pub key: Option<String>,
    /// A value for each key; keys that were not asked for do not matter.
    pub values: Map<String, Value>,
    /// The user who answers.
    pub by: String,
    /// The sender's id of the message; published with the event.
    pub message: Option<String>,
    /// Now.
    pub at: Timestamp,
}

/// The outcome of a user's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AnswerOutcome {
    /// It counts; the job is `available` again.
    Answered(CallId),
    /// It is the one that counted already; nothing changed.
    Repeated(CallId),
    /// Another one counted already; nothing changed.
    Different,
    /// It does not answer what is asked; the job still waits.
    Refused(Unanswered),
    /// The job does not wait for an answer.
    NotWaiting,
    /// There is no such job.
    NotFound,
}

/// The api's side of the store.
#[derive(Clone)]
pub struct Intake(pub(super) Arc<Engine>);

impl Intake {
    /// Enqueues all jobs or none: job, engagement, budget and `job.enqueued` in one transaction. A job that has to be
    /// unique (OJS unique jobs §4) is compared with the others in the same transaction.
    ///
    /// # Errors
    /// [`StoreError::DuplicateJob`] names the first id that exists already, [`StoreError::NotUnique`] the first job that
    /// is refused because it would not be unique.
    #[boxed]
    pub async fn push(&self, jobs: Vec<NewJob>) -> Result<Vec<Pushed>, StoreError> {
        self.0.ask(jobs, Work::Push).await
    }

    /// `scheduled | available | pending | active | retryable → cancelled`. An active job's lease ends with it.
    #[boxed]
    pub async fn cancel(&self, job: &JobId, at: Timestamp) -> Result<CancelOutcome, StoreError> {
        self.cancel_of(job, None, at).await
    }

    /// Cancels a job as [`Intake::cancel`] does, if it is this tenant's; `None` means any tenant.
    #[boxed]
    pub async fn cancel_of(
        &self,
        job: &JobId,
        tenant: Option<&str>,
        at: Timestamp,
    ) -> Result<CancelOutcome, StoreError> {
        self.0
            .write((job.clone(), tenant.map(str::to_owned), at), |tx, (job, tenant, at)| {
                Box::pin(cancel::apply(&mut tx.session, &mut tx.unit, job, tenant.as_deref(), *at))
            })
            .await
    }

    /// Registers or replaces an agent; engagements that run keep the definition they began with. Returns whether
    /// anything changed.
    #[boxed]
    pub async fn register_agent(&self, agent: NewAgent) -> Result<bool, StoreError> {
        self.0
            .write(agent, |tx, agent| {
                Box::pin(agents::register(&mut tx.session, &mut tx.unit, (agent, &mut tx.before)))
            })
            .await
    }

    /// Answers what an agent asks its user, and makes its parked job available: `pending → available`.
    #[boxed]
    pub async fn answer_question(&self, answer: NewAnswer) -> Result<AnswerOutcome, StoreError> {
        self.0
            .write(answer, |tx, answer| Box::pin(answer::apply(&mut tx.session, &mut tx.unit, answer)))
            .await
    }

    /// Removes an agent, unless others name it.
    #[boxed]
    pub async fn remove_agent(&self, removal: AgentRemoval) -> Result<AgentRemoved, StoreError> {
        self.0
            .write(removal, |tx, removal| {
                Box::pin(agents::remove(&mut tx.session, &mut tx.unit, (removal, &mut tx.before)))
            })
            .await
    }

    /// Answers an open review. Once it is decided, its parked job is available: `pending → available`.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] when the review is damaged: a worker receives its job, which it cannot read.
    #[boxed]
    pub async fn decide_review(
        &self,
        review: &ReviewId,
        decision: Decision,
    ) -> Result<DecisionOutcome, StoreError> {
        self.0
            .write((review.clone(), decision), |tx, (review, decision)| {
                Box::pin(reviews::apply(&mut tx.session, &mut tx.unit, review, decision))
            })
            .await?
    }
}
