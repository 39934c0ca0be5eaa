//! Flows of Agent Spec: each node that works is a turn (ADR 0010).
//!
//! The state of a run is the results of its nodes, which are the bodies of PERSIST's checkpoints. A worker
//! that claims the job replays them; from then on the state is kept in memory. [`machine`] decides, [`work`]
//! does.

mod agent;
mod answer;
pub mod machine;
mod node_agent;
mod parallel;
mod remote;
pub mod run;
pub mod team;
mod template;
pub mod tools;
mod transform;
mod work;

pub use agent::{cast, controls, offers, say_consequence};
pub use parallel::run as run_parallel;
pub use run::NodeAnswer;
pub use team::RemoteComponent;
pub use template::{render, render_all, render_url, text};
pub use tools::{Declared, declared};
pub use transform::{begin_summary, due_summary, end_summary, transformed};
pub use work::{catches, keep_answer, messages, model, plan, say_inputs};

use crate::state::{Bodies, Outbox, Stop, TurnHistory};
use machine::{Machine, NodeResult, Step, Values};
use run::{Crew, FlowRun, NodeTurn};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use team::{Step as TeamStep, Team};
use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, RawJson};
use turnstone_specs::agent_spec::model::{Flow, Node, NodeKind};
use turnstone_store::LedgerError;

/// Checkpoints that nodes without a call may leave before they are committed.
const MOST_PENDING: usize = 7 * 16;

/// Prepares the turn: finds the node that is next, and makes its agent the agent of the turn.
///
/// # Errors
/// [`Stop::Fail`] when the flow cannot continue; [`Stop::Store`] when its record cannot be read.
pub async fn begin(
    past: &mut TurnHistory,
    outbox: &mut Outbox,
    flow: &mut Option<Box<FlowRun>>,
) -> Result<(), Stop> {
    let entered = enter(past, outbox, flow).await;
    outbox.place = flow.as_deref().map(FlowRun::place);
    entered
}

async fn enter(
    past: &mut TurnHistory,
    outbox: &mut Outbox,
    flow: &mut Option<Box<FlowRun>>,
) -> Result<(), Stop> {
    let run = match flow {
        Some(run) => run,
        None => flow.insert(Box::new(replayed(outbox).await?)),
    };
    if outbox.pending.checkpoints.len() >= MOST_PENDING {
        outbox.barrier().await?;
    }
    let (node, inputs, branches) = match run.machine.decide() {
        Step::Run(node, inputs) => (node, inputs, None),
        Step::Fan(node, branches) => (node, nothing(), Some(branches)),
        Step::Failed(why) => return Err(failed(&why).into()),
        Step::Ended(_) => return Err(failed("the flow has ended").into()),
    };
    run.admit(&outbox.claimed)?;
    let base = run.machine.thread();
    if run.crew.as_ref().is_none_or(|crew| crew.node.head.id != node.head.id) {
        run.crew = crew(&node, &inputs, base.as_deref(), std::mem::take(&mut run.steps))?;
    }
    let (agent, thread) = match &run.crew {
        Some(crew) => (node_agent::of_crew(&run.root, crew), crew.team.thread(base.as_deref())),
        None => (node_agent::of(&run.root, &node), base),
    };
    outbox.claimed.agent = Arc::new(agent);
    outbox.claimed.is_of_crew = run.crew.is_some();
    // A remote agent is called like the tool of a node.
    outbox.claimed.is_node = run.crew.as_ref().is_none_or(|crew| crew.team.agent().is_none());
    run.node = outbox.claimed.is_node.then_some(NodeTurn { node, inputs, branches });
    past.conversation.enter(thread);
    Ok(())
}

/// Returns the run of the job's flow, as far as the results of its nodes took it.
async fn replayed(outbox: &Outbox) -> Result<FlowRun, Stop> {
    let claimed = &outbox.claimed;
    let Some(document) = &claimed.agent.flow else { return Err(failed("the turn is none of a flow").into()) };
    let read = turnstone_blocking::in_place(|| claimed.deps.flows.get(document));
    let flow = read.map_err(|why| {
        let message = format!("the stored document of the flow cannot be read by this worker: {why}");
        JobError::new(FailureKind::Internal, message)
    })?;
    let inputs = inputs(&flow, &claimed.job.args)?;
    let (past, steps) = match outbox.position.takes_input() {
        true => (Vec::new(), Vec::new()),
        false => past(outbox).await?,
    };
    let fans = claimed.depth < i64::from(claimed.agent.limits.max_delegation_depth);
    let machine = Machine::replayed(flow, inputs, fans, past).map_err(|why| {
        let message = format!("the record of the flow does not fit its document: {why}");
        JobError::new(FailureKind::Internal, message).for_good()
    })?;
    let admitted = machine.iterations();
    Ok(FlowRun { root: Arc::clone(&claimed.agent), machine, admitted, node: None, crew: None, steps })
}

