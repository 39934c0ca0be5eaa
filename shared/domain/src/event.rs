//! Events: something that happened, in the past tense, written in the transaction that made it true.

mod body;
mod control;
mod jobs;
mod turns;

pub use control::*;
pub use jobs::*;
pub use turns::*;

use crate::{Phase, RawJson, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $body:ty;)+) => {
        /// The name of an event: a documented API, listed in `docs/EVENTS.md`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        pub enum EventName {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        /// An event's name with its data.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(untagged)]
        pub enum EventBody {
            $($(#[doc = $doc])+ $variant($body),)+
        }

        impl EventName {
            /// All names.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name as on the wire and in the database.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Returns the meaning, for the documentation.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+)),+ }
            }

            /// Returns the name of the type of its data, and adds the schemas of this type and of all types in it.
            pub fn add_schemas(self, schemas: &mut Vec<(String, RefOr<Schema>)>) -> Cow<'static, str> {
                match self { $(Self::$variant => add_schemas_of::<$body>(schemas)),+ }
            }
        }

        impl EventBody {
            /// Returns the name.
            #[must_use]
            pub fn name(&self) -> EventName {
                match self { $(Self::$variant(_) => EventName::$variant),+ }
            }

            /// Reads the data of an event.
            ///
            /// # Errors
            /// The data has another form.
            pub fn read(name: EventName, data: &Value) -> serde_json::Result<Self> {
                match name { $(EventName::$variant => <$body>::deserialize(data).map(Self::$variant)),+ }
            }
        }
    };
}

pub(crate) fn add_schemas_of<B: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) -> Cow<'static, str> {
    schemas.push((B::name().into_owned(), B::schema()));
    B::schemas(schemas);
    B::name()
}

