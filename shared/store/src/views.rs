//! Reads. None of them changes anything.

use crate::{StoreError, WorkerBeat};
use async_trait::async_trait;
use turnstone_domain::budget::Budget;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::event::Event;
use turnstone_domain::feed::FeedEvent;
use turnstone_domain::guardrail_check::GuardrailCheck;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{
    AgentDefinition, CallId, Checkpoint, EngagementId, Job, JobId, JobState, Phase, ReviewId, Timestamp,
};

/// Which part of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// At most this many.
    pub limit: u32,
    /// After this many.
    pub offset: u32,
}

/// What a list of jobs is ordered by.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum JobOrder {
    /// When they were accepted.
    #[default]
    Accepted,
    /// Their priority.
    Priority,
    /// How often they were claimed.
    Attempt,
    /// When they may run at the earliest.
    Due,
    /// When they ended; those that have not come as if they had ended before all others.
    Ended,
}

/// Which jobs.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct JobFilter {
    /// In this state.
    pub state: Option<JobState>,
    /// In this queue.
    pub queue: Option<String>,
    /// Of this type.
    pub job_type: Option<String>,
    /// Of this tenant; `None` is everybody's.
    pub tenant: Option<String>,
    /// Accepted then or later.
    pub since: Option<Timestamp>,
    /// Accepted before then.
    pub until: Option<Timestamp>,
    /// What they are ordered by.
    pub order: JobOrder,
    /// The least first, instead of the greatest.
    pub ascending: bool,
}

/// Which tasks: the jobs of an agent, as A2A lists them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TaskFilter {
    /// The agent.
    pub agent: String,
    /// Of this tenant; `None` is everybody's.
    pub tenant: Option<String>,
    /// In this engagement.
    pub engagement: Option<EngagementId>,
    /// In one of these states; none is any.
    pub states: Vec<JobState>,
    /// Whether somebody has begun.
    pub begun: Option<bool>,
    /// That ended, began or were accepted then or later.
    pub since: Option<Timestamp>,
    /// Those behind this one of the list.
    pub after: Option<TaskPlace>,
}

/// Where a task stands in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskPlace {
    /// When it ended, or else began, or else was accepted.
    pub changed_at: Timestamp,
    /// Its number.
    pub position: i64,
}

/// Which reviews.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ReviewFilter {
    /// In this state.
    pub state: Option<ReviewState>,
    /// Asked of this reviewer.
    pub reviewer: Option<String>,
    /// About jobs of this tenant; `None` is everybody's.
    pub tenant: Option<String>,
    /// About this engagement.
    pub engagement: Option<EngagementId>,
}

/// Which engagements.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct EngagementFilter {
    /// Of this agent.
    pub agent: Option<String>,
    /// Begun then or later.
    pub since: Option<Timestamp>,
    /// With a job of this tenant; `None` is everybody's.
    pub tenant: Option<String>,
    /// Those behind this position of the list.
    pub after: Option<i64>,
}

/// An engagement as listed.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedEngagement {
    /// Where it stands; the list goes on behind it with [`EngagementFilter::after`].
    pub position: i64,
    /// The engagement.
    pub engagement: Engagement,
    /// Its latest job.
    pub job_id: JobId,
    /// The state of that job.
    pub job_state: JobState,
}

/// Which stream of events.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum EventFilter {
    /// All events of an engagement.
    Engagement(EngagementId),
    /// All events of a job, plain or agent. Positions are those of its stream.
    Job(JobId),
}

/// A registered agent.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentRecord {
    /// What the document means.
    pub definition: AgentDefinition,
    /// The document as it was written.
    pub source: String,
    /// When it was registered last.
    pub updated_at: Timestamp,
}

/// A checkpoint with its job, as listed.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct CheckpointRow {
    /// The job whose turn it was.
    pub job_id: JobId,
    /// The checkpoint.
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
}

/// How many jobs of a queue ended in a state within an hour.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct HourlyCount {
    /// The hour's beginning.
    pub hour: Timestamp,
    /// The queue.
    pub queue: String,
    /// `completed`, `cancelled` or `discarded`.
    pub state: JobState,
    /// How many.
    pub jobs: i64,
    /// The tokens they used.
    pub tokens: i64,
    /// The sum of the times from acceptance to end, in milliseconds.
    pub took_ms: i64,
}

/// What operators are to be warned by, as of now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gauges {
    /// How many jobs ever ended, per queue and state; those of the last minute may be missing.
    pub ended: Vec<(String, JobState, u64)>,
    /// Since when the job waits to be claimed that has waited longest, per queue that has any.
    pub oldest: Vec<(String, Timestamp)>,
    /// Reviews that are open.
    pub open_reviews: u64,
}

