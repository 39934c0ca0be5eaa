//! `GET /agents`: name, description and address of every registered agent.

use super::{ListedAgent, address};
use crate::api::Shared;
use crate::caller::Caller;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;

/// Lists the registered agents that serve the tenant. Another server sees those of them that it may use.
#[utoipa::path(
    get, path = "/agents", operation_id = "list_agents", tag = "agents",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "The agents, by name.", body = [ListedAgent])),
)]
pub(crate) async fn list(State(app): State<Shared>, caller: Caller, tenant: Tenant) -> Answer {
    let mut records = app.api.store.views.agents(tenant.name()).await?;
    let peer = caller.peer().and_then(|name| app.api.options.keys.peer(name));
    if let Some(allowed) = peer.as_ref().and_then(|peer| peer.agents.as_ref()) {
        records.retain(|record| allowed.contains(&record.definition.name));
    }
    let items = records.into_iter().map(|record| {
        let tenants = record.tenants.map(|names| shown(names, tenant.name()));
        let agent = record.definition;
        let (url, path) = (address(&agent.name), address(&agent.name));
        let updated_at = record.updated_at.to_rfc3339();
        ListedAgent {
            name: agent.name,
            description: agent.description,
            url,
            path,
            format: agent.format.into(),
            updated_at,
            tenants,
        }
    });
    Ok(reply::ok(&items.collect::<Vec<_>>()))
}

/// Returns the tenants of an agent that a principal sees: a tenant sees no name of another one.
fn shown(names: Vec<String>, tenant: Option<&str>) -> Vec<String> {
    names.into_iter().filter(|name| tenant.is_none_or(|tenant| name == tenant)).collect()
}
