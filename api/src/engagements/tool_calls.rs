//! `GET /engagements/{id}/tool-calls`: the tool journal, oldest first.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Segment;
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};

pub(crate) async fn tool_calls(State(app): State<Shared>, Segment(id): Segment) -> Answer {
    let (engagement, _, _) = super::find(&app, &id).await?;
    let calls = app.api.store.views.tool_calls(&engagement.id).await?;
    let calls: Vec<Value> = calls.iter().map(show::tool_call).collect();
    Ok(reply::ok(&json!({"tool_calls": calls})))
}
