//! The bodies of the checkpoints that later phases of the turn read, each with the versions that this worker reads.

use super::stop::Stop;
use super::tools::Bindings;
use crate::flow::machine::NodeResult;
use crate::flow::run::NodeAnswer;
use crate::flow::team::Step as TeamStep;
use serde_json::Value;
use std::sync::Arc;
use turnstone_domain::checkpoint::{self, PhaseBody, ResolBody};
use turnstone_domain::error::FailureKind;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{Checkpoint, JobError};

/// The result of INFER, with the answer to a node of a flow.
pub type InferBody = checkpoint::InferBody<NodeAnswer>;
/// The result of PERSIST, with that of a node of a flow.
pub type PersistBody = checkpoint::PersistBody<NodeResult, TeamStep>;

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

fn known<B: PhaseBody>(
    kept: &mut Option<Arc<B>>,
    recalled: &[(i64, Value)],
    turn: i64,
) -> Result<Arc<B>, Stop> {
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
