//! Events: something that happened, in the past tense, written in the transaction that made it true.

use crate::{Phase, RawJson, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $data:literal;)+) => {
        /// The name of an event: a documented API, listed in `docs/EVENTS.md`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        pub enum EventName {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
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

            /// Returns the fields of its `data`, for the documentation.
            #[must_use]
            pub fn data_fields(self) -> &'static str {
                match self { $(Self::$variant => $data),+ }
            }
        }
    };
}

events! {
    /// A job was accepted and is durable.
    JobEnqueued = "job.enqueued", "job_type, queue; input (2 and up: a further input of its engagement)";
    /// The job waits for its time.
    JobScheduled = "job.scheduled", "scheduled_at";
    /// A worker claimed the job.
    JobStarted = "job.started", "attempt, worker_id";
    /// The job completed.
    JobCompleted = "job.completed", "attempt, duration_ms, result (result_bytes instead when it is longer than 8 KiB, neither for a delegate of a guarded agent); tokens_used, model_used (agent jobs)";
    /// An attempt failed; `job.retrying` or `job.discarded` follows with the outcome for the job.
    JobFailed = "job.failed", "attempt, code, message, type, ossa_code, recoverable; retry_after_ms, cause, escalation (when there are)";
    /// The job failed and will be tried again.
    JobRetrying = "job.retrying", "as job.failed without attempt, retry_delay_ms, next_retry_at";
    /// The job failed for good.
    JobDiscarded = "job.discarded", "as job.failed without attempt";
    /// The job was cancelled.
    JobCancelled = "job.cancelled", "previous_state";
    /// The job's `expires_at` passed before it ended.
    JobExpired = "job.expired", "previous_state";
    /// The job waits for an event outside, such as a review, and holds no slot.
    JobParked = "job.parked", "review_id, kind, reviewer; children instead, when it waits for other agents";
    /// A waiting, scheduled or retryable job became available.
    JobAvailable = "job.available", "reason";
    /// A worker over HTTP saved a state for the next attempt.
    JobCheckpointed = "job.checkpointed", "sequence";
    /// The limit that the job names is used up; it waits for a later time.
    JobRescheduled = "job.rescheduled", "reason, scheduled_at";
    /// The worker gave the job back between two phases; not a failure.
    JobYielded = "job.yielded", "reason";
    /// The worker's lease ran out; another worker continues from the last checkpoint.
    LeaseExpired = "lease.expired", "worker_id";
    /// A cron entry made this job.
    CronTriggered = "cron.triggered", "cron_name, scheduled_at";
    /// A cron entry made no job because this one had not ended.
    CronSkipped = "cron.skipped", "cron_name, scheduled_at";
    /// A phase is done and its checkpoint is durable.
    PhaseCompleted = "phase.completed", "phase, duration_ms; infer adds model, provider, tokens_in, tokens_out, tokens_cached, tokens_reasoning, finish_reason, budget_left, cost, tool_calls; init and emit add agent (after a handoff)";
    /// A model of the list did not answer; the next one is tried.
    ModelFailed = "model.failed", "model, provider, message";
    /// No model of the list answered; all of them are called once more.
    ModelRetrying = "model.retrying", "as job.failed without attempt, retry, delay_ms";
    /// A declared tool is not available in this turn.
    ToolUnavailable = "tool.unavailable", "name, message";
    /// A tool call is sent to its tool.
    ToolCalled = "tool.called", "call_id, name, input";
    /// A tool answered.
    ToolCompleted = "tool.completed", "call_id, name, duration_ms, output (absent when withheld; output_bytes instead when it is long), stub_of (the recorded call that replaces it)";
    /// A call made a file, which is kept.
    ArtifactGenerated = "artifact.generated", "artifact_id, call_id, bytes; file, media_type, sha256 (absent when an output guardrail holds back what was said)";
    /// A tool failed, or its call was refused.
    ToolFailed = "tool.failed", "call_id, name, code, message, type, ossa_code, recoverable; retry_after_ms (when there is one)";
    /// A try of a tool call failed. The call continues with another try, or with another tool.
    ToolRetrying = "tool.retrying", "as tool.failed, retry, delay_ms; instead (another tool)";
    /// A remote agent could not be cancelled although its result is no longer needed: it may continue, and cost money.
    ToolNotCancelled = "tool.not_cancelled", "call_id, agent, message";
    /// A circuit breaker opened: the fleet stops calling a tool or a model for a while.
    BreakerOpened = "breaker.opened", "tool, or provider and model; until";
    /// An error was escalated: a review asks the contact. If the agent's document names none, the job is a dead letter.
    ErrorEscalated = "error.escalated", "as job.failed without attempt";
    /// An error was replaced by the value that the agent's document gives for it, and the job completed with that
    /// value.
    ErrorReplaced = "error.replaced", "as job.failed without attempt";
    /// A delegate began to work for an agent; the streams of both have this event.
    DelegationStarted = "delegation.started", "role (parent or child), agent_id, mode, call_id, job_id and engagement_id of the other side, depth, timeout_ms";
    /// The delegate has ended; the streams of both have this event.
    DelegationCompleted = "delegation.completed", "role, agent_id, status (success, error or timeout), duration_ms, tokens_used, call_id, job_id and engagement_id of the other side";
    /// The agent asks its user; the job waits for the answer.
    InputRequested = "input.requested", "call_id, request_keys (each key and what it means), exposes (when the agent exposes values)";
    /// The user answered.
    InputReceived = "input.received", "call_id, keys, by, message_id (of A2A)";
    /// A review was opened.
    ReviewOpened = "review.opened", "review_id, kind, reviewer, name";
    /// One of several reviewers voted.
    ReviewVoted = "review.voted", "review_id, approve, by, reason, approvals, rejections, needed";
    /// The reviewers have not answered yet.
    ReviewReminded = "review.reminded", "review_id, kind, reviewer, name, missing, reminders, deadline_at";
    /// The reviewers did not answer in time, and the review was escalated.
    ReviewEscalated = "review.escalated", "review_id, kind, from, reviewer, members, name, deadline_at";
    /// A review was decided.
    ReviewDecided = "review.decided", "review_id, state, decided_by, reason";
    /// A review was answered after it had been decided or had expired: on record, and without effect.
    ReviewAnsweredLate = "review.answered_late", "review_id, approve, by, reason, state";
    /// The provider reported more tokens than the call could use; the rest was not booked.
    UsageClamped = "budget.usage_clamped", "reported, booked";
    /// A model call would not have fitted into the rest of the budget.
    BudgetExceeded = "budget.exceeded", "limit, settled, needed; budget, unit (budgets that are shared, or in money)";
    /// More than the configured part of a budget is spent.
    BudgetWarning = "budget.warning", "unit, percent; budget (a shared one) or limit, settled (the engagement's own)";
    /// A budget was changed; jobs that waited for it continue.
    BudgetChanged = "budget.changed", "subject, limits before and after";
    /// The final answer did not have the demanded form; the model is called once more.
    OutputRejected = "output.rejected", "message";
    /// A filter of the agent matched an input or output; `found` names kinds, never the text.
    ContentFlagged = "content.flagged", "where (input, tool or answer), found, action (redact, block or warn), name (of a tool)";
    /// Messages that no longer fit into the window were replaced by a summary, which a model wrote and which was paid
    /// for.
    HistorySummarized = "history.summarized", "messages, model, provider, tokens_in, tokens_out";
    /// The engagement begins with messages of earlier ones with the same user; `GET /engagements/{id}/messages` shows
    /// them.
    MemoryRecalled = "memory.recalled", "engagements, messages";
    /// The tool of a guardrail checked an input or output.
    GuardrailChecked = "guardrail.checked", "side (input or output), tool, passed, position, text_sha256 (of a text that is shown), on_record (when a record said it), away (when its tool could not be asked)";
    /// State changes of a turn are committed.
    StateChanged = "state.changed", "transaction_id, changes (key and operation)";
    /// State changes of a turn that failed were dropped.
    StateRolledBack = "state.rolled_back", "changes (key and operation), reason";
    /// The job was paused: no worker claims it until it is resumed.
    AgentPaused = "agent.paused", "reason";
    /// The job was resumed.
    AgentResumed = "agent.resumed", "approved, comment";
    /// A new job continues from a turn of this one.
    AgentForked = "agent.forked", "branch_id, job_id, at_turn, branch_name, content_id";
    /// The engagement begins as a fork of another one and shares its past up to the fork point; `set` names the
    /// changes.
    EngagementForked = "engagement.forked", "forked_from, at_turn, phase, live_tools, set";
    /// Two branches became one.
    AgentMerged = "agent.merged", "merged_id, job_id, branch_a, branch_b, strategy, conflicts";
    /// A retry of a call was requested.
    ToolRetried = "agent.tool_retried", "tool_call_id, error, provider, attempt";
    /// A workflow was made; its first jobs are enqueued.
    WorkflowStarted = "workflow.started", "workflow_id, type, name, steps, queues (of its jobs)";
    /// A step of a workflow succeeded.
    WorkflowStepCompleted = "workflow.step_completed", "workflow_id, step, queues";
    /// Every step of a workflow succeeded.
    WorkflowCompleted = "workflow.completed", "workflow_id, type, name, queues";
    /// A step of a workflow did not succeed.
    WorkflowFailed = "workflow.failed", "workflow_id, type, name, succeeded, steps, queues";
    /// A workflow was cancelled.
    WorkflowCancelled = "workflow.cancelled", "workflow_id, type, name, queues";
    /// The queue was paused: nothing in it is claimed.
    QueuePaused = "queue.paused", "queue, subject";
    /// The queue was resumed.
    QueueResumed = "queue.resumed", "queue, subject";
    /// Every job of a closed batch has ended.
    BatchEnded = "batch.ended", "tag, subject, jobs, completed, discarded, cancelled";
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
                | Self::ArtifactGenerated
                | Self::ToolFailed
                | Self::ToolRetrying
                | Self::ModelRetrying
                | Self::BreakerOpened
                | Self::UsageClamped
                | Self::BudgetExceeded
                | Self::BudgetWarning
                | Self::OutputRejected
                | Self::ContentFlagged
                | Self::HistorySummarized
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
