//! The agent card (A2A 1.0 §8): a description of an agent and its addresses.

use crate::api::{App, Shared};
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use serde_json::{Value, json};
use turnstone_domain::AgentDefinition;

/// Where the card is, below the agent.
pub(super) const PLACE: &str = "/.well-known/agent-card.json";

/// The agent's card.
#[utoipa::path(
    get, path = "/a2a/{agent}/.well-known/agent-card.json", tag = "a2a",
    security(("tenant" = ["viewer"])),
    params(("agent" = String, Path, description = "The agent's name.")),
    responses((status = 200, description = "The card.", body = serde_json::Value)),
)]
pub(super) async fn card(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    headers: HeaderMap,
) -> Answer {
    let agent = super::agent_named(&app, &name, &tenant).await?;
    Ok(reply::ok(&of(&app, &agent.definition, &headers)))
}

fn of(app: &App, agent: &AgentDefinition, headers: &HeaderMap) -> Value {
    let url = format!("{}/a2a/{}", origin(app, headers), agent.name);
    let described =
        if agent.description.is_empty() { agent.name.as_str() } else { agent.description.as_str() };
    let mut card = json!({
        "name": agent.name,
        "description": described,
        "version": agent.version.as_deref().unwrap_or("1.0.0"),
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
        "defaultInputModes": super::message::INPUT_MODES,
        "defaultOutputModes": super::message::OUTPUT_MODES,
        "skills": [{"id": agent.name, "name": agent.name, "description": described, "tags": [agent.format]}],
    });
    if !app.principals.is_keyless() {
        card["securitySchemes"] = json!({"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
        card["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
    }
    card
}

/// Returns the server's address as the client wrote it: cards have whole addresses, and only the client knows its route
/// to the server.
pub(super) fn origin(app: &App, headers: &HeaderMap) -> String {
    let named = headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    let host = named.unwrap_or_else(|| app.api.options.bind.to_string());
    let scheme = if app.api.options.tls { "https" } else { "http" };
    format!("{scheme}://{host}")
}