events! {
    /// A job was accepted and is durable.
    JobEnqueued = "job.enqueued", Enqueued;
    /// The job waits for its time.
    JobScheduled = "job.scheduled", Scheduled;
    /// A worker claimed the job.
    JobStarted = "job.started", Started;
    /// The job completed.
    JobCompleted = "job.completed", Completed;
    /// An attempt failed; `job.retrying` or `job.discarded` follows with the outcome for the job.
    JobFailed = "job.failed", FailedAttempt;
    /// The job failed and will be tried again.
    JobRetrying = "job.retrying", Retried;
    /// The job failed for good.
    JobDiscarded = "job.discarded", Failure;
    /// The job was cancelled.
    JobCancelled = "job.cancelled", Ended;
    /// The job's `expires_at` passed before it ended.
    JobExpired = "job.expired", Ended;
    /// The job waits for an event outside, such as a review, and holds no slot.
    JobParked = "job.parked", Parked;
    /// A waiting, scheduled or retryable job became available.
    JobAvailable = "job.available", Reason;
    /// A worker over HTTP saved a state for the next attempt.
    JobCheckpointed = "job.checkpointed", Saved;
    /// The limit that the job names is used up; it waits for a later time.
    JobRescheduled = "job.rescheduled", Rescheduled;
    /// The worker gave the job back between two phases; not a failure.
    JobYielded = "job.yielded", Reason;
    /// The worker's lease ran out; another worker continues from the last checkpoint.
    LeaseExpired = "lease.expired", Lapsed;
    /// A cron entry made this job.
    CronTriggered = "cron.triggered", CronOccurrence;
    /// A cron entry made no job because this one had not ended.
    CronSkipped = "cron.skipped", CronOccurrence;
    /// A phase is done and its checkpoint is durable.
    PhaseCompleted = "phase.completed", PhaseDone;
    /// A model of the list did not answer; the next one is tried.
    ModelFailed = "model.failed", ModelFailure;
    /// No model of the list answered; all of them are called once more.
    ModelRetrying = "model.retrying", ModelRetry;
    /// Members of an answer that only its provider understands, such as signatures, are not kept.
    ModelAttachedDropped = "model.attached_dropped", DroppedAttached;
    /// A declared tool is not available in this turn.
    ToolUnavailable = "tool.unavailable", MissingTool;
    /// A tool call is sent to its tool.
    ToolCalled = "tool.called", Called;
    /// A tool answered.
    ToolCompleted = "tool.completed", CallOutput;
    /// A part of a tool's answer could not be read as it was sent. The rest is the result of the call.
    ToolPartlyRead = "tool.partly_read", PartlyRead;
    /// A call made a file, which is kept.
    ArtifactGenerated = "artifact.generated", File;
    /// A tool failed, or its call was refused.
    ToolFailed = "tool.failed", CallFailure;
    /// A try of a tool call failed. The call continues with another try, or with another tool.
    ToolRetrying = "tool.retrying", CallRetry;
    /// A remote agent could not be cancelled although its result is no longer needed: it may continue, and cost money.
    ToolNotCancelled = "tool.not_cancelled", NotCancelled;
    /// A circuit breaker opened: the fleet stops calling a tool or a model for a while.
    BreakerOpened = "breaker.opened", OpenBreaker;
    /// An error was escalated: a review asks the contact. If the agent's document names none, the job is a dead letter.
    ErrorEscalated = "error.escalated", Failure;
    /// An error was replaced by the value that the agent's document gives for it, and the job completed with that
    /// value.
    ErrorReplaced = "error.replaced", Failure;
    /// A delegate began to work for an agent; the streams of both have this event.
    DelegationStarted = "delegation.started", DelegationStart;
    /// The delegate has ended; the streams of both have this event.
    DelegationCompleted = "delegation.completed", DelegationEnd;
    /// The agent asks its user; the job waits for the answer.
    InputRequested = "input.requested", UserQuestion;
    /// The user answered.
    InputReceived = "input.received", UserReply;
    /// A review was opened.
    ReviewOpened = "review.opened", OpenedReview;
    /// One of several reviewers voted.
    ReviewVoted = "review.voted", ReviewVote;
    /// The reviewers have not answered yet.
    ReviewReminded = "review.reminded", ReviewReminder;
    /// The reviewers did not answer in time, and the review was escalated.
    ReviewEscalated = "review.escalated", EscalatedReview;
    /// A review was decided.
    ReviewDecided = "review.decided", DecidedReview;
    /// A review was answered after it had been decided or had expired: on record, and without effect.
    ReviewAnsweredLate = "review.answered_late", LateAnswer;
    /// An answer used more tokens or money than was reserved for its call; all of it is booked.
    ReservationExceeded = "budget.reservation_exceeded", ExceededReservation;
    /// The provider's count of tokens is impossible, or zero beside a text, so an estimate was booked.
    UsageClamped = "budget.usage_clamped", ClampedUsage;
    /// A model call would not have fitted into the rest of the budget.
    BudgetExceeded = "budget.exceeded", Overspending;
    /// More than the configured part of a budget is spent.
    BudgetWarning = "budget.warning", BudgetWarning;
    /// A budget was changed; jobs that waited for it continue.
    BudgetChanged = "budget.changed", ChangedBudget;
    /// The final answer did not have the demanded form; the model is called once more.
    OutputRejected = "output.rejected", RejectedOutput;
    /// A filter of the agent matched an input or output; `found` names kinds, never the text.
    ContentFlagged = "content.flagged", FlaggedContent;
    /// Messages that no longer fit into the window were replaced by a summary, which a model wrote and which was paid
    /// for.
    HistorySummarized = "history.summarized", Summary;
    /// The prompt was longer than the model's context, so the model got the oldest outcomes of tools shortened.
    HistoryShortened = "history.shortened", ShortenedHistory;
    /// The engagement begins with messages of earlier ones with the same user; `GET /engagements/{id}/messages` shows
    /// them.
    MemoryRecalled = "memory.recalled", Recalled;
    /// The tool of a guardrail checked an input or output.
    GuardrailChecked = "guardrail.checked", Checked;
    /// State changes of a turn are committed.
    StateChanged = "state.changed", StateCommitted;
    /// State changes of a turn that failed were dropped.
    StateRolledBack = "state.rolled_back", StateDropped;
    /// The job was paused: no worker claims it until it is resumed.
    AgentPaused = "agent.paused", Reason;
    /// The job was resumed.
    AgentResumed = "agent.resumed", Resumed;
    /// A new job continues from a turn of this one.
    AgentForked = "agent.forked", Branched;
    /// The engagement begins as a fork of another one and shares its past up to the fork point; `set` names the
    /// changes.
    EngagementForked = "engagement.forked", Forked;
    /// Two branches became one.
    AgentMerged = "agent.merged", Joined;
    /// A retry of a call was requested.
    ToolRetried = "agent.tool_retried", RepeatedCall;
    /// A workflow was made; its first jobs are enqueued.
    WorkflowStarted = "workflow.started", WorkflowChange;
    /// A step of a workflow succeeded.
    WorkflowStepCompleted = "workflow.step_completed", WorkflowStep;
    /// Every step of a workflow succeeded.
    WorkflowCompleted = "workflow.completed", WorkflowChange;
    /// A step of a workflow did not succeed.
    WorkflowFailed = "workflow.failed", WorkflowChange;
    /// A workflow was cancelled.
    WorkflowCancelled = "workflow.cancelled", WorkflowChange;
    /// The queue was paused: nothing in it is claimed.
    QueuePaused = "queue.paused", QueueChange;
    /// The queue was resumed.
    QueueResumed = "queue.resumed", QueueChange;
    /// Every job of a closed batch has ended.
    BatchEnded = "batch.ended", BatchOutcome;
}

