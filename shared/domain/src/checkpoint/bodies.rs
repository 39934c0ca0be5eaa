//! The bodies of checkpoints: the results of the seven phases. The results of nodes of a flow belong to the worker.

use super::Checkpoint;
use crate::agent::StateMode;
use crate::agent::errors::RetryRule;
use crate::budget::Short;
use crate::error::FailureKind;
use crate::event::add_schemas_of;
use crate::message::FinishReason;
use crate::session_state::StateChange;
use crate::{CallId, JobError, JobId, Phase, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// A body of a checkpoint.
pub trait PhaseBody: Serialize + DeserializeOwned {
    /// The phase that writes it.
    const PHASE: Phase;
    /// The versions that this program reads; it writes the last one.
    const VERSIONS: &'static [i64];
}

impl Checkpoint {
    /// Returns the body; `None` for another phase, and for a body that this program cannot read.
    #[must_use]
    pub fn read<B: PhaseBody>(&self) -> Option<B> {
        let is_known = self.phase == B::PHASE && B::VERSIONS.contains(&self.version);
        is_known.then(|| B::deserialize(&self.body).ok())?
    }
}

macro_rules! phases {
    ($($(#[$doc:meta])* $body:ty = $phase:ident, $versions:expr;)+) => {
        $($(#[$doc])* impl PhaseBody for $body {
            const PHASE: Phase = Phase::$phase;
            const VERSIONS: &'static [i64] = &$versions;
        })+
    };
}

phases! {
    /// Version 1 had no id of the request; version 3 added the span.
    InitBody = Init, [1, 2, 3];
    NormBody = Norm, [1];
    /// Version 1 has no record of the tools' sources, version 2 none of the retry policies of their calls.
    ResolBody = Resol, [1, 2, 3];
    ExecBody = Exec, [1];
    /// Version 1 did not record if the answer is released.
    EmitBody = Emit, [1, 2];
}

/// Version 1 did not count cached and reasoning tokens apart; version 2 did not record the budget that capped the answer.
impl<N: Serialize + DeserializeOwned> PhaseBody for InferBody<N> {
    const PHASE: Phase = Phase::Infer;
    const VERSIONS: &'static [i64] = &[1, 2, 3];
}

/// Version 1 had no state.
impl<N: Serialize + DeserializeOwned, S: Serialize + DeserializeOwned> PhaseBody for PersistBody<N, S> {
    const PHASE: Phase = Phase::Persist;
    const VERSIONS: &'static [i64] = &[1, 2];
}

/// Returns the name of the type of a phase's body, and adds the schemas of this type and of all types in it.
pub fn add_schemas(phase: Phase, schemas: &mut Vec<(String, RefOr<Schema>)>) -> Cow<'static, str> {
    match phase {
        Phase::Init => add_schemas_of::<InitBody>(schemas),
        Phase::Norm => add_schemas_of::<NormBody>(schemas),
        Phase::Resol => add_schemas_of::<ResolBody>(schemas),
        Phase::Infer => add_schemas_of::<InferBody>(schemas),
        Phase::Exec => add_schemas_of::<ExecBody>(schemas),
        Phase::Persist => add_schemas_of::<PersistBody>(schemas),
        Phase::Emit => add_schemas_of::<EmitBody>(schemas),
    }
}

/// The result of INIT.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct InitBody {
    /// New per turn and unique over all turns, in every scope that the manifest may demand (RS-02).
    pub interaction_id: String,
    /// The caller's session, or the engagement (RS-03).
    pub session_id: String,
    /// The worker process that began the turn (RS-04).
    pub instance_id: String,
    /// The id of the caller's request: the job; since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<JobId>,
    /// W3C `traceparent` and `tracestate` of the submitter, from the job's `meta`.
    pub trace_context: Option<Value>,
    /// W3C baggage of the submitter. Version 1 kept it as it was sent.
    #[serde(default, deserialize_with = "readable")]
    pub baggage: Option<BTreeMap<String, String>>,
    /// The number of the turn within the engagement, from 1.
    pub turn_number: i64,
    /// The time at which the turn began, in milliseconds since 1970.
    pub started_at: Timestamp,
    /// W3C `traceparent` of the claim's span, for a worker that resumes it; since version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
}

/// Reads a value, or `None` for one of another form.
fn readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(value: D) -> Result<Option<T>, D::Error> {
    Ok(Value::deserialize(value).ok().and_then(|value| T::deserialize(value).ok()))
}

/// The result of NORM; the messages are rows of their own.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NormBody {
    /// The number of messages in the input.
    pub messages: usize,
}

