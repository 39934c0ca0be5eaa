//! The data of events inside an agent's turn.

use super::body::bodies;
use super::jobs::Failure;
use crate::agent::delegation::{DelegationMode, DelegationState};
use crate::agent::guardrails::Side;
use crate::agent::safety::FilterAction;
use crate::budget::{Amount, Measure};
use crate::message::FinishReason;
use crate::tool_call::Handled;
use crate::{CallId, EngagementId, JobId, Phase};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

bodies! {
    #[derive(Default)]
    /// The turn and its worker. Each event of a turn that OSSA defines as well also has these fields.
    TurnIdentity {
        /// The id of the turn, in the scope that the agent's document demands.
        interaction_id?: String,
        /// The worker process.
        instance_id?: String,
        /// The agent that took over, when it speaks instead of the engagement's own.
        agent?: String,
        /// The node of a flow, with the nodes around it.
        node?: String,
    }
    /// A phase that is done.
    PhaseDone {
        /// The phase.
        phase: Phase,
        /// Its duration in milliseconds.
        duration_ms: i64,
        #[serde(flatten)]
        inferred: Option<Inferred>,
        /// True if the turn failed in this phase.
        failed?: bool,
    }
    /// The answer of a model; INFER adds these fields to its event.
    Inferred {
        /// The model that answered.
        model: String,
        /// Its provider.
        provider: String,
        /// The tokens of the prompt.
        tokens_in: i64,
        /// The tokens of the answer.
        tokens_out: i64,
        /// The prompt tokens that the provider had in its cache.
        tokens_cached: i64,
        /// The tokens of the model's reasoning: a part of `tokens_out`.
        tokens_reasoning: i64,
        /// The reason why the model stopped.
        finish_reason: FinishReason,
        /// The tokens that are left in the engagement's budget.
        budget_left: Option<i64>,
        /// The cost of the call, as a decimal.
        #[schema(value_type = Option<String>)]
        cost: Option<Amount>,
        /// The tools that the model requested; absent while a guardrail holds them back.
        tool_calls: Option<Vec<String>>,
        /// The tools of requests that were cut off with the answer.
        tool_calls_cut: Option<Vec<String>>,
        /// True if the tokens are not those that the provider counted: it counted none, or impossibly many.
        estimated?: bool,
    }
    /// A model that did not answer.
    ModelFailure {
        /// The model.
        model: String,
        /// Its provider.
        provider: String,
        /// The reason; absent while a guardrail holds it back.
        message?: String,
    }
    /// Another call of all models.
    ModelRetry {
        #[serde(flatten)]
        failure: Failure,
        /// The number of the retry, from 1.
        retry: u32,
        /// The delay in milliseconds.
        delay_ms: u64,
    }
    /// Outcomes of tools that the model got shortened.
    ShortenedHistory {
        /// The number of outcomes.
        results: usize,
        /// The bytes that were left out.
        bytes: usize,
    }
    /// Members of an answer that are not kept. The model continues without them.
    DroppedAttached {
        /// Their bytes, as JSON.
        bytes: usize,
        /// The reason.
        reason: DropReason,
    }
    /// A declared tool that the turn does not have.
    MissingTool {
        /// Its name; absent while a guardrail holds it back, as in all events of tools.
        name?: String,
        /// The reason; absent while a guardrail holds it back.
        message?: String,
    }
    /// A call of a tool.
    Called {
        /// The call.
        call_id: CallId,
        /// The tool.
        name?: String,
        /// The arguments; absent while a guardrail holds them back.
        input?: Value,
    }
    /// The result of a call.
    CallOutput {
        /// The call.
        call_id: CallId,
        /// The tool.
        name?: String,
        /// The duration of the call in milliseconds.
        duration_ms: i64,
        /// The output; absent when it is long or withheld.
        output?: Value,
        /// The size of an output that is long.
        output_bytes?: usize,
        /// The recorded call whose outcome replaces this one, in a fork.
        stub_of?: CallId,
        /// The reaction of a handler.
        handled?: Handled,
    }
    /// An answer that could not be read as it was sent.
    PartlyRead {
        /// The call.
        call_id: CallId,
        /// The tool.
        name?: String,
        /// The parts, and how they were read; absent while a guardrail holds them back.
        message?: String,
    }
    /// A failed call.
    CallFailure {
        #[serde(flatten)]
        failure: Failure,
        /// The call.
        call_id: CallId,
        /// The tool.
        name?: String,
        /// The recorded call whose outcome replaces this one, in a fork.
        stub_of?: CallId,
        /// The reaction of a handler.
        handled?: Handled,
    }
    /// Another try of a failed call.
    CallRetry {
        #[serde(flatten)]
        failure: Failure,
        /// The call.
        call_id: CallId,
        /// The tool.
        name?: String,
        /// The number of the retry, from 1.
        retry?: u32,
        /// The delay in milliseconds.
        delay_ms?: u64,
        /// The tool that is called instead.
        instead?: String,
    }
    /// A file of a call.
    File {
        /// The file.
        artifact_id: String,
        /// The call that made it.
        call_id: CallId,
        /// Its name; absent while a guardrail holds it back.
        file?: String,
        /// Its media type; absent while a guardrail holds it back.
        media_type?: String,
        /// The digest of its content; absent while a guardrail holds it back.
        sha256?: String,
        /// Its size.
        bytes: i64,
    }
    /// A remote call that may continue.
    NotCancelled {
        /// The call.
        call_id: CallId,
        /// The address of the remote agent.
        agent: String,
        /// The reason.
        message: String,
    }
    /// An open circuit breaker: of a tool, or of a model.
    OpenBreaker {
        /// The tool.
        tool?: String,
        /// The provider of the model.
        provider?: String,
        /// The model.
        model?: String,
        /// The time of the next try, in RFC 3339.
        until: String,
    }
    /// A delegate that begins.
    DelegationStart {
        /// The role of the engagement with this event.
        role: DelegationRole,
        /// The delegate's agent.
        agent_id: String,
        /// The mode.
        mode: DelegationMode,
        /// The call of the parent.
        call_id: Option<CallId>,
        /// The job of the other side.
        job_id: JobId,
        /// The engagement of the delegate, in the parent's stream.
        engagement_id?: EngagementId,
        /// The depth of the delegate, from 1.
        depth: i64,
        /// The timeout in milliseconds.
        timeout_ms: Option<i64>,
    }
    /// A delegate that has ended.
    DelegationEnd {
        /// The role of the engagement with this event.
        role: DelegationRole,
        /// The delegate's agent.
        agent_id: String,
        /// `success`, `error` or `timeout`.
        status: DelegationState,
        /// The duration in milliseconds.
        duration_ms: i64,
        /// The tokens that it used.
        tokens_used: i64,
        /// The call of the parent, in the parent's stream.
        #[schema(value_type = Option<String>)]
        call_id?: Option<CallId>,
        /// The engagement of the delegate, in the parent's stream.
        engagement_id?: EngagementId,
    }
    /// A question to the user.
    UserQuestion {
        /// The question.
        call_id: CallId,
        /// Each requested key, and its meaning.
        request_keys: Value,
        /// The values that the agent exposes.
        exposes?: Map<String, Value>,
    }
    /// An answer of the user.
    UserReply {
        /// The question.
        call_id: CallId,
        /// The keys of the answer.
        keys: Vec<String>,
        /// The user.
        by: String,
        /// The id of the A2A message.
        message_id?: String,
    }
    /// An answer that used more than was reserved for it.
    ExceededReservation {
        /// The model that answered.
        model?: String,
        /// Its provider.
        provider?: String,
        /// The tool that is an agent on another server, if that answered.
        tool?: String,
        /// The tokens that were reserved.
        reserved: i64,
        /// The tokens that were booked.
        booked: i64,
        /// The money that was reserved, as a decimal, if it was less than the cost.
        #[schema(value_type = Option<String>)]
        cost_reserved?: Amount,
        /// The cost that was booked then, as a decimal.
        #[schema(value_type = Option<String>)]
        cost_booked?: Amount,
    }
    /// A count that cannot be true.
    ClampedUsage {
        /// The tokens that the provider reported.
        reported: i64,
        /// The tokens that were booked.
        booked: i64,
    }
    /// A model call that no budget covers.
    Overspending {
        /// The limit.
        limit: Option<i64>,
        /// The part that is spent.
        settled: Option<i64>,
        /// The most that the call could use.
        needed: Option<i64>,
        /// A shared budget.
        budget?: String,
        /// The unit of a budget that is not in tokens.
        unit?: Measure,
    }
    /// A budget that is close to its limit.
    BudgetWarning {
        /// The unit.
        unit: Measure,
        /// The part of the limit that is spent, in percent.
        percent: i64,
        /// A shared budget.
        budget?: String,
        /// The limit of the engagement's own budget.
        limit?: i64,
        /// The spent part of the engagement's own budget.
        settled?: i64,
    }
    /// An answer that was not accepted.
    RejectedOutput {
        /// The reason; absent while a guardrail holds it back.
        message?: String,
    }
    /// A match of a filter.
    FlaggedContent {
        /// `input`, `tool` or `answer`.
        #[serde(rename = "where")]
        place: String,
        /// The kinds of the matches.
        found: Vec<String>,
        /// The action of the filter.
        action: FilterAction,
        /// The tool.
        name?: String,
    }
    /// A summary of earlier messages.
    Summary {
        /// The number of messages that it replaces.
        messages: usize,
        /// The model that wrote it.
        model: String,
        /// Its provider.
        provider: String,
        /// The tokens of the prompt.
        tokens_in: i64,
        /// The tokens of the summary.
        tokens_out: i64,
        /// True if the tokens are not those that the provider counted.
        estimated?: bool,
    }
    /// The memory of earlier engagements.
    Recalled {
        /// The number of engagements.
        engagements: usize,
        /// The number of messages.
        messages: usize,
    }
    /// A check of a guardrail.
    Checked {
        /// The direction of the text.
        side: Side,
        /// The tool of the guardrail.
        tool: String,
        /// True if the text passed.
        passed: bool,
        /// The position among the checks of the turn; older events have none.
        position: Option<usize>,
        /// True if the tool could not be asked.
        away?: bool,
        /// The digest of a text that may be read.
        text_sha256?: String,
        /// True if a record replaces the check.
        on_record?: bool,
    }
    /// A transaction of the agent's state.
    StateCommitted {
        /// The transaction.
        transaction_id: String,
        /// The changes.
        changes: Vec<ChangedKey>,
    }
    /// Dropped changes of the agent's state.
    StateDropped {
        /// The changes.
        changes: Vec<ChangedKey>,
        /// The code of the reason.
        reason: String,
    }
    /// A change of a key, without its value.
    ChangedKey {
        /// The key.
        key: String,
        /// `set`, `delete` or `append`.
        operation: String,
    }
}

/// The role of an engagement in a delegation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DelegationRole {
    /// The engagement that delegates.
    Parent,
    /// The delegate.
    Child,
}

/// The reason why members of an answer are not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// More than 64 KB of one call, or more than 256 KB of an answer.
    Size,
    /// They hold personal data, which the agent redacts.
    PersonalData,
}
