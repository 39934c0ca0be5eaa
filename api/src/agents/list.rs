//! `GET /agents`: name, description and address of every registered agent.

use crate::api::Shared;
use crate::reply::{self, Answer};
use axum::extract::State;
use serde_json::Value;

/// Lists the registered agents.
#[utoipa::path(
    get, path = "/agents", operation_id = "list_agents", tag = "agents",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "Every registered agent, by name.", body = [super::ListedAgent], content_type = "application/json")),
)]
pub(crate) async fn list(State(app): State<Shared>) -> Answer {
    let records = app.api.store.views.agents().await?;
    let items = records.iter().map(|record| {
        let mut item = super::summary(&record.definition);
        item["updated_at"] = record.updated_at.to_rfc3339().into();
        item
    });
    Ok(reply::ok(&Value::Array(items.collect())))
}