/// Everybody's side of the store.
#[async_trait]
pub trait Views: Send + Sync + 'static {
    /// One job, with its result, errors and agent side.
    async fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.job_of(id, None).await
    }

    /// The same, if it is this tenant's; `None` stands for every tenant.
    async fn job_of(&self, id: &JobId, tenant: Option<&str>) -> Result<Option<Job>, StoreError>;

    /// Jobs in the order that is asked for, and how many match in total. They come without their tool journal; one that
    /// cannot be read whole is there with what can, and says so ([`Job::damaged`]).
    async fn jobs(&self, filter: &JobFilter, page: Page) -> Result<(Vec<Job>, u64), StoreError>;

    /// Tasks, those that changed last first, with their places in the list; and how many match in total.
    async fn tasks(
        &self,
        filter: &TaskFilter,
        limit: u32,
    ) -> Result<(Vec<(JobId, TaskPlace)>, u64), StoreError>;

    /// One engagement with the id of the job that works on its input, or of its latest one when all have ended.
    async fn engagement(
        &self,
        id: &EngagementId,
    ) -> Result<Option<(Engagement, AgentDefinition, JobId)>, StoreError> {
        self.engagement_of(id, None).await
    }

    /// The same, if it has a job of this tenant; `None` stands for every tenant.
    async fn engagement_of(
        &self,
        id: &EngagementId,
        tenant: Option<&str>,
    ) -> Result<Option<(Engagement, AgentDefinition, JobId)>, StoreError>;

    /// Whether a job is the only one of its engagement.
    async fn is_only_input(&self, job: &JobId) -> Result<bool, StoreError>;

    /// Engagements, newest first, at most `limit`.
    async fn engagements(
        &self,
        filter: &EngagementFilter,
        limit: u32,
    ) -> Result<Vec<ListedEngagement>, StoreError>;

    /// Messages after position `after`, oldest first.
    async fn messages(
        &self,
        id: &EngagementId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StoreError>;

    /// Checkpoints, oldest first.
    async fn checkpoints(&self, id: &EngagementId, page: Page) -> Result<Vec<CheckpointRow>, StoreError>;

    /// The newest checkpoints of one phase, newest first.
    async fn checkpoints_of(
        &self,
        id: &EngagementId,
        phase: Phase,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, StoreError>;

    /// The state of an agent's scope at `now`.
    async fn session_state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError>;

    /// The whole tool journal, oldest first.
    async fn tool_calls(&self, id: &EngagementId) -> Result<Vec<ToolCall>, StoreError>;

    /// A part of the tool journal, oldest first.
    async fn tool_calls_page(&self, id: &EngagementId, page: Page) -> Result<Vec<ToolCall>, StoreError>;

    /// The calls whose outputs nobody outside may see.
    async fn withheld_calls(&self, id: &EngagementId) -> Result<Vec<CallId>, StoreError>;

    /// What the guardrails of an engagement said, newest first.
    async fn guardrail_checks(
        &self,
        id: &EngagementId,
        limit: u32,
    ) -> Result<Vec<GuardrailCheck>, StoreError>;

    /// The engagement's budget.
    async fn budget(&self, id: &EngagementId) -> Result<Budget, StoreError>;

    /// Events after position `after`, oldest first.
    async fn events_after(
        &self,
        filter: &EventFilter,
        after: i64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError>;

    /// The same as the feed tells them (see [`crate::Feed`]): the `seq` of their cursors is their position here.
    async fn feed_events_after(
        &self,
        filter: &EventFilter,
        after: i64,
        limit: u32,
    ) -> Result<Vec<FeedEvent>, StoreError>;

    /// How many events these streams have, by the names that ring for them ([`crate::Ring::Events`]): engagements, and jobs
    /// that have none. What there is not is left out.
    async fn newest_events(&self, streams: Vec<String>) -> Result<Vec<(String, i64)>, StoreError>;

    /// Reviews, oldest first.
    async fn reviews(&self, filter: &ReviewFilter, page: Page) -> Result<Vec<Review>, StoreError>;

    /// One review.
    async fn review(&self, id: &ReviewId) -> Result<Option<Review>, StoreError> {
        self.review_of(id, None).await
    }

    /// The same, if its job is this tenant's; `None` stands for every tenant.
    async fn review_of(&self, id: &ReviewId, tenant: Option<&str>) -> Result<Option<Review>, StoreError>;

    /// Registered agents by name.
    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError>;

    /// One registered agent.
    async fn agent(&self, name: &str) -> Result<Option<AgentRecord>, StoreError>;

    /// Jobs per state of a queue; of all queues when `None`.
    async fn counts(&self, queue: Option<&str>) -> Result<Vec<(JobState, u64)>, StoreError> {
        self.counts_of(queue, None).await
    }

    /// The same for the jobs of one tenant; `None` stands for every tenant.
    async fn counts_of(
        &self,
        queue: Option<&str>,
        tenant: Option<&str>,
    ) -> Result<Vec<(JobState, u64)>, StoreError>;

    /// Jobs that have not ended, per queue and state.
    async fn counts_by_queue(&self) -> Result<Vec<(String, JobState, u64)>, StoreError>;

    /// What operators are to be warned by.
    async fn gauges(&self) -> Result<Gauges, StoreError>;

    /// Queues that have ever had a job or were named at a migration, by name.
    async fn queues(&self) -> Result<Vec<String>, StoreError>;

    /// Workers, by name, with those that fell silent without leaving.
    async fn workers(&self) -> Result<Vec<WorkerBeat>, StoreError>;

    /// Ended jobs per hour, newest first, from `since` on.
    async fn statistics(&self, since: Timestamp) -> Result<Vec<HourlyCount>, StoreError>;

    /// Whether the database answers.
    async fn ping(&self) -> Result<(), StoreError>;
}
