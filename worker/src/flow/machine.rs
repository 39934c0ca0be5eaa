//! A run of a flow as a pure function of its document, its inputs and the results of its nodes so far.
//!
//! Containers (subflows, maps, catches) are no steps of their own: they are entered on the way to a node that
//! works, and left when their flow ends.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use turnstone_specs::agent_spec::model::{AgenticComponent, Flow, Node, NodeKind, Reducer, ToolKind};

/// The branch of a node that has only one.
pub const NEXT: &str = "next";
/// The output of a `CatchExceptionNode` that says what was caught.
const CAUGHT_INFO: &str = "caught_exception_info";
/// The branch of a `CatchExceptionNode` after a failure.
const CAUGHT_BRANCH: &str = "caught_exception_branch";

/// Named values.
pub type Values = Map<String, Value>;

/// The result of a node, as PERSIST records it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeResult {
    /// The id of the node.
    pub node: String,
    /// Its outputs.
    #[serde(default)]
    pub outputs: Values,
    /// The branch that it took.
    pub branch: String,
    /// The reason of its failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl NodeResult {
    /// Returns the result of a node that has one branch.
    pub fn of(node: String, outputs: Values) -> Self {
        Self { node, outputs, branch: NEXT.to_owned(), failed: None }
    }

    /// Returns the result of a node that failed for this reason.
    pub fn failed(node: String, why: String) -> Self {
        Self { failed: Some(why), ..Self::of(node, Values::new()) }
    }
}

/// The next action of a run.
#[derive(Clone, Debug)]
pub enum Step {
    /// A node works with these inputs.
    Run(Arc<Node>, Values),
    /// The flows of a parallel node run as jobs of their own.
    Fan(Arc<Node>, Arc<[Branch]>),
    /// The flow has ended.
    Ended(Ended),
    /// It has failed, for this reason.
    Failed(String),
}

/// A flow of a parallel node, with its inputs.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The flow.
    pub flow: Arc<Flow>,
    /// Its inputs, cast.
    pub inputs: Values,
}

/// The result of entering a node.
enum Entered {
    /// It works with these inputs.
    Work(Values),
    /// Its flows run as jobs of their own.
    Fan(Arc<[Branch]>),
    /// It is a container: a node inside it, or after it, is next.
    Inside,
}

/// The end of a flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ended {
    /// Its outputs.
    pub outputs: Values,
    /// The name of the end node; `None` where a branch leads nowhere.
    pub end_node: Option<String>,
    /// The branch of that end node.
    pub branch: String,
}

/// A run.
pub struct Machine {
    /// The flows that are under way, the outermost first.
    frames: Vec<Frame>,
    over: Option<Step>,
    /// The number of results so far.
    results: usize,
    /// The iterations of the maps and parallel nodes that were entered so far, those that are still to come included.
    iterations: usize,
    /// True if the flows of parallel nodes run as jobs of their own.
    fans: bool,
}

/// A flow that is under way.
struct Frame {
    flow: Arc<Flow>,
    inputs: Values,
    /// The newest value of each input that an edge has filled.
    slots: HashMap<(usize, String), Value>,
    /// The position of the current node.
    at: usize,
    around: Around,
    /// The conversation of the flow; `None` is the one with the user.
    thread: Option<String>,
}

/// The owner of a flow: the job, or a node of another flow.
enum Around {
    /// The job.
    Job,
    /// A `FlowNode`.
    Flow,
    /// A `CatchExceptionNode`.
    Catch,
    /// A `MapNode`, parallel or not: the inputs of all iterations, and the outputs of those that are over.
    Map { items: Arc<[Values]>, done: Vec<Values>, reducers: Arc<[(String, Reducer)]> },
    /// A `ParallelFlowNode`: the flows that are still to be run, the last one first, and the outputs so far.
    Flows { waiting: Vec<(Arc<Flow>, Values)>, outputs: Values },
}

impl Machine {
    /// Returns a run that begins with these inputs, which are cast already. With `fans` the flows of parallel nodes run as
    /// jobs of their own, if they can.
    pub fn new(flow: Arc<Flow>, inputs: Values, fans: bool) -> Self {
        let mut machine = Self { frames: Vec::new(), over: None, results: 0, iterations: 0, fans };
        machine.push(flow, inputs, Around::Job);
        machine
    }