/// Returns the result of the job when the node ended the run; `None` when another node is next.
///
/// # Errors
/// [`Stop::Fail`] when the flow has failed.
pub fn verdict(bodies: &mut Bodies, outbox: &mut Outbox, run: &mut FlowRun) -> Result<Option<Value>, Stop> {
    let decided = decide(bodies, run);
    outbox.place = Some(run.place());
    decided
}

fn decide(bodies: &mut Bodies, run: &mut FlowRun) -> Result<Option<Value>, Stop> {
    let persisted = bodies.persisted()?;
    match (&persisted.node, &persisted.step, &mut run.crew) {
        (Some(result), ..) => {
            run.crew = None;
            run.machine.take(result.clone());
        }
        (None, Some(step), Some(crew)) => {
            crew.team.take(crew.base.as_deref(), step);
            return Ok(None);
        }
        _ => return Err(failed("the node has left no result").into()),
    }
    match run.machine.decide() {
        Step::Run(..) | Step::Fan(..) => Ok(None),
        Step::Ended(ended) => Ok(Some(json!(ended))),
        Step::Failed(why) => Err(failed(&why).into()),
    }
}

/// The agents of a node, as far as these steps took them; `None` for a node without agents.
fn crew(
    node: &Arc<Node>,
    inputs: &Values,
    base: Option<&str>,
    steps: Vec<TeamStep>,
) -> Result<Option<Crew>, Stop> {
    let NodeKind::AgentNode(component) = &node.kind else { return Ok(None) };
    let mut team =
        Team::of(component).ok_or_else(|| failed("a member of the team cannot be run by this worker"))?;
    steps.iter().for_each(|step| team.take(base, step));
    let (node, inputs, base) = (Arc::clone(node), inputs.clone(), base.map(str::to_owned));
    Ok(Some(Crew { node, inputs, team, base, summarizer: None }))
}

/// The effect of the turn on the flow: the result of its node, or the step of the node's agents.
///
/// # Errors
/// [`Stop::Fail`] when the node has failed and no `CatchExceptionNode` contains it.
pub fn effect(
    past: &TurnHistory,
    bodies: &mut Bodies,
    flow: Option<&FlowRun>,
) -> Result<(Option<NodeResult>, Option<TeamStep>), Stop> {
    let inferred = bodies.inferred()?;
    match flow.map(|run| (run, run.crew.as_ref())) {
        None => Ok((None, None)),
        Some((run, Some(crew))) => agent::result(past, bodies, &inferred, (run, crew)),
        Some((run, None)) => Ok((work::result(past, bodies, &inferred, run)?, None)),
    }
}

/// The results of the nodes of the job's earlier turns, and the steps of agents since the last of them.
async fn past(outbox: &Outbox) -> Result<(Vec<NodeResult>, Vec<TeamStep>), Stop> {
    let begins = outbox.position.begins.max(1);
    let (claimed, turn) = (&outbox.claimed, outbox.position.turn);
    let stored = claimed.deps.ledger.reads().persisted(&claimed.job.id, begins, turn).await;
    let bodies = stored.map_err(|error| Stop::from(LedgerError::Store(error)))?;
    let unreadable = |error: serde_json::Error| {
        let message = format!("the record of a node cannot be read by this worker: {error}");
        Stop::from(JobError::new(FailureKind::Internal, message))
    };
    let (mut results, mut steps) = (Vec::new(), Vec::new());
    for mut body in bodies {
        let mut member = |name: &str| body.get_mut(name).map(Value::take);
        match (member("step"), member("node")) {
            (Some(step), _) => steps.push(serde_json::from_value(step).map_err(unreadable)?),
            (None, node) => {
                results.push(serde_json::from_value(node.unwrap_or_default()).map_err(unreadable)?);
                steps.clear();
            }
        }
    }
    Ok((results, steps))
}

/// The inputs of a run: the first of the job's arguments, cast.
fn inputs(flow: &Flow, args: &RawJson) -> Result<Values, JobError> {
    let given: Vec<Value> = args.parse().unwrap_or_default();
    flow.start_of(given.into_iter().next())
        .map_err(|why| JobError::new(FailureKind::Validation, why).for_good())
}

/// A failure of the flow itself, which another attempt only repeats.
pub fn failed(why: &str) -> JobError {
    JobError::new(FailureKind::Tool, why).for_good()
}

/// An empty map of JSON.
fn nothing() -> Values {
    Map::new()
}
