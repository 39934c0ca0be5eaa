//! RESOL: finds the tools of this turn (OSSA §1.3).

mod binding;

use crate::flow::run::FlowRun;
use crate::flow::{self, Declared};
use crate::model::ToolOffer;
use crate::policy::tool_rules;
use crate::state::tools::{Bindings, Bound, Callable, ResolBody, ResolvedTool, ToolSource};
use crate::state::{Bodies, Claimed, Outbox, Stop, Turn, TurnHistory};
use crate::tool::Transport;
use binding::Catalogues;
use serde_json::json;
use std::sync::Arc;
use turnstone_domain::agent::delegation::Target;
use turnstone_domain::agent::{Capability, ToolChoice};
use turnstone_domain::event::{EventBody, MissingTool};
use turnstone_domain::{Phase, digest};

/// Runs RESOL: finds every tool that the agent declares, one per capability (RS-11). A tool that is
/// unavailable, or whose schema is invalid (RS-13), is omitted with a warning, and the turn continues without
/// it (RS-14).
///
/// # Errors
/// [`Stop::Fail`] when the request of a flow's node may not be sent by this worker.
pub async fn run(turn: &mut Turn) -> Result<(), Stop> {
    let Turn { past, bodies, outbox, flow } = turn;
    let agent = &outbox.claimed.agent;
    let is_bare = agent.capabilities.is_empty() && agent.toolsets.is_empty() && agent.output.schema.is_none();
    let (body, bindings) = match is_bare && past.fork.is_none() && flow.is_none() {
        true => Default::default(),
        false => Box::pin(find(past, outbox, flow.as_deref())).await?,
    };
    outbox.complete_phase(&body)?;
    bodies.resolved = Some(Arc::new(body));
    bodies.bindings = Some(Arc::new(bindings));
    Ok(())
}

/// Returns the record of the turn's tools, and the tools.
async fn find(
    past: &mut TurnHistory,
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
) -> Result<(ResolBody, Bindings), Stop> {
    let claimed = &outbox.claimed;
    prepare_output(claimed).await;
    let recorded = past.fork.as_mut().and_then(|fork| fork.resolved.take());
    let is_known = recorded.is_some();
    let (mut body, mut bindings) = recorded.unwrap_or_default();
    let declared = flow::declared(claimed, flow, outbox.secured()?).await?;
    let is_declared = |name: &str| declared.iter().any(|one| one.capability.name == name);
    let agent = &claimed.agent;
    if agent.tool_choice != ToolChoice::None && !is_known {
        let catalogues = Catalogues::ask(claimed, outbox.secured()?, |name| !is_declared(name)).await;
        for capability in agent.capabilities.iter().filter(|own| !is_declared(&own.name)) {
            let name = &capability.name;
            match delegate(claimed, capability).await {
                Some(Ok(record)) => {
                    body.tools.push(name.clone());
                    body.resolved.push(record);
                }
                Some(Err(why)) => body.unavailable.push((name.clone(), why)),
                None => {
                    let found = binding::bind(claimed, capability, &catalogues).await;
                    keep(name.clone(), found, &mut body, &mut bindings);
                }
            }
        }
        for (name, why) in catalogues.unread().filter(|(name, _)| agent.capability(name).is_none()) {
            body.unavailable.push((name, why.to_owned()));
        }
        let mut of_sets = Vec::new();
        for set in &agent.toolsets {
            of_sets.extend(binding::bind_all(claimed, set, &catalogues).await);
        }
        for (name, found) in of_sets {
            if found.is_err() || bindings.get(&name).is_none() {
                keep(name, found, &mut body, &mut bindings);
            }
        }
    }
    for Declared { capability, tool } in declared {
        let found = binding::declared(claimed, tool, &capability).await;
        keep(capability.name, found, &mut body, &mut bindings);
    }
    for (name, message) in &body.unavailable {
        outbox.event(&missing(name, message));
    }
    // Lists grow by room for four tools, and a turn keeps these while its model thinks.
    body.tools.shrink_to_fit();
    body.resolved.shrink_to_fit();
    Ok((body, bindings))
}

fn missing(name: &str, message: &str) -> EventBody {
    EventBody::ToolUnavailable(MissingTool { name: Some(name.to_owned()), message: Some(message.to_owned()) })
}

/// Compiles the schema of the answer. An unusable schema is refused when there is an answer.
async fn prepare_output(claimed: &Claimed) {
    if let Some(schema) = &claimed.agent.output.schema {
        let _ = claimed.deps.prepare(schema).await;
    }
}

