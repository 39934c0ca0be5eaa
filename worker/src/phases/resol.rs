//! RESOL: which tools this turn has (OSSA §1.3).

use crate::model::ToolOffer;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::agent::ToolChoice;
use turnstone_domain::{EventName, Phase};

const VERSION: i64 = 1;
/// Versions of the body that this worker reads.
pub const VERSIONS: &[i64] = &[1];

/// What RESOL leaves: names only; what they mean is in the agent's definition and in the registry.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResolBody {
    /// Tools on offer, in the agent's order.
    pub tools: Vec<String>,
    /// Declared tools that this turn has not, and why.
    pub unavailable: Vec<(String, String)>,
}

/// Runs RESOL. A tool that the registry does not have, or whose schema is not one, is left out with a warning.
///
/// # Errors
/// None that a test could provoke; the signature is that of every phase.
pub fn run(turn: &mut Turn) -> Result<(), Stop> {
    let mut body = ResolBody { tools: Vec::new(), unavailable: Vec::new() };
    if turn.agent.tool_choice != ToolChoice::None {
        for capability in &turn.agent.capabilities {
            let name = capability.name.clone();
            match usable(turn, &name) {
                Ok(_) => body.tools.push(name),
                Err(why) => body.unavailable.push((name, why)),
            }
        }
    }
    for (name, message) in &body.unavailable {
        turn.event(EventName::ToolUnavailable, json!({"name": name, "message": message}));
    }
    turn.complete_phase(Phase::Resol, VERSION, &body, (0, 0), Value::Null)?;
    turn.resolved = Some(Arc::new(body));
    Ok(())
}

fn usable(turn: &Turn, name: &str) -> Result<ToolOffer, String> {
    let offer = offer(turn, name)
        .ok_or("there is no tool of this name on this worker, nor an agent; add it to [tools]")?;
    turn.deps.schema(&offer.input_schema).map(|_| offer)
}

/// A tool as the model is told about it: what the agent says of it goes before what the registry says.
#[must_use]
pub fn offer(turn: &Turn, name: &str) -> Option<ToolOffer> {
    let capability = turn.agent.capability(name)?;
    if let Some(deputy) = turn.deputy(name) {
        return Some(deputy.offer.clone());
    }
    let spec = turn.deps.toolbox.get(name)?.spec();
    Some(ToolOffer {
        name: name.to_owned(),
        description: capability.description.clone().unwrap_or_else(|| spec.description.clone()),
        input_schema: capability.input_schema.clone().unwrap_or_else(|| spec.input_schema.clone()),
    })
}
