//! Rows of the journal, of tool calls, and of what is decided about them.

use super::{Fields, Inconsistency, declare, get, wrong};
use serde_json::Value;
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::review::{Review, ReviewKind, ReviewPlan, ReviewState, Vote};
use turnstone_domain::tool_call::{Handled, ToolCall, ToolCallState, ToolOutcome, Tried};
use turnstone_domain::{CallId, EngagementId, JobId, ReviewId, Timestamp};

declare! {
    /// A row of the journal, which `journal/mod.rs` explains.
    struct JournalRow into journal [stream, last_event, last_message, turn, phase] {
        commit_id: i64,
        stream: i64,
        last_event: i64,
        last_message: i64,
        events: i64,
        messages: i64,
        job_seq: i64,
        turn: i64,
        phase: i64,
        phases: i64,
        names: Option<String>,
        tokens_in: i64,
        tokens_out: i64,
        tokens_cached: i64,
        cost: i64,
        model: Option<String>,
        paid_at: Option<i64>,
        at: Timestamp,
        body: Option<String> => sealed,
        said: Option<String> => sealed,
    }

    /// A commit that writes events.
    struct CommitRow {
        id: i64,
    }

    for ToolCall in tool_calls [call_id] {
        call_id: CallId,
        turn: i64,
        position: i64,
        name: String,
        input: Value => sealed,
        idempotent: bool,
        state: ToolCallState,
        sends: i64,
        outcome: Option<ToolOutcome> => sealed,
        withheld: bool,
        duration_ms: Option<i64>,
        created_at: Timestamp,
        review_id: Option<ReviewId>,
        again: bool,
        provider: Option<String>,
        retries: i64,
        tried: Vec<Tried> => with tried,
        handled: Option<Handled> => sealed,
        started_at: Option<Timestamp>,
        completed_at: Option<Timestamp>,
        stub_of: Option<CallId>,
    }

    /// A call that is journalled; its input is a text of JSON.
    struct NewToolCall into tool_calls [call_id] {
        call_id: CallId,
        job_seq: i64,
        engagement_seq: i64,
        turn: i64,
        position: i64,
        name: String,
        input: String,
        idempotent: bool,
        state: ToolCallState,
        sends: i64,
        created_at: Timestamp,
        started_at: Option<Timestamp>,
    }

    /// How a call in the journal is moved; `outcome`, `tried` and `handled` are texts of JSON.
    struct ToolCallStep {
        call_id: CallId,
        state: ToolCallState,
        outcome: Option<String>,
        duration_ms: Option<i64>,
        withheld: bool,
        sends: i64,
        retries: i64,
        tried: Option<String>,
        handled: Option<String>,
        provider: Option<String>,
        at: Timestamp,
    }

    /// The cost of a call.
    struct CallCost {
        call_id: CallId,
        cost: i64,
    }

    /// A call whose recorded outcome another one has.
    struct StubRow into stubs [job_seq, call_id] {
        job_seq: i64,
        call_id: CallId,
        of_call: CallId,
    }

    /// A call that an agent of another server works for.
    struct RemoteCallRow {
        call_id: String,
        place: String,
        job_seq: i64,
        handle: Option<String>,
        due_at: Option<Timestamp>,
    }

    /// A call and its place.
    struct RemoteCallKey {
        call_id: String,
        place: String,
    }

    /// A job that ended without what is done for it on other servers.
    struct AbandonedCalls {
        job_seq: i64,
        due_at: Timestamp,
    }

    /// The verdict of a guardrail; the content is a text of JSON.
    struct CheckRow into guardrail_checks [id] {
        id: String,
        engagement_seq: i64,
        job_seq: i64,
        turn: i64,
        side: Side,
        tool: String,
        content: String => sealed,
        passed: bool,
        created_at: Timestamp,
    }

    for Review in reviews [id] {
        id: ReviewId,
        engagement_id: EngagementId,
        job_id: JobId,
        turn: i64,
        call_id: CallId,
        kind: ReviewKind,
        reviewer: String,
        question: Value => sealed,
        arguments_hash: String,
        state: ReviewState,
        decided_by: Option<String>,
        reason: Option<String> => sealed,
        created_at: Timestamp,
        deadline_at: Option<Timestamp>,
        decided_at: Option<Timestamp>,
        plan: ReviewPlan => with plan,
        step: usize,
        votes: Vec<Vote> => with votes,
        remind_at: Option<Timestamp>,
        reminders: i64,
        asked: Option<EngagementId>,
        spent: bool,
        reported: Option<Value> => sealed,
    }

    /// A review that is opened; `question` and `plan` are texts of JSON.
    struct ReviewRow into reviews [id] {
        id: ReviewId,
        engagement_seq: i64,
        job_seq: i64,
        turn: i64,
        call_id: CallId,
        kind: ReviewKind,
        reviewer: String,
        question: String,
        arguments_hash: String,
        created_at: Timestamp,
        deadline_at: Option<Timestamp>,
        plan: Option<String>,
        members: String,
        remind_at: Option<Timestamp>,
        asked: Option<EngagementId>,
        state: ReviewState,
    }

    /// The changes of an open review before it is decided; the votes are a text of JSON.
    struct ReviewStep in reviews [id] {
        id: ReviewId,
        reviewer: String,
        members: String,
        step: usize,
        votes: Option<String> => sealed,
        deadline_at: Option<Timestamp>,
        remind_at: Option<Timestamp>,
        reminders: i64,
    }

    /// The answer to a review.
    struct DecisionRow {
        id: ReviewId,
        state: ReviewState,
        decided_by: Option<String>,
        reason: Option<String>,
        decided_at: Timestamp,
        reported: Option<String>,
    }

    /// A file that a call made.
    struct ArtifactRow into artifacts [id] {
        id: String,
        engagement_seq: i64,
        job_seq: i64,
        call_id: CallId,
        turn: i64,
        part: i64,
        tenant: String,
        digest: String,
        name: String => sealed,
        media_type: String,
        created_at: Timestamp,
    }

    /// The content of artifacts, as base64.
    struct ArtifactContent in artifact_contents [tenant, digest] {
        tenant: String,
        digest: String,
        bytes: i64,
        uses: i64,
        content: String => sealed,
    }

    /// An event of a run.
    struct RunEventRow in run_events [run_id, id] {
        run_id: EngagementId,
        id: i64,
        job: JobId,
        body: String => sealed,
    }

    /// A request of a run.
    struct RunRequestRow {
        run: EngagementId,
        job: JobId,
        began: i64,
        ended: Option<i64>,
    }

    /// The configuration of runs, as a text of JSON.
    struct RunSettingsRow in run_settings [agent_name, tenant, run] {
        agent_name: String,
        tenant: String,
        run: String,
        args: String => sealed,
        version: i64,
    }
}

/// Tries are appended as objects with commas between them.
fn tried(row: &impl Fields) -> Result<Vec<Tried>, Inconsistency> {
    let Some(objects) = get::<Option<&str>>(row, "tried")? else { return Ok(Vec::new()) };
    serde_json::from_str(&format!("[{objects}]")).map_err(|e| wrong("tried", e))
}

fn plan(row: &impl Fields) -> Result<ReviewPlan, Inconsistency> {
    Ok(get::<Option<ReviewPlan>>(row, "plan")?.unwrap_or_default())
}

fn votes(row: &impl Fields) -> Result<Vec<Vote>, Inconsistency> {
    Ok(get::<Option<Vec<Vote>>>(row, "votes")?.unwrap_or_default())
}

impl ToolCallStep {
    /// A call that comes into a state, with nothing else.
    pub(in super::super) fn to(state: ToolCallState, call_id: &CallId, at: Timestamp) -> Self {
        Self {
            call_id: call_id.clone(),
            state,
            outcome: None,
            duration_ms: None,
            withheld: false,
            sends: 0,
            retries: 0,
            tried: None,
            handled: None,
            provider: None,
            at,
        }
    }
}
