//! A parallel node whose flows run as jobs of their own, over the fleet. The job parks, and joins their outputs in order
//! when all have ended.

use super::machine::{Branch, joined};
use super::run::{FlowRun, NodeAnswer};
use crate::state::{Outbox, Stop, TurnHistory, trace};
use serde_json::{Value, json};
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{
    AgentDefinition, CallId, EngagementId, Identified, JobError, JobId, NewChild, RawJson, Wait,
};
use turnstone_store::Delegated;

/// The name of the call that the flows answer.
const FLOWS: &str = "flows";
/// The most flows of a node that run at one time.
const AT_ONCE: usize = 64;

/// INFER: the call that the flows answer.
pub fn plan(outbox: &Outbox, branches: &[Branch]) -> NodeAnswer {
    let arguments = json!({"flows": branches.len()});
    let call = RequestedCall { call_id: outbox.planned_call(FLOWS), name: FLOWS.to_owned(), arguments };
    NodeAnswer::of_call(call)
}

/// EXEC: begins the flows, waits for them, and returns their joined outputs as the outcome of the call.
///
/// # Errors
/// [`Stop::Park`] until all have ended. [`Stop::Fail`] before the first begins, when the tree has no room for all of them.
pub fn run(
    past: &TurnHistory,
    outbox: &Outbox,
    run: &FlowRun,
    requested: &RequestedCall,
) -> Result<ToolOutcome, Stop> {
    let node = run.node.as_ref().and_then(|node| Some((&node.node, node.branches.as_ref()?)));
    let Some((node, branches)) = node else {
        return Err(JobError::new(FailureKind::Internal, "the node has no flows of its own").into());
    };
    let call_of = |at: usize| CallId(format!("{}-{at}", requested.call_id.as_str()));
    let begun: Vec<Option<&Delegated>> = (0..branches.len())
        .map(|at| past.delegations.iter().rev().find(|done| done.call_id == call_of(at)))
        .collect();
    let is_first = begun.iter().all(Option::is_none);
    if is_first {
        run.room_for(&outbox.claimed, branches.len())?;
    }
    let open = begun.iter().flatten().filter(|done| done.state == DelegationState::Open).count();
    let missing = begun.iter().enumerate().filter(|(_, done)| done.is_none()).map(|(at, _)| at);
    let next: Vec<usize> = missing.take(AT_ONCE.saturating_sub(open)).collect();
    if open > 0 || !next.is_empty() {
        // The first one counts for all of them: those that follow always find room.
        let all = u32::try_from(branches.len()).unwrap_or(u32::MAX);
        let jobs = |at: usize| if is_first && at == 0 { all } else { 0 };
        let child =
            |at: usize| NewChild { jobs: jobs(at), ..child(outbox, run, (call_of(at), at), &branches[at]) };
        return Err(Wait::Children(next.into_iter().map(child).collect()).into());
    }
    let mut outputs = Vec::with_capacity(branches.len());
    let mut failed = None;
    for (branch, done) in branches.iter().zip(begun.into_iter().flatten()) {
        let result: Option<Value> = done.result.as_ref().and_then(|result| result.parse().ok());
        match result.as_ref().and_then(|result| result["outputs"].as_object()) {
            Some(map) if done.state == DelegationState::Success => outputs.push(map.clone()),
            _ => {
                failed.get_or_insert_with(|| why(branch, done));
            }
        }
    }
    let joined = match failed {
        Some(failed) => Err(failed),
        None => joined(node, outputs).map_err(|why| (FailureKind::Tool, why)),
    };
    Ok(match joined {
        Ok(outputs) => ToolOutcome::Success { output: outputs.into() },
        Err((kind, why)) => ToolOutcome::failed(kind, why),
    })
}

/// The reason why a flow has failed, with its kind.
fn why(branch: &Branch, done: &Delegated) -> (FailureKind, String) {
    let name = &branch.flow.head.name;
    match (&done.error, done.state) {
        (Some(error), _) => (error.kind, format!("the flow `{name}` failed: {}", error.message)),
        (None, DelegationState::Timeout) => {
            (FailureKind::Delegation, format!("the flow `{name}` took longer than it may"))
        }
        (None, _) => (FailureKind::Delegation, format!("the flow `{name}` was cancelled")),
    }
}

/// The job of a flow: the same document, of which it runs a part.
fn child(
    outbox: &Outbox,
    FlowRun { root, .. }: &FlowRun,
    (call_id, position): (CallId, usize),
    branch: &Branch,
) -> NewChild {
    let claimed = &outbox.claimed;
    let flow = root.flow.clone().map(|flow| flow.with_part(&branch.flow.head.id));
    let agent = AgentDefinition { flow, ..(**root).clone() };
    let mode = DelegationMode::Parallel;
    let span = trace::handoff(&agent.name, mode.as_str());
    NewChild {
        // A flow is begun once.
        job: JobId(outbox.id_of(Identified::ChildJob { call: &call_id, position, number: 0 })),
        engagement: EngagementId(outbox.id_of(Identified::ChildEngagement {
            call: &call_id,
            position,
            number: 0,
        })),
        agent: Box::new(agent.working_for(&claimed.agent)),
        call_id,
        turn: outbox.position.turn,
        mode,
        args: RawJson::of(&json!([branch.inputs])),
        meta: trace::child_meta(outbox, None, &root.name, &span),
        timeout_ms: None,
        jobs: 0,
        max_jobs_per_tree: claimed.fan_out.max_jobs_per_tree,
        review: None,
    }
}