/// The result of RESOL. It holds digests of descriptions and schemas, because every turn would write the texts again. With
/// the digests, a resumed turn offers the same tools only.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ResolBody {
    /// Tools on offer, in the agent's order.
    pub tools: Vec<String>,
    /// The sources of the tools (RS-11); empty in the first version of the body.
    #[serde(default)]
    pub resolved: Vec<ResolvedTool>,
    /// Declared tools that this turn does not have, each with the reason.
    pub unavailable: Vec<(String, String)>,
}

/// OSSA's ResolvedTool, with a digest in place of its texts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResolvedTool {
    /// Its name for the model.
    pub name: String,
    /// Its source.
    pub source: ToolSource,
    /// The transport of its calls.
    pub transport: Transport,
    /// The longest a call may take, in milliseconds.
    pub timeout_ms: u64,
    /// The retry policy of its failed calls, when the agent's document has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<RetryRule>,
    /// The digest of description and input schema in the form that the model receives.
    pub digest: String,
}

/// The source of a tool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolSource {
    /// Declared in the manifest.
    Manifest {
        /// The position in `spec.tools`, from 0.
        tool_index: u32,
    },
    /// Discovered at an MCP server.
    Mcp {
        /// The server's address, without secrets.
        server_uri: String,
        /// The server's name for the tool.
        capability: String,
    },
    /// In the server's own registry.
    Function {
        /// Its name there.
        handler: String,
    },
    /// Another agent.
    Delegation {
        /// Its name.
        agent_id: String,
    },
}

/// The transport of a tool's calls (OSSA §1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// In this process.
    Function,
    /// By a request over HTTP.
    Http,
    /// By `tools/call` of an MCP server.
    Mcp,
}

/// The result of INFER; the answer itself is a message of the engagement.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct InferBody<N = Value> {
    /// The provider that answered.
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// The reason why the model stopped writing.
    pub finish_reason: FinishReason,
    /// The tokens of the prompt, as charged to the budget.
    pub tokens_in: i64,
    /// The tokens of the answer, as charged to the budget.
    pub tokens_out: i64,
    /// Prompt tokens from the provider's cache: a part of `tokens_in`.
    #[serde(default)]
    pub tokens_cached: i64,
    /// Tokens of the model's reasoning: a part of `tokens_out`.
    #[serde(default)]
    pub tokens_reasoning: i64,
    /// True if the tokens are not those that the provider counted: it counted none, or impossibly many.
    pub estimated: bool,
    /// True if the answer had to be shorter than the agent allows, because the budget had too little left.
    #[serde(default)]
    pub capped: bool,
    /// The budget that had too little left, unless it was the engagement's tokens.
    #[serde(default)]
    pub shortage: Option<Shortage>,
    /// The answer to a node of a flow, if the turn runs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<N>,
}

