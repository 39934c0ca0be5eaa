//! `GET /engagements?agent=&since=&limit=&cursor=`: engagements, newest first.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::JobState;
use turnstone_domain::engagement::User;
use turnstone_ojs::OpenValue;
use turnstone_store::{self as store, EngagementFilter};
use utoipa::ToSchema;

/// An engagement as listed.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ListedEngagement {
    /// Its id.
    pub engagement_id: String,
    /// Its agent.
    pub agent: String,
    /// `id` and `email`.
    #[schema(value_type = Value)]
    pub user: User,
    /// When it began.
    pub started_at: String,
    /// Turns that are complete.
    pub turns: i64,
    /// Its latest job.
    pub job_id: String,
    /// The state of this job.
    #[schema(value_type = String, example = "completed")]
    pub job_state: OpenValue<JobState>,
}

/// Engagements, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct EngagementPage {
    /// The newest first.
    pub items: Vec<ListedEngagement>,
    /// Where it continues.
    pub pagination: CursorEnd,
}

/// The position at which a list continues.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CursorEnd {
    has_more: bool,
    /// To be sent as `cursor`; null at the end.
    pub next_cursor: Option<String>,
}

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
    responses((status = 200, description = "The engagements.", body = EngagementPage)),
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
    let next_cursor = found.last().filter(|_| has_more).map(|last| last.position.to_string());
    let items = found.into_iter().map(ListedEngagement::from).collect();
    Ok(reply::ok(&EngagementPage { items, pagination: CursorEnd { has_more, next_cursor } }))
}

impl From<store::ListedEngagement> for ListedEngagement {
    fn from(listed: store::ListedEngagement) -> Self {
        let engagement = listed.engagement;
        Self {
            engagement_id: engagement.id.0,
            agent: engagement.agent,
            user: engagement.user,
            started_at: engagement.started_at.to_rfc3339(),
            turns: engagement.turns,
            job_id: listed.job_id.to_string(),
            job_state: listed.job_state.into(),
        }
    }
}
