//! `GET /engagements/{id}/tool-calls`: the tool journal, oldest first.

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};

/// The tool journal of an engagement, oldest call first.
#[utoipa::path(
    get, path = "/engagements/{id}/tool-calls", tag = "engagements",
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The calls.", body = rows::ToolCalls, content_type = "application/json")),
)]
pub(crate) async fn tool_calls(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let (engagement, agent, _) = super::find(&app, &id, &tenant).await?;
    let calls = app.api.store.views.tool_calls(&engagement.id).await?;
    let released = super::released(&app, &engagement, &agent).await?;
    let calls: Vec<Value> = calls.iter().filter(|call| call.turn <= released).map(show::tool_call).collect();
    Ok(reply::ok(&json!({"tool_calls": calls})))
}
