//! `GET /engagements/{id}/tool-calls?after=&limit=`: the tool journal, oldest first.

use super::visible::Visible;
use crate::api::Shared;
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Segment, Tenant};
use crate::rows;
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::EngagementId;
use turnstone_domain::tool_call::ToolCall;
use turnstone_store::{Page, Views};
use utoipa::ToSchema;

/// Calls, oldest first.
#[derive(Serialize, ToSchema)]
struct ToolCalls {
    tool_calls: Vec<rows::ToolCall>,
    /// To be sent as `after` for the next page.
    cursor: u32,
    has_more: bool,
}

/// A part of a journal, and where the next one begins.
pub(super) struct JournalPage {
    pub(super) calls: Vec<ToolCall>,
    pub(super) cursor: u32,
    pub(super) has_more: bool,
}

impl JournalPage {
    /// Returns the part that the query asks for.
    pub(super) async fn asked(views: &Views, id: &EngagementId, params: &Params) -> Result<Self, Failure> {
        let after: u32 = params.number("after", 0, 0, u32::MAX)?;
        let limit: u32 = params.number("limit", 100, 1, 200)?;
        let mut calls = views.tool_calls_page(id, Page { limit: limit + 1, offset: after }).await?;
        let has_more = calls.len() > limit as usize;
        calls.truncate(limit as usize);
        let cursor = after.saturating_add(u32::try_from(calls.len()).unwrap_or(u32::MAX));
        Ok(Self { calls, cursor, has_more })
    }
}

/// The tool journal of an engagement, oldest call first.
#[utoipa::path(
    get, path = "/engagements/{id}/tool-calls", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The engagement."),
        ("after" = Option<u32>, Query, description = "The `cursor` of the page before.", minimum = 0),
        ("limit" = Option<u32>, Query, description = "100 unless said otherwise.", minimum = 1, maximum = 200),
    ),
    responses((status = 200, description = "The calls.", body = ToolCalls)),
)]
pub(crate) async fn tool_calls(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let (engagement, agent, _) = super::find(&app, &id, &tenant).await?;
    let part = JournalPage::asked(&app.api.store.views, &engagement.id, &params).await?;
    let visible = Visible::of(&app, &engagement, &agent).await?;
    let calls = part.calls.into_iter().filter(|call| visible.has(call.turn)).map(|mut call| {
        visible.withhold_call(&mut call);
        rows::ToolCall::from(call)
    });
    let tool_calls = calls.collect();
    Ok(reply::ok(&ToolCalls { tool_calls, cursor: part.cursor, has_more: part.has_more }))
}