/// Returns the record of a capability that is another agent; `None` for a tool.
async fn delegate(claimed: &Claimed, capability: &Capability) -> Option<Result<ResolvedTool, String>> {
    let Some(delegate) = claimed.delegate(&capability.name) else {
        let Target::Agent(wanted) = &capability.target else { return None };
        return Some(Err(format!("no agent `{}` is registered", wanted.agent)));
    };
    let offer = &delegate.offer;
    let record = || ResolvedTool {
        name: offer.name.clone(),
        source: ToolSource::Delegation { agent_id: delegate.agent.name.clone() },
        transport: Transport::Function,
        timeout_ms: delegate.terms.timeout_ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or_default(),
        retry_policy: None,
        digest: digest::of_json(&json!([offer.description, offer.input_schema])),
    };
    Some(claimed.deps.prepare(&offer.input_schema).await.map(|()| record()))
}

fn keep(name: String, found: Result<Bound, String>, body: &mut ResolBody, bindings: &mut Bindings) {
    match found {
        Ok(bound) => {
            body.tools.push(name.clone());
            body.resolved.push(bound.record.clone());
            bindings.insert(name, bound);
        }
        Err(why) => body.unavailable.push((name, why)),
    }
}

/// Returns true if RESOL of this turn ran in another process and its tools are still needed.
pub fn is_to_be_recalled(bodies: &Bodies, outbox: &Outbox) -> bool {
    bodies.bindings.is_none() && matches!(outbox.next_phase(), Some(Phase::Infer | Phase::Exec))
}

/// Finds the tools again for a turn whose RESOL ran in another process. A tool that is gone or differs from
/// its checkpoint is omitted with a warning, so the turn never offers more than before.
///
/// # Errors
/// When the checkpoint cannot be read.
pub async fn recall(turn: &mut Turn) -> Result<(), Stop> {
    let Turn { bodies, outbox, flow, .. } = turn;
    let claimed = &outbox.claimed;
    prepare_output(claimed).await;
    let body = bodies.resolved()?;
    let agent = Arc::clone(&claimed.agent);
    let declared = flow::declared(claimed, flow.as_deref(), outbox.secured()?).await?;
    let of_document = |name: &str| declared.iter().find(|one| one.capability.name == name);
    let wanted = |name: &str| body.tools.iter().any(|known| known == name) && of_document(name).is_none();
    let catalogues = Catalogues::ask(claimed, outbox.secured()?, wanted).await;
    let mut bindings = Bindings::default();
    for name in &body.tools {
        let claimed = &outbox.claimed;
        if claimed.delegate(name).is_some() {
            continue;
        }
        let own =
            of_document(name).map(|one| one.capability.clone()).or_else(|| agent.capability(name).cloned());
        let of_set =
            || agent.toolsets.iter().find(|set| set.covers(name)).map(|set| set.capability(name.clone()));
        let Some(capability) = own.or_else(of_set) else { continue };
        let found = match of_document(name) {
            Some(one) => binding::declared(claimed, Arc::clone(&one.tool), &capability).await,
            None => binding::bind(claimed, &capability, &catalogues).await,
        };
        let found = found.and_then(|bound| {
            let recorded = body.resolved.iter().find(|record| record.name == *name);
            match recorded.is_none_or(|recorded| recorded.digest == bound.record.digest) {
                true => Ok(bound),
                false => Err("its description or schema changed while the turn was interrupted".to_owned()),
            }
        });
        match found {
            Ok(bound) => bindings.insert(name.clone(), bound),
            Err(message) => {
                outbox.event(&missing(name, &message));
            }
        }
    }
    bodies.bindings = Some(Arc::new(bindings));
    Ok(())
}

/// Returns a tool as it is described to the model: the agent's texts override those of the registry.
#[must_use]
pub fn offer(claimed: &Claimed, bodies: &Bodies, name: &str) -> Option<ToolOffer> {
    if let Some(delegate) = claimed.delegate(name) {
        return Some(delegate.offer.clone());
    }
    let bound = bodies.bindings.as_ref()?.get(name)?;
    Some(binding::offer(&*bound.tool, bound.capability(&claimed.agent, name)?))
}

/// Returns the rules for the calls of a tool: the agent's own, or those for all tools of its server, with those of the
/// configuration. A tool that is not available now keeps them.
#[must_use]
pub fn capability(claimed: &Claimed, bodies: &Bodies, name: &str) -> Option<Capability> {
    let found = bodies.bindings.as_ref().and_then(|bindings| bindings.get(name));
    match found {
        Some(bound) => bound.capability(&claimed.agent, name).cloned(),
        None => {
            let own = claimed.agent.capability(name).cloned();
            let of_set =
                || claimed.agent.toolsets.iter().find(|set| set.covers(name)).map(|set| set.capability(name));
            let own = own.or_else(of_set)?;
            Some(tool_rules::added(&claimed.deps.toolbox, &own).unwrap_or(own))
        }
    }
}

/// Returns a tool of this turn, and the agent's rules for its calls.
#[must_use]
pub fn callable(claimed: &Claimed, bodies: &Bodies, name: &str) -> Option<Callable> {
    let bound = bodies.bindings.as_ref()?.get(name)?;
    let capability = bound.capability(&claimed.agent, name)?.clone();
    Some(Callable { tool: Arc::clone(&bound.tool), capability })
}
