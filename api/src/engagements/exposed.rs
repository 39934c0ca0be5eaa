//! The values that an agent exposes of the Engagement object (OAS-47, OAS-55).

use super::object;
use super::state::StateWarning;
use crate::api::App;
use crate::reply::Failure;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use turnstone_blocking::wait_in_place;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::delegation::Target;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::policy::{Expression, PolicyError};

/// How long all expressions of an agent may take together, beside the limit that each of them has.
const PATIENCE: Duration = Duration::from_secs(5);

/// The exposed values, and why some of them are null.
#[derive(Default)]
pub(super) struct Exposed {
    pub(super) values: Map<String, Value>,
    pub(super) warnings: Vec<StateWarning>,
}

/// Returns the values that the agent of an engagement exposes now.
///
/// # Errors
/// The error of the store.
pub(crate) async fn now(app: &App, engagement: &Engagement) -> Result<Value, Failure> {
    let Some((_, agent, _)) = app.api.store.views.engagement(&engagement.id).await? else {
        return Ok(json!({}));
    };
    Ok(Value::Object(of(app, engagement, &agent).await?.values))
}

/// Evaluates what this agent exposes; a value that cannot be had is null and has a warning (OAS-A12).
///
/// # Errors
/// The error of the store.
pub(super) async fn of(
    app: &App,
    engagement: &Engagement,
    agent: &AgentDefinition,
) -> Result<Exposed, Failure> {
    if agent.exposes.is_empty() {
        return Ok(Exposed::default());
    }
    let Some(object) = object::of(&app.api.store.views, engagement, agent).await? else {
        return Ok(Exposed::default());
    };
    Ok(wait_in_place(|| {
        let names: Vec<&str> = agent.capabilities.iter().map(|capability| capability.name.as_str()).collect();
        // No guardrail has checked the arguments of calls and the answers of other agents (OAS-43).
        let is_tool = |name: &str| is_tool(app, agent, name);
        let object = if agent.guardrails.hold_back() { object.without_words(is_tool) } else { object };
        let mut exposed = Exposed::default();
        let began = Instant::now();
        for (key, source) in &agent.exposes {
            // An imported document may have any number of expressions, each of which may take long.
            let value = match began.elapsed() < PATIENCE {
                true => Expression::compile(source, &names)
                    .and_then(|expression| expression.evaluate(&object.view())),
                false => Err(PolicyError::GivenUp("those before it took 5 seconds")),
            };
            if let Err(why) = &value {
                exposed.warnings.push(StateWarning { key: key.clone(), message: why.to_string() });
            }
            let mut value = value.unwrap_or_default();
            agent.safety.redact(&mut value);
            exposed.values.insert(key.clone(), value);
        }
        exposed
    }))
}

/// Returns true if the output of a capability is known to come from a tool, not from an agent.
pub(super) fn is_tool(app: &App, agent: &AgentDefinition, name: &str) -> bool {
    let of_server = |server: &String| name.strip_prefix(server).is_some_and(|rest| rest.starts_with('.'));
    agent.capability(name).is_some_and(|capability| {
        capability.target == Target::Named
            && (capability.origin.is_some()
                || app.api.tools.iter().any(|tool| tool.name == name)
                || app.api.options.mcp_servers.iter().any(of_server))
    })
}