    /// Returns a run that has got as far as these results.
    ///
    /// # Errors
    /// A sentence: the results are of another document.
    pub fn replayed(
        flow: Arc<Flow>,
        inputs: Values,
        fans: bool,
        results: impl IntoIterator<Item = NodeResult>,
    ) -> Result<Self, String> {
        let mut machine = Self::new(flow, inputs, true);
        for result in results {
            let mut step = machine.decide();
            // The record says whether the flows of a parallel node were jobs of their own.
            if matches!(&step, Step::Fan(node, _) if node.head.id != result.node) {
                machine.fans = false;
                step = machine.decide();
                machine.fans = true;
            }
            match step {
                Step::Run(node, _) | Step::Fan(node, _) if node.head.id == result.node => {
                    machine.take(result)
                }
                Step::Run(node, _) | Step::Fan(node, _) => {
                    let message =
                        format!("the record is of node {}, where {} runs", result.node, node.head.id);
                    return Err(message);
                }
                Step::Ended(_) | Step::Failed(_) => {
                    return Err(format!("the record is of node {} after the end of the flow", result.node));
                }
            }
        }
        machine.fans = fans;
        Ok(machine)
    }

    /// Returns what is next. Without a result in between it returns the same again.
    pub fn decide(&mut self) -> Step {
        loop {
            let Some(frame) = self.frames.last() else {
                return self.over.clone().unwrap_or_else(|| Step::Failed("the flow is empty".to_owned()));
            };
            let node = Arc::clone(&frame.flow.nodes[frame.at]);
            let entered = frame.read(&node).and_then(|inputs| self.enter(&node, inputs));
            match entered {
                Ok(Entered::Work(inputs)) => return Step::Run(node, inputs),
                Ok(Entered::Fan(branches)) => return Step::Fan(node, branches),
                Ok(Entered::Inside) => {}
                Err(why) => self.fail(&why),
            }
        }
    }

    /// Takes the result of the current node.
    pub fn take(&mut self, result: NodeResult) {
        self.results += 1;
        match result.failed {
            Some(why) => self.fail(&why),
            None => self.finish(result.outputs, &result.branch),
        }
    }

    /// Returns true when a `CatchExceptionNode` contains the current node.
    pub fn catches(&self) -> bool {
        self.frames.iter().any(|frame| matches!(frame.around, Around::Catch))
    }

    /// Returns the names of the nodes around the current one and of itself.
    pub fn path(&self) -> String {
        let names = self.frames.iter().map(|frame| frame.flow.nodes[frame.at].head.name.as_str());
        names.collect::<Vec<_>>().join(" > ")
    }

    /// Returns the number of iterations that this run makes of the maps and parallel nodes that it has entered. The flows
    /// of a [`Step::Fan`] do not count: they are jobs.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Returns the conversation of the innermost flow; `None` is the one with the user.
    pub fn thread(&self) -> Option<String> {
        self.frames.last().and_then(|frame| frame.thread.clone())
    }

    fn push(&mut self, flow: Arc<Flow>, inputs: Values, around: Around) {
        let at = flow.start_node;
        let thread = self.thread();
        self.frames.push(Frame { flow, inputs, slots: HashMap::new(), at, around, thread });
    }

    /// Enters a container, or returns the inputs of a node that works.
    fn enter(&mut self, node: &Node, inputs: Values) -> Result<Entered, String> {
        match &node.kind {
            NodeKind::FlowNode(flow) => {
                let inputs = flow.start(inputs)?;
                self.push(Arc::clone(flow), inputs, Around::Flow);
            }
            // A flow in the place of an agent has a conversation of its own.
            NodeKind::AgentNode(AgenticComponent::Flow(flow)) => {
                let inputs = flow.start(inputs)?;
                self.push(Arc::clone(flow), inputs, Around::Flow);
                let thread = format!("{} {}", node.head.name, self.results);
                if let Some(frame) = self.frames.last_mut() {
                    frame.thread = Some(thread);
                }
            }
            NodeKind::CatchExceptionNode(flow) => {
                let inputs = flow.start(inputs)?;
                self.push(Arc::clone(flow), inputs, Around::Catch);
            }
            NodeKind::MapNode { subflow, reducers } | NodeKind::ParallelMapNode { subflow, reducers } => {
                let items = iterations(subflow, &inputs)?;
                if self.fans
                    && items.len() > 1
                    && matches!(node.kind, NodeKind::ParallelMapNode { .. })
                    && stands_alone(subflow)
                {
                    let branch = |inputs| Branch { flow: Arc::clone(subflow), inputs };
                    return Ok(Entered::Fan(items.into_iter().map(branch).collect()));
                }
                match items.first().cloned() {
                    Some(first) => {
                        self.iterations += items.len();
                        let (items, reducers) = (items.into(), reducers.as_slice().into());
                        let around = Around::Map { items, done: Vec::new(), reducers };
                        self.push(Arc::clone(subflow), first, around);
                    }
                    None => self.finish(reduced(reducers, &[])?, NEXT),
                }
            }
            NodeKind::ParallelFlowNode(flows) => {
                let mut waiting = Vec::with_capacity(flows.len());
                for flow in flows.iter().rev() {
                    let own = flow
                        .inputs
                        .iter()
                        .filter_map(|input| Some((input.title.clone(), inputs.get(&input.title)?.clone())));
                    waiting.push((Arc::clone(flow), flow.start(own.collect())?));
                }
                if self.fans && waiting.len() > 1 && flows.iter().all(|flow| stands_alone(flow)) {
                    let branches = waiting.into_iter().rev().map(|(flow, inputs)| Branch { flow, inputs });
                    return Ok(Entered::Fan(branches.collect()));
                }
                let count = waiting.len();
                match waiting.pop() {
                    Some((flow, inputs)) => {
                        self.iterations += count;
                        self.push(flow, inputs, Around::Flows { waiting, outputs: Values::new() });
                    }
                    None => self.finish(Values::new(), NEXT),
                }
            }
            _ => return Ok(Entered::Work(inputs)),
        }
        Ok(Entered::Inside)
    }

