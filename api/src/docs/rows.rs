//! The shapes of rows in `show.rs`: events, messages, checkpoints, reviews, tool calls and workers.

use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A file that was made in an engagement.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ArtifactRow {
    artifact_id: String,
    /// The name of the file.
    name: String,
    media_type: String,
    bytes: i64,
    /// Lower-case hex; also its `ETag`.
    sha256: String,
    /// The address of its download: a path of this server.
    url: String,
    engagement_id: String,
    /// As long as it is on record.
    job_id: Option<String>,
    /// The call that made it.
    call_id: String,
    turn: i64,
    /// RFC 3339, UTC.
    created_at: String,
}

/// Files, in order.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Artifacts {
    artifacts: Vec<ArtifactRow>,
}

/// Something that happened.
#[derive(ToSchema)]
#[schema(as = StreamEvent)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Event {
    /// 1-based within its stream: the cursor of a reader.
    seq: i64,
    /// One of the names of docs/EVENTS.md.
    #[schema(example = "job.enqueued")]
    name: String,
    job_id: String,
    /// For agent jobs.
    engagement_id: Option<String>,
    /// 0 outside of turns.
    turn: i64,
    /// The fields that the name promises.
    data: Map<String, Value>,
    /// RFC 3339, UTC.
    at: String,
}

/// Events, oldest first.
#[derive(ToSchema)]
#[schema(as = StreamPage)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct EventPage {
    events: Vec<Event>,
    /// To be sent as `since` for the next page.
    cursor: i64,
    has_more: bool,
}

/// A message of a conversation.
#[derive(ToSchema)]
#[schema(as = EngagementMessage)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Message {
    seq: i64,
    turn: i64,
    /// user, system, assistant or tool.
    role: String,
    /// The text; of a message with parts, all of them as text.
    content: String,
    /// The content in order, where it is more than one text: OSSA's text, image and file parts.
    parts: Option<Vec<Map<String, Value>>>,
    /// Of an input: where it came from.
    metadata: Option<MessageMetadata>,
    /// Of a message recalled from an earlier engagement (its turn is 0): that engagement.
    recalled_from: Option<String>,
    created_at: String,
}

/// Where an input came from.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct MessageMetadata {
    /// user, api or delegation.
    source: String,
    /// How it arrived, such as text/plain.
    original_format: String,
    normalized_at: String,
}

/// Messages, oldest first.
#[derive(ToSchema)]
#[schema(as = EngagementMessages)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Messages {
    messages: Vec<Message>,
    /// To be sent as `after` for the next page.
    cursor: i64,
    has_more: bool,
}

/// An engagement as listed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ListedEngagement {
    engagement_id: String,
    agent: String,
    /// `id` and `email`.
    user: Value,
    started_at: String,
    /// Turns that are complete.
    turns: i64,
    /// Its latest job.
    job_id: String,
    #[schema(example = "completed")]
    job_state: String,
}

/// Engagements, newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct EngagementPage {
    items: Vec<ListedEngagement>,
    pagination: CursorEnd,
}

/// The position at which a list continues.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct CursorEnd {
    has_more: bool,
    /// To be sent as `cursor`; null at the end.
    next_cursor: Option<String>,
}

/// A phase that is done.
#[derive(ToSchema)]
#[schema(as = EngagementCheckpoint)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Checkpoint {
    job_id: String,
    turn: i64,
    #[schema(example = "infer")]
    phase: String,
    version: i64,
    duration_ms: i64,
    tokens_in: i64,
    tokens_out: i64,
    at: String,
}

/// Checkpoints, oldest first.
#[derive(ToSchema)]
#[schema(as = EngagementCheckpoints)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Checkpoints {
    checkpoints: Vec<Checkpoint>,
    pagination: OpenEnd,
}

/// The position of a page in a list that is not counted.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct OpenEnd {
    page: u32,
    per_page: u32,
    has_more: bool,
}

/// A call of a tool.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ToolCall {
    call_id: String,
    turn: i64,
    position: i64,
    name: String,
    /// The arguments.
    input: Value,
    idempotent: bool,
    sends: i64,
    /// planned, sent or settled.
    state: String,
    /// How it ended; an output that is withheld is left out.
    outcome: Option<Value>,
    withheld: bool,
    duration_ms: Option<i64>,
    created_at: String,
    review_id: Option<String>,
    /// Tries beyond the first.
    retries: i64,
    /// The tries that failed before the last one: code, duration_ms, at.
    tried: Option<Vec<Value>>,
    /// The reaction of a handler to a failure: strategy, code, message.
    handled: Option<Value>,
    /// When its first request may have left.
    started_at: Option<String>,
    /// When its outcome was known.
    completed_at: Option<String>,
}