impl EventName {
    /// Reads a name; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|name| name.as_str() == text)
    }

    /// Returns true if the data of the event names the turn and the worker's instance.
    #[must_use]
    pub fn names_turn(self) -> bool {
        matches!(
            self,
            Self::PhaseCompleted
                | Self::JobFailed
                | Self::ToolCalled
                | Self::ToolCompleted
                | Self::ToolFailed
                | Self::StateChanged
                | Self::DelegationStarted
                | Self::DelegationCompleted
        )
    }

    /// Returns true for events inside an agent's turn. The feed of all events shows them only to readers that name
    /// them: there are many, and they matter to readers of one engagement.
    #[must_use]
    pub fn inside_turn(self) -> bool {
        matches!(
            self,
            Self::PhaseCompleted
                | Self::ModelFailed
                | Self::ToolUnavailable
                | Self::ToolCalled
                | Self::ToolCompleted
                | Self::ToolPartlyRead
                | Self::ArtifactGenerated
                | Self::ToolFailed
                | Self::ToolRetrying
                | Self::ModelRetrying
                | Self::ModelAttachedDropped
                | Self::BreakerOpened
                | Self::ReservationExceeded
                | Self::UsageClamped
                | Self::BudgetExceeded
                | Self::BudgetWarning
                | Self::OutputRejected
                | Self::ContentFlagged
                | Self::HistorySummarized
                | Self::HistoryShortened
                | Self::MemoryRecalled
                | Self::StateChanged
                | Self::StateRolledBack
        )
    }

    /// Returns true if the job ended with this event.
    #[must_use]
    pub fn ends_job(self) -> bool {
        matches!(self, Self::JobCompleted | Self::JobDiscarded | Self::JobCancelled | Self::JobExpired)
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An event to be written.
#[derive(Clone, PartialEq, Debug)]
pub struct NewEvent {
    /// The name.
    pub name: EventName,
    /// The turn it happened in; 0 outside of turns.
    pub turn: i64,
    /// The fields that the name promises.
    pub data: EventData,
    /// When it happened.
    pub at: Timestamp,
}

impl NewEvent {
    /// Returns an event with this data.
    #[must_use]
    pub fn of(body: &EventBody, turn: i64, at: Timestamp) -> Self {
        Self { name: body.name(), turn, data: body.into(), at }
    }
}

/// The data of an event that is to be written: JSON text, made once by the caller.
#[derive(Clone, PartialEq, Debug)]
pub enum EventData {
    /// An object.
    Whole(RawJson),
    /// The data of `phase.completed`, which begins with two fields of the phase's checkpoint.
    Phase(PhaseCompleted),
}

/// The data of `phase.completed`.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseCompleted {
    /// The phase.
    pub phase: Phase,
    /// The duration of the phase in milliseconds.
    pub duration_ms: i64,
    /// The fields that follow: an object.
    pub more: RawJson,
}

impl EventData {
    /// Returns the whole object.
    #[must_use]
    pub fn whole(&self) -> Cow<'_, RawJson> {
        match self {
            Self::Whole(data) => Cow::Borrowed(data),
            Self::Phase(PhaseCompleted { phase, duration_ms, more }) => {
                let begun = RawJson::of(&json!({"phase": phase, "duration_ms": duration_ms}));
                Cow::Owned(begun.joined(more))
            }
        }
    }
}

impl From<&EventBody> for EventData {
    fn from(body: &EventBody) -> Self {
        // A body has only texts for keys, so it can always be written.
        Self::Whole(RawJson::written(body).unwrap_or_else(|_| RawJson::empty_object()))
    }
}

impl From<RawJson> for EventData {
    fn from(data: RawJson) -> Self {
        Self::Whole(data)
    }
}

impl From<Value> for EventData {
    fn from(data: Value) -> Self {
        Self::Whole(RawJson::of(&data))
    }
}

/// An event as stored.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// 1-based, without gaps within its stream: the cursor of a reader.
    pub seq: i64,
    /// The name.
    pub name: EventName,
    /// The job it is about.
    pub job_id: crate::JobId,
    /// The engagement, for agent jobs.
    pub engagement_id: Option<crate::EngagementId>,
    /// The turn it happened in; 0 outside of turns.
    pub turn: i64,
    /// The fields that the name promises.
    pub data: Value,
    /// When it happened.
    pub at: Timestamp,
}

impl Event {
    /// Returns its data; `None` for data that this program cannot read.
    #[must_use]
    pub fn body(&self) -> Option<EventBody> {
        EventBody::read(self.name, &self.data).ok()
    }

    /// Returns true if this phase was completed.
    #[must_use]
    pub fn completes(&self, phase: Phase) -> bool {
        completes(self.name, &self.data, phase)
    }

    /// Returns the turn and its worker, if the event names them.
    #[must_use]
    pub fn identity(&self) -> TurnIdentity {
        TurnIdentity::deserialize(&self.data).unwrap_or_default()
    }
}

/// Returns true for the event of this phase.
pub(crate) fn completes(name: EventName, data: &Value, phase: Phase) -> bool {
    name == EventName::PhaseCompleted && PhaseDone::deserialize(data).is_ok_and(|done| done.phase == phase)
}