    /// Ends the current node of the innermost flow with these outputs and this branch.
    fn finish(&mut self, mut given: Values, branch: &str) {
        let Some(frame) = self.frames.last_mut() else { return };
        let (flow, at) = (Arc::clone(&frame.flow), frame.at);
        let node = &flow.nodes[at];
        let mut outputs = Values::new();
        for output in &node.outputs {
            let value = match output.value(given.remove(&output.title)) {
                Ok(value) => value,
                Err(why) => return self.fail(&format!("output {why}")),
            };
            for (to, input) in flow.filled_by(at, &output.title) {
                frame.slots.insert((to, input.to_owned()), value.clone());
            }
            outputs.insert(output.title.clone(), value);
        }
        if let NodeKind::EndNode { branch_name } = &node.kind {
            return self.leave(Some(node.head.name.clone()), outputs, branch_name);
        }
        match flow.next(at, branch) {
            Some(next) => frame.at = next,
            None => self.leave(None, Values::new(), NEXT),
        }
    }

    /// Leaves the innermost flow, which has ended.
    fn leave(&mut self, end_node: Option<String>, mut given: Values, branch: &str) {
        let Some(Frame { flow, around, .. }) = self.frames.pop() else { return };
        let mut outputs = Values::new();
        for output in &flow.outputs {
            match given.remove(&output.title).or_else(|| output.default.clone()) {
                None => {}
                Some(value) => match output.value(Some(value)) {
                    Ok(value) => drop(outputs.insert(output.title.clone(), value)),
                    Err(why) => return self.fail(&format!("output {why} of the flow `{}`", flow.head.name)),
                },
            }
        }
        match around {
            Around::Job => {
                let branch = branch.to_owned();
                self.over = Some(Step::Ended(Ended { outputs, end_node, branch }));
            }
            Around::Flow => self.finish(outputs, branch),
            Around::Catch => {
                outputs.insert(CAUGHT_INFO.to_owned(), Value::Null);
                self.finish(outputs, branch);
            }
            Around::Map { items, mut done, reducers } => {
                done.push(outputs);
                match items.get(done.len()).cloned() {
                    Some(next) => self.push(flow, next, Around::Map { items, done, reducers }),
                    None => match reduced(&reducers, &done) {
                        Ok(outputs) => self.finish(outputs, NEXT),
                        Err(why) => self.fail(&why),
                    },
                }
            }
            Around::Flows { mut waiting, outputs: mut all } => {
                all.extend(outputs);
                match waiting.pop() {
                    Some((flow, inputs)) => self.push(flow, inputs, Around::Flows { waiting, outputs: all }),
                    None => self.finish(all, NEXT),
                }
            }
        }
    }

    /// Fails the current node: the innermost `CatchExceptionNode` around it catches the failure, or the whole flow fails.
    fn fail(&mut self, why: &str) {
        let why = format!("node `{}`: {why}", self.path());
        while let Some(frame) = self.frames.pop() {
            if matches!(frame.around, Around::Catch) {
                let outputs = Values::from_iter([(CAUGHT_INFO.to_owned(), why.into())]);
                return self.finish(outputs, CAUGHT_BRANCH);
            }
        }
        self.over = Some(Step::Failed(why));
    }
}

impl Frame {
    /// Returns the inputs of a node: the newest values that edges brought, or defaults, cast to the types of the
    /// inputs.
    fn read(&self, node: &Node) -> Result<Values, String> {
        if matches!(node.kind, NodeKind::StartNode) {
            return Ok(self.inputs.clone());
        }
        let mut inputs = Values::new();
        for input in &node.inputs {
            let filled = self.slots.get(&(self.at, input.title.clone())).cloned();
            let value = input.value(filled).map_err(|why| format!("input {why}"))?;
            inputs.insert(input.title.clone(), value);
        }
        Ok(inputs)
    }
}

/// Returns true if a flow can run as a job of its own: a node of it works, and none has messages, waits or asks for a
/// confirmation.
fn stands_alone(flow: &Flow) -> bool {
    let mut works = false;
    stands(flow, &mut works) && works
}

