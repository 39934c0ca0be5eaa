//! `GET /engagements/{id}/messages?after=&limit=`: the conversation, oldest first.

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};
use std::collections::HashSet;
use turnstone_domain::CallId;
use turnstone_domain::message::{Role, StoredMessage};

/// Replaces a tool's output that is withheld (OAS-24, OAS-35).
const WITHHELD: &str = "(withheld)";

/// The conversation of an engagement, oldest message first.
#[utoipa::path(
    get, path = "/engagements/{id}/messages", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The engagement."),
        ("after" = Option<i64>, Query, description = "Only messages after this one, by `seq`.", minimum = 0),
        ("limit" = Option<u32>, Query, description = "100 unless said otherwise.", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The messages.", body = rows::Messages)),
)]
pub(crate) async fn messages(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let (engagement, agent, _) = super::find(&app, &id, &tenant).await?;
    let after: i64 = params.number("after", 0, 0, i64::MAX)?;
    let limit: u32 = params.number("limit", 100, 1, 1000)?;
    let views = &app.api.store.views;
    let mut messages = views.messages(&engagement.id, after, limit + 1).await?;
    let has_more = messages.len() > limit as usize;
    messages.truncate(limit as usize);
    if messages.iter().any(|stored| stored.message.role == Role::Tool) {
        withhold(&mut messages, &views.withheld_calls(&engagement.id).await?);
    }
    let cursor = messages.last().map_or(after, |stored| stored.seq);
    let released = super::released(&app, &engagement, &agent).await?;
    // The user's messages; the caller of a guarded agent's delegate is a model.
    let by_user = |role: Role| role == Role::User && !agent.guardrails.for_guarded;
    messages.retain(|stored| stored.turn <= released || by_user(stored.message.role));
    // Messages between agents of a team are no part of the conversation with the user.
    messages.retain(|stored| stored.message.thread.is_none());
    let messages: Vec<Value> = messages.iter().map(show::message).collect();
    Ok(reply::ok(&json!({"messages": messages, "cursor": cursor, "has_more": has_more})))
}

/// Withholds outputs: the model has read them, and no one outside may.
fn withhold(messages: &mut [StoredMessage], calls: &[CallId]) {
    let withheld: HashSet<&CallId> = calls.iter().collect();
    for stored in messages {
        if stored.message.call_id.as_ref().is_some_and(|call| withheld.contains(call)) {
            stored.message.content = WITHHELD.to_owned();
        }
    }
}
