//! `GET /agents`: name, description and address of every registered agent.

use super::{ListedAgent, address};
use crate::api::Shared;
use crate::caller::Caller;
use crate::reply::{self, Answer};
use axum::extract::State;

/// Lists the registered agents. Another server sees those that it may use.
#[utoipa::path(
    get, path = "/agents", operation_id = "list_agents", tag = "agents",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "Every registered agent, by name.", body = [ListedAgent])),
)]
pub(crate) async fn list(State(app): State<Shared>, caller: Caller) -> Answer {
    let mut records = app.api.store.views.agents().await?;
    let peer = caller.peer().and_then(|name| app.api.options.keys.peer(name));
    if let Some(allowed) = peer.as_ref().and_then(|peer| peer.agents.as_ref()) {
        records.retain(|record| allowed.contains(&record.definition.name));
    }
    let items = records.into_iter().map(|record| {
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
        }
    });
    Ok(reply::ok(&items.collect::<Vec<_>>()))
}