fn stands(flow: &Flow, works: &mut bool) -> bool {
    flow.nodes.iter().all(|node| match &node.kind {
        NodeKind::StartNode | NodeKind::EndNode { .. } | NodeKind::BranchingNode { .. } => true,
        NodeKind::LlmNode { .. } | NodeKind::ApiNode(_) => {
            *works = true;
            true
        }
        NodeKind::ToolNode(tool) => {
            *works = true;
            !tool.requires_confirmation && !matches!(tool.kind, ToolKind::ClientTool)
        }
        NodeKind::FlowNode(flow)
        | NodeKind::CatchExceptionNode(flow)
        | NodeKind::MapNode { subflow: flow, .. }
        | NodeKind::ParallelMapNode { subflow: flow, .. } => stands(flow, works),
        NodeKind::ParallelFlowNode(flows) => flows.iter().all(|flow| stands(flow, works)),
        NodeKind::AgentNode(_) | NodeKind::InputMessageNode { .. } | NodeKind::OutputMessageNode { .. } => {
            false
        }
    })
}

/// Joins the outputs of the flows of a parallel node, in order.
///
/// # Errors
/// A sentence: a reducer does not fit the values.
pub fn joined(node: &Node, done: Vec<Values>) -> Result<Values, String> {
    match &node.kind {
        NodeKind::ParallelMapNode { reducers, .. } => reduced(reducers, &done),
        _ => Ok(done.into_iter().flatten().collect()),
    }
}

/// Returns the inputs of all iterations: lists are taken item by item, everything else is the same in each.
fn iterations(flow: &Flow, inputs: &Values) -> Result<Vec<Values>, String> {
    let mut length: Option<(usize, &str)> = None;
    let mut taken = Vec::with_capacity(flow.inputs.len());
    for input in &flow.inputs {
        let title = input.title.as_str();
        let Some(value) = inputs.get(&format!("iterated_{title}")) else { continue };
        let items =
            value.as_array().filter(|items| items.iter().all(|item| input.r#type.cast(item.clone()).is_ok()));
        if let Some(items) = items {
            match length {
                Some((known, first)) if known != items.len() => {
                    return Err(format!(
                        "the lists `iterated_{first}` and `iterated_{title}` have {known} and {} items; lists that are \
                         iterated together have one length",
                        items.len()
                    ));
                }
                _ => length = Some((items.len(), title)),
            }
        }
        taken.push((title, value, items));
    }
    let Some((length, _)) = length else {
        return Err("no input is a list to iterate over".to_owned());
    };
    (0..length)
        .map(|at| {
            let one = taken.iter().map(|(title, value, items)| {
                ((*title).to_owned(), items.map_or_else(|| (*value).clone(), |items| items[at].clone()))
            });
            flow.start(one.collect()).map_err(|why| format!("iteration {at}: {why}"))
        })
        .collect()
}

/// Returns the outputs of all iterations, each reduced to one value.
fn reduced(reducers: &[(String, Reducer)], done: &[Values]) -> Result<Values, String> {
    let mut outputs = Values::new();
    for (name, reducer) in reducers {
        let values: Vec<Value> = done.iter().filter_map(|outputs| outputs.get(name).cloned()).collect();
        let value = reduce(*reducer, values).map_err(|why| format!("the reducer of `{name}`: {why}"))?;
        outputs.insert(format!("collected_{name}"), value);
    }
    Ok(outputs)
}

fn reduce(reducer: Reducer, values: Vec<Value>) -> Result<Value, String> {
    if reducer == Reducer::Append {
        return Ok(Value::Array(values));
    }
    let numbers: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
    let numbers = numbers.ok_or("a value is no number")?;
    let whole: Option<Vec<i64>> = values.iter().map(Value::as_i64).collect();
    let extreme = |take_new: fn(f64, f64) -> bool| {
        let mut best: Option<(f64, &Value)> = None;
        for (number, value) in numbers.iter().zip(&values) {
            if best.is_none_or(|(known, _)| take_new(*number, known)) {
                best = Some((*number, value));
            }
        }
        best.map(|(_, value)| value.clone()).ok_or_else(|| "there is no value".to_owned())
    };
    match reducer {
        Reducer::Max => extreme(|new, known| new > known),
        Reducer::Min => extreme(|new, known| new < known),
        Reducer::Average if numbers.is_empty() => Err("there is no value".to_owned()),
        #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
        Reducer::Average => Ok((numbers.iter().sum::<f64>() / numbers.len() as f64).into()),
        Reducer::Sum | Reducer::Append => {
            let exact = whole.and_then(|whole| whole.into_iter().try_fold(0_i64, i64::checked_add));
            Ok(exact.map_or_else(|| numbers.iter().sum::<f64>().into(), Value::from))
        }
    }
}