impl<N> InferBody<N> {
    /// Returns the reason why the answer is no result, if there is one. Another request would end in the same way.
    #[must_use]
    pub fn unusable(&self) -> Option<JobError> {
        let model = &self.model;
        match self.finish_reason {
            FinishReason::Length => {
                let message = format!(
                    "the answer of {model} was cut after {} tokens, the most that one answer may have; \
                 raise ext_agent_max_tokens, maxTokens or max_tokens_per_turn of the agent, or [models] max_tokens",
                    self.tokens_out
                );
                Some(JobError::new(FailureKind::MaxTokens, message).with("tokens", self.tokens_out))
            }
            FinishReason::ContentFilter => {
                let message =
                    format!("the provider {} withheld the answer of {model} (content filter)", self.provider);
                Some(JobError::new(FailureKind::ContentFiltered, message))
            }
            FinishReason::Stop | FinishReason::ToolUse => None,
        }
    }
}

/// A budget that had not enough left for a whole answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Shortage {
    /// The amount left, in the unit of the measure.
    pub left: i64,
    /// The most that the call could have needed.
    pub needed: i64,
    /// The budget.
    pub of: Short,
}

/// The result of EXEC; inputs and outcomes are rows of the journal.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExecBody {
    /// The calls of the turn, in order.
    pub calls: Vec<CallId>,
}

/// The result of PERSIST: the record of the turn's transaction. Messages and the tool journal are rows of
/// their own, written as they arose.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PersistBody<N = Value, S = Value> {
    /// The id of the transaction in the audit.
    pub transaction_id: String,
    /// The result of the changes.
    #[serde(default)]
    pub status: Transaction,
    /// The mode in which the agent keeps state.
    #[serde(default)]
    pub mode: StateMode,
    /// The kind of storage that the manifest names.
    #[serde(default)]
    pub storage: Option<String>,
    /// State changes, in order.
    pub changes: Vec<StateChange>,
    /// The result of a node of a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<N>,
    /// The step of the agents of a node that is not done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<S>,
}

/// The result of a turn's changes (RS-31).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transaction {
    /// They are committed with the checkpoint that records it.
    #[default]
    Committed,
    /// Another turn had changed the state that this one read.
    RolledBack,
}

/// The result of EMIT. The event of the phase reports the turn.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct EmitBody {
    /// Prompt tokens.
    pub tokens_input: i64,
    /// Completion tokens.
    pub tokens_output: i64,
    /// Tool calls that the model requested.
    pub tool_calls: usize,
    /// The worker process that ended the turn; another one may have begun it.
    #[serde(default)]
    pub instance_id: String,
    /// True if the turn ends with an answer that has passed the agent's guardrail, or needs none. From then
    /// on everything the model wrote up to here may be shown (OAS-43).
    #[serde(default)]
    pub released: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spent;
    use serde_json::json;

    fn stored(phase: Phase, version: i64, body: Value) -> Checkpoint {
        Checkpoint {
            phase,
            version,
            body,
            turn: 1,
            tokens_in: 0,
            tokens_out: 0,
            duration_ms: 0,
            at: Timestamp(0),
            spent: Spent::default(),
        }
    }

    #[test]
    fn a_body_of_the_first_version_is_read() {
        let init = json!({"interaction_id": "i", "session_id": "s", "instance_id": "w", "trace_context": null,
            "baggage": ["a=1"], "turn_number": 1, "started_at": 5});
        let init = stored(Phase::Init, 1, init).read::<InitBody>().unwrap();
        assert_eq!((init.interaction_id.as_str(), init.baggage, init.request_id), ("i", None, None));
        let infer = json!({"provider": "p", "model": "m", "finish_reason": "stop", "tokens_in": 1, "tokens_out": 2,
            "estimated": false});
        assert_eq!(stored(Phase::Infer, 1, infer).read::<InferBody>().unwrap().model, "m");
    }

    #[test]
    fn a_body_of_an_unknown_version_or_another_phase_is_not_read() {
        let body = json!({"messages": 1});
        assert!(stored(Phase::Norm, 1, body.clone()).read::<NormBody>().is_some());
        assert!(stored(Phase::Norm, 2, body.clone()).read::<NormBody>().is_none());
        assert!(stored(Phase::Exec, 1, body).read::<NormBody>().is_none());
    }
}
