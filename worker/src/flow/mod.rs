//! Flows of Agent Spec: each node that works is a turn (ADR 0010).
//!
//! The state of a run is the results of its nodes, which are the bodies of PERSIST's checkpoints. A worker
//! that claims the job replays them; from then on the state is kept in memory. [`machine`] decides, [`work`]
//! does.

mod answer;
mod execution;
mod machine;
mod node_agent;
mod template;
mod work;

pub use execution::run as execute;
pub use machine::{NodeResult, Values};
pub use template::{render, render_all, render_url, text};
pub use work::{NodeAnswer, catches, keep_answer, messages, model, plan, request_tool, result, say_inputs};

use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use machine::{Machine, Step};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use turnstone_domain::error::FailureKind;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{AgentDefinition, JobError, RawJson};
use turnstone_specs::agent_spec::model::{Flow, Node};
use turnstone_store::LedgerError;

/// Checkpoints that nodes without a call may leave before they are committed.
const MOST_PENDING: usize = 7 * 16;

/// A run of a flow by this worker.
pub struct FlowRun {
    /// The agent that the flow is.
    root: Arc<AgentDefinition>,
    machine: Machine,
    node: Option<NodeTurn>,
}

/// The node that the current turn runs.
pub struct NodeTurn {
    /// The node.
    pub node: Arc<Node>,
    /// Its inputs.
    pub inputs: Values,
    /// The outcome of its call, once it is known in this process.
    pub outcome: Option<ToolOutcome>,
}

impl FlowRun {
    /// The node of the current turn.
    pub fn node_mut(&mut self) -> Option<&mut NodeTurn> {
        self.node.as_mut()
    }
}

impl Turn {
    /// The node that this turn runs; `None` for a turn of an agent.
    pub fn node(&self) -> Option<&NodeTurn> {
        self.flow.as_ref()?.node.as_ref()
    }
}

/// Prepares the turn: finds the node that is next, and makes its agent the agent of the turn.
///
/// # Errors
/// [`Stop::Fail`] when the flow cannot go on; [`Stop::Store`] when its record cannot be read.
pub async fn begin(turn: &mut Turn) -> Result<(), Stop> {
    if turn.flow.is_none() {
        let Some(document) = &turn.agent.flow else { return Ok(()) };
        let read = turnstone_blocking::in_place(|| turn.deps.flows.get(document));
        let flow = read.map_err(|why| {
            let message = format!("the stored document of the flow cannot be read by this worker: {why}");
            JobError::new(FailureKind::Internal, message)
        })?;
        let inputs = inputs(&flow, &turn.job.args)?;
        let past = match turn.position.takes_input() {
            true => Vec::new(),
            false => past(turn).await?,
        };
        let machine = Machine::replayed(flow, inputs, past).map_err(|why| {
            let message = format!("the record of the flow does not fit its document: {why}");
            JobError { retryable: false, ..JobError::new(FailureKind::Internal, message) }
        })?;
        let root = Arc::clone(&turn.agent);
        turn.flow = Some(Box::new(FlowRun { root, machine, node: None }));
    }
    if turn.pending().checkpoints.len() >= MOST_PENDING {
        turn.barrier().await?;
    }
    let Some(run) = &mut turn.flow else { return Ok(()) };
    match run.machine.decide() {
        Step::Run(node, inputs) => {
            turn.agent = Arc::new(node_agent::of(&run.root, &node));
            run.node = Some(NodeTurn { node, inputs, outcome: None });
            Ok(())
        }
        Step::Failed(why) => Err(failed(&why).into()),
        Step::Ended(_) => Err(failed("the flow has ended").into()),
    }
}

/// What follows a node that is done: `None` when another one is next, else the result of the job.
///
/// # Errors
/// [`Stop::Fail`] when the flow has failed.
pub fn verdict(turn: &mut Turn) -> Result<Option<Value>, Stop> {
    let result = turn.persisted()?.node.clone();
    let Some((run, result)) = turn.flow.as_mut().zip(result) else {
        return Err(failed("the node has left no result").into());
    };
    run.machine.take(result);
    match run.machine.decide() {
        Step::Run(..) => Ok(None),
        Step::Ended(ended) => Ok(Some(json!(ended))),
        Step::Failed(why) => Err(failed(&why).into()),
    }
}

/// The results of the nodes of the job's earlier turns.
async fn past(turn: &Turn) -> Result<Vec<NodeResult>, Stop> {
    let begins = turn.position.begins.max(1);
    let stored = turn.deps.ledger.reads().persisted(&turn.job.id, begins, turn.position.turn).await;
    let bodies = stored.map_err(|error| Stop::from(LedgerError::Store(error)))?;
    let read = |body: Value| {
        serde_json::from_value(body.get("node").cloned().unwrap_or_default()).map_err(|error| {
            let message = format!("the record of a node cannot be read by this worker: {error}");
            Stop::from(JobError::new(FailureKind::Internal, message))
        })
    };
    bodies.into_iter().map(read).collect()
}

/// The inputs of a run: the first of the job's arguments, cast.
fn inputs(flow: &Flow, args: &RawJson) -> Result<Values, JobError> {
    let given: Vec<Value> = args.parse().unwrap_or_default();
    flow.start_of(given.into_iter().next())
        .map_err(|why| JobError { retryable: false, ..JobError::new(FailureKind::Validation, why) })
}

/// A failure of the flow itself, which another attempt only repeats.
pub fn failed(why: &str) -> JobError {
    JobError { retryable: false, ..JobError::new(FailureKind::Tool, why) }
}

/// An empty map of JSON.
fn nothing() -> Values {
    Map::new()
}
