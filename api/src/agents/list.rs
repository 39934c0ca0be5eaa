//! `GET /agents`: name, description and address of every registered agent.

use crate::api::Shared;
use crate::caller::Caller;
use crate::reply::{self, Answer};
use axum::extract::State;
use serde_json::Value;

/// Lists the registered agents. Another server sees those that it may use.
#[utoipa::path(
    get, path = "/agents", operation_id = "list_agents", tag = "agents",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "Every registered agent, by name.", body = [super::ListedAgent])),
)]
pub(crate) async fn list(State(app): State<Shared>, caller: Caller) -> Answer {
    let mut records = app.api.store.views.agents().await?;
    let peer = caller.peer().and_then(|name| app.api.options.keys.peer(name));
    if let Some(allowed) = peer.as_ref().and_then(|peer| peer.agents.as_ref()) {
        records.retain(|record| allowed.contains(&record.definition.name));
    }
    let items = records.iter().map(|record| {
        let mut item = super::summary(&record.definition);
        item["updated_at"] = record.updated_at.to_rfc3339().into();
        item
    });
    Ok(reply::ok(&Value::Array(items.collect())))
}
