//! A run of a flow by this worker: where it is, and who works there.

use super::machine::{Branch, Machine, Values};
use super::team::{Step, Team};
use crate::state::Claimed;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::{AgentDefinition, JobError};
use turnstone_specs::agent_spec::model::{LlmConfig, Node};

/// A run of a flow by this worker.
pub struct FlowRun {
    /// The agent that the flow is.
    pub root: Arc<AgentDefinition>,
    /// The state of the run.
    pub machine: Machine,
    /// The iterations of the machine for which the tree of the job had room.
    pub admitted: usize,
    /// The node of the current turn, unless agents run it.
    pub node: Option<NodeTurn>,
    /// The agents of the node, when it is one of agents.
    pub crew: Option<Crew>,
    /// The steps that they took before this worker claimed the job.
    pub steps: Vec<Step>,
}

/// The node that the current turn runs.
pub struct NodeTurn {
    /// The node.
    pub node: Arc<Node>,
    /// Its inputs.
    pub inputs: Values,
    /// The flows that run as jobs of their own, if it is a parallel node.
    pub branches: Option<Arc<[Branch]>>,
}

/// The agents of the node that runs.
pub struct Crew {
    /// The node.
    pub node: Arc<Node>,
    /// Its inputs.
    pub inputs: Values,
    /// The agents and their conversations.
    pub team: Team,
    /// The conversation of the flow that the node is in; `None` is the one with the user.
    pub base: Option<String>,
    /// The model of the summary that is being made.
    pub summarizer: Option<Arc<LlmConfig>>,
}

/// The result of INFER for a node: the text of its model, or the call that EXEC makes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NodeAnswer {
    /// The text of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<RequestedCall>,
    /// Why no model answered, when a `CatchExceptionNode` takes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl NodeAnswer {
    /// Returns the plan to make this call.
    pub fn of_call(call: RequestedCall) -> Self {
        Self { call: Some(call), ..Self::default() }
    }
}

impl FlowRun {
    /// Checks that the tree of the job has room for the iterations that this run was not admitted to before. They count as
    /// jobs, although one job runs them.
    ///
    /// # Errors
    /// [`FailureKind::TreeJobs`]. No iteration has begun then.
    pub fn admit(&mut self, claimed: &Claimed) -> Result<(), JobError> {
        let all = self.machine.iterations();
        if all > self.admitted {
            self.room(claimed, all)?;
            self.admitted = all;
        }
        Ok(())
    }

    /// Checks that the tree of the job has room for flows that become jobs of their own.
    ///
    /// # Errors
    /// As [`FlowRun::admit`].
    pub fn room_for(&self, claimed: &Claimed, flows: usize) -> Result<(), JobError> {
        self.room(claimed, self.admitted.saturating_add(flows))
    }

    fn room(&self, claimed: &Claimed, iterations: usize) -> Result<(), JobError> {
        let node = format!("node `{}` was not begun", self.machine.path());
        let Some(why) = claimed.too_many_jobs(&node, iterations) else { return Ok(()) };
        let most = claimed.fan_out.max_jobs_per_tree;
        let error = JobError::new(FailureKind::TreeJobs, why).for_good();
        Err(error
            .with("iterations", iterations)
            .with("jobs", claimed.tree_jobs)
            .with("max_jobs_per_tree", most))
    }

    /// Returns the name of the node that the turn runs, with the nodes around it and the agent whose turn it is.
    #[must_use]
    pub fn place(&self) -> String {
        let path = self.machine.path();
        match self.crew.as_ref().map(|crew| &crew.team.who().head().name) {
            Some(agent) if !path.ends_with(agent.as_str()) => format!("{path} > {agent}"),
            _ => path,
        }
    }
}
