//! The bodies of the checkpoints that later phases of the turn read, each with the versions that this worker reads.

use super::stop::{Stop, too_little};
use super::tools::{Bindings, ResolBody};
use crate::flow::machine::NodeResult;
use crate::flow::run::NodeAnswer;
use crate::flow::team::Step as TeamStep;
use crate::model::FinishReason;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use turnstone_domain::agent::StateMode;
use turnstone_domain::budget::Short;
use turnstone_domain::error::FailureKind;
use turnstone_domain::session_state::StateChange;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{Checkpoint, JobError, Phase};

/// A body of a checkpoint.
pub trait Body: DeserializeOwned {
    /// The phase that writes it.
    const PHASE: Phase;
    /// The versions that this worker reads; it writes the last one.
    const VERSIONS: &'static [i64];
}

/// The first version has no record of the tools' sources, the second none of the retry policies of their calls.
impl Body for ResolBody {
    const PHASE: Phase = Phase::Resol;
    const VERSIONS: &'static [i64] = &[1, 2, 3];
}

/// Version 1 did not count cached and reasoning tokens apart; version 2 did not record the budget that capped the answer.
impl Body for InferBody {
    const PHASE: Phase = Phase::Infer;
    const VERSIONS: &'static [i64] = &[1, 2, 3];
}

/// Version 1 had no state.
impl Body for PersistBody {
    const PHASE: Phase = Phase::Persist;
    const VERSIONS: &'static [i64] = &[1, 2];
}

/// The result of INFER; the answer itself is a message of the engagement.
#[derive(Debug, Serialize, Deserialize)]
pub struct InferBody {
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
    /// True if the provider sent no count, so the whole reservation was charged.
    pub estimated: bool,
    /// True if the answer had to be shorter than the agent allows, because the budget had too little left.
    pub capped: bool,
    /// The budget that had too little left, unless it was the engagement's tokens.
    #[serde(default)]
    pub shortage: Option<Shortage>,
    /// The answer to a node of a flow, if the turn runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeAnswer>,
}

impl InferBody {
    /// Returns the reason why the answer is no result, if there is one. Another request would end in the same
    /// way.
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shortage {
    /// The amount left, in the unit of the measure.
    pub left: i64,
    /// The most that the call could have needed.
    pub needed: i64,
    /// The budget.
    pub of: Short,
}

impl Shortage {
    /// Returns the error of a call that needs more.
    pub fn error(&self) -> JobError {
        too_little(self.left, self.needed, &self.of)
    }
}

/// The result of PERSIST: the record of the turn's transaction. Messages and the tool journal are rows of
/// their own, written as they arose.
#[derive(Debug, Serialize, Deserialize)]
pub struct PersistBody {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeResult>,
    /// The step of the agents of a node that is not done yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<TeamStep>,
}

/// The result of a turn's changes (RS-31).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transaction {
    /// They are committed with the checkpoint that records it.
    #[default]
    Committed,
    /// Another turn had changed the state that this one read.
    RolledBack,
}

/// The results of the phases of the current turn.
#[derive(Default)]
pub struct Bodies {
    /// The number of the turn.
    pub turn: i64,
    /// The result of RESOL, once it is known in this process.
    pub resolved: Option<Arc<ResolBody>>,
    /// The tools that RESOL bound to the agent's capabilities, once that happened in this process.
    pub bindings: Option<Arc<Bindings>>,
    /// The result of INFER, once it is known in this process.
    pub inferred: Option<Arc<InferBody>>,
    /// The outcome of the call of a flow's node, once it is known in this process.
    pub outcome: Option<ToolOutcome>,
    /// The result of PERSIST, once it is known in this process.
    pub persisted: Option<Arc<PersistBody>>,
    /// Version and body of the checkpoints that the claim returned, in the order of the phases.
    recalled: Vec<(i64, Value)>,
}

impl Bodies {
    /// Returns the bodies of a turn that has not begun.
    #[must_use]
    pub fn new(turn: i64) -> Self {
        Self { turn, ..Self::default() }
    }

    /// Returns the bodies of a turn with these checkpoints.
    #[must_use]
    pub fn recalled(turn: i64, checkpoints: Vec<Checkpoint>) -> Self {
        let recalled = checkpoints.into_iter().map(|done| (done.version, done.body)).collect();
        Self { turn, recalled, ..Self::default() }
    }

    /// Returns the result of RESOL of the current turn: from memory, or from its checkpoint.
    ///
    /// # Errors
    /// [`Stop::Fail`] when there is no checkpoint, or a newer version of Turnstone wrote it: the attempt fails, and a newer
    /// worker may retry it.
    pub fn resolved(&mut self) -> Result<Arc<ResolBody>, Stop> {
        known(&mut self.resolved, &self.recalled, self.turn)
    }

    /// Returns the result of INFER of the current turn: from memory, or from its checkpoint.
    ///
    /// # Errors
    /// As [`Bodies::resolved`].
    pub fn inferred(&mut self) -> Result<Arc<InferBody>, Stop> {
        known(&mut self.inferred, &self.recalled, self.turn)
    }

    /// Returns the result of PERSIST of the current turn: from memory, or from its checkpoint.
    ///
    /// # Errors
    /// As [`Bodies::resolved`].
    pub fn persisted(&mut self) -> Result<Arc<PersistBody>, Stop> {
        known(&mut self.persisted, &self.recalled, self.turn)
    }
}

fn known<B: Body>(kept: &mut Option<Arc<B>>, recalled: &[(i64, Value)], turn: i64) -> Result<Arc<B>, Stop> {
    if let Some(body) = kept {
        return Ok(Arc::clone(body));
    }
    let body = match recalled.get(B::PHASE.index()) {
        None => Err("it is missing".to_owned()),
        Some((version, _)) if !B::VERSIONS.contains(version) => Err(format!("its version is {version}")),
        Some((_, body)) => B::deserialize(body).map_err(|e| e.to_string()),
    };
    let unreadable = |why: String| {
        let message = format!(
            "the checkpoint of phase {} of turn {turn} cannot be read by this worker ({why}); \
             upgrade the workers and retry the job",
            B::PHASE
        );
        Stop::Fail(JobError::new(FailureKind::Internal, message))
    };
    Ok(Arc::clone(kept.insert(Arc::new(body.map_err(unreadable)?))))
}
