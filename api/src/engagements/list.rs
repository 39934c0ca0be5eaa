//! `GET /engagements?agent=&since=&limit=&cursor=`: engagements, newest first.

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_store::{EngagementFilter, ListedEngagement};

/// Lists engagements, newest first. A list that is continued with `next_cursor` shows each of them once, even when
/// others begin meanwhile.
#[utoipa::path(
    get, path = "/engagements", operation_id = "list_engagements", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("agent" = Option<String>, Query, description = "Of this agent."),
        ("since" = Option<String>, Query, description = "Begun then or later; a time with a zone.", example = "2026-01-31T12:00:00Z"),
        ("limit" = Option<u32>, Query, description = "50 unless said otherwise, at most 200.", minimum = 1, maximum = 200),
        ("cursor" = Option<i64>, Query, description = "`next_cursor` of the part before.", minimum = 0),
    ),
    responses((status = 200, description = "The engagements.", body = rows::EngagementPage)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let after = match params.text("cursor") {
        Some(_) => Some(params.number("cursor", 0_i64, 0, i64::MAX)?),
        None => None,
    };
    let filter = EngagementFilter {
        agent: params.text("agent").map(str::to_owned),
        since: params.time("since")?,
        tenant: tenant.into_name(),
        after,
    };
    let limit: u32 = params.number("limit", 50, 1, 200)?;
    let mut found = app.api.store.views.engagements(&filter, limit + 1).await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| has_more).map(|last| last.position.to_string());
    let items: Vec<Value> = found.iter().map(shown).collect();
    Ok(reply::ok(&json!({"items": items, "pagination": {"has_more": has_more, "next_cursor": next}})))
}

fn shown(listed: &ListedEngagement) -> Value {
    let engagement = &listed.engagement;
    json!({
        "engagement_id": engagement.id,
        "agent": engagement.agent,
        "user": engagement.user,
        "started_at": engagement.started_at.to_rfc3339(),
        "turns": engagement.turns,
        "job_id": listed.job_id,
        "job_state": listed.job_state.as_str(),
    })
}