/// Calls, oldest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ToolCalls {
    tool_calls: Vec<ToolCall>,
    /// To be sent as `after` for the next page.
    cursor: u32,
    has_more: bool,
}

/// The actions of an engagement.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Audit {
    engagement_id: String,
    agent: String,
    /// The latest job.
    job_id: String,
    /// The Engagement object as expressions see it; null when it has more than 16 MiB.
    engagement: Value,
    attempts: Vec<ToolCall>,
    /// To be sent as `after` for the next attempts.
    cursor: u32,
    has_more: bool,
    /// The questions to guardrails and their answers, oldest first; a tenant sees the verdicts alone.
    guardrails: Vec<GuardrailCheck>,
    /// The answer that an output guardrail kept from the user; null for tenants, and when there is none.
    answer_withheld: Option<String>,
    reviews: Vec<Review>,
    /// The changes of the agent's state in each turn: mode, changes, transaction_id and status.
    state: Vec<Map<String, Value>>,
    /// The usage and its cost: `phases` and `tools`, by job.
    cost: Value,
}

/// A question to a guardrail, and its answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct GuardrailCheck {
    /// The id of the call, which is its idempotency key.
    call_id: String,
    turn: i64,
    /// input or output.
    side: String,
    tool: String,
    passed: bool,
    /// The arguments of the call, with the text that was checked.
    input: Value,
    output: Option<Value>,
    /// Why there is no answer.
    error: Option<String>,
    /// Why the assertion does not hold for the answer.
    denial: Option<String>,
    at: String,
}

/// A question to a user or an agent about a parked job.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Review {
    id: String,
    engagement_id: String,
    job_id: String,
    turn: i64,
    call_id: String,
    /// input, output or `unknown_outcome`.
    kind: String,
    reviewer: String,
    /// The reviewer's view.
    question: Value,
    arguments_hash: String,
    /// open, approved, rejected or expired.
    state: String,
    decided_by: Option<String>,
    reason: Option<String>,
    created_at: String,
    /// The deadline, after which the review counts as rejected, or goes to the reviewers that `escalates_to` names.
    deadline_at: Option<String>,
    decided_at: Option<String>,
    /// The reviewers of the current step.
    members: Vec<String>,
    /// The votes: `needed`, `of`, `approvals` and `rejections`.
    quorum: Value,
    /// Every vote, where there are several reviewers: `by`, `approve`, `reason`, `at`, `step`.
    votes: Vec<Value>,
    /// The number of escalations so far.
    step: i64,
    /// The group or user to which the review is escalated next.
    escalates_to: Option<String>,
    /// When they are reminded next, and how often they were.
    remind_at: Option<String>,
    reminders: i64,
    /// The engagement in which an agent reviews.
    asked_engagement_id: Option<String>,
    /// True if its rejection no longer counts, because the job was tried again; absent otherwise.
    spent: Option<bool>,
}

/// The position of a page of reviews.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ReviewPlace {
    page: u32,
    per_page: u32,
    has_more: bool,
    /// To be sent as `after`, instead of `page`, for the next page; null at the end.
    next_after: Option<String>,
}

/// Reviews, oldest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ReviewPage {
    items: Vec<Review>,
    pagination: ReviewPlace,
}

/// An answer to a review.
#[derive(serde::Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"by": "ada", "reason": "the price is fine"}))]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ReviewAnswer {
    /// The reviewer.
    by: String,
    /// Why.
    reason: Option<String>,
}

/// A worker of the fleet.
#[derive(ToSchema)]
#[schema(as = FleetWorker)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Worker {
    name: String,
    instance: String,
    host: String,
    pid: i64,
    version: String,
    /// `*` means all.
    queues: Vec<String>,
    slots: i64,
    busy: i64,
    /// running or draining.
    state: String,
    started_at: String,
    seen_at: String,
    /// True if its last heartbeat is recent.
    alive: bool,
}

/// The state that an agent keeps between turns.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct SessionState {
    engagement_id: String,
    /// stateless, session or long_running.
    mode: String,
    isolation_level: String,
    /// True if other engagements of the same user share the state.
    shared: bool,
    /// How often it was changed.
    version: i64,
    entries: Vec<SessionStateEntry>,
}

/// A key of an agent's state.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct SessionStateEntry {
    key: String,
    value: Value,
    /// The version of the state that wrote it.
    version: i64,
    updated_at: String,
    expires_at: Option<String>,
}
