//! `GET /engagements/{id}/audit`: the Engagement object as expressions see it (OAS-54 … OAS-65), every attempt with its tries
//! (RS-27), and the reviews, escalations among them.

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_domain::engagement::EngagementObject;
use turnstone_store::{Page, ReviewFilter};

/// At most this many reviews of one engagement are shown.
const REVIEWS: u32 = 1000;

/// The Engagement object as expressions see it, every attempt, and the reviews.
#[utoipa::path(
    get, path = "/engagements/{id}/audit", tag = "engagements",
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The audit.", body = rows::Audit, content_type = "application/json")),
)]
pub(crate) async fn audit(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let (engagement, agent, job_id) = super::find(&app, &id, &tenant).await?;
    let views = &app.api.store.views;
    let calls = views.tool_calls(&engagement.id).await?;
    let mut object = EngagementObject::begin(&engagement, &agent);
    object.replay(&calls);
    let filter = ReviewFilter { engagement: Some(engagement.id.clone()), ..ReviewFilter::default() };
    let reviews = views.reviews(&filter, Page { limit: REVIEWS, offset: 0 }).await?;
    let reviews: Vec<Value> = reviews.iter().map(show::review).collect();
    let attempts: Vec<Value> = calls.iter().map(show::tool_call).collect();
    Ok(reply::ok(&json!({
        "engagement_id": engagement.id,
        "agent": engagement.agent,
        "job_id": job_id,
        "engagement": object.to_json(),
        "attempts": attempts,
        "reviews": reviews,
    })))
}
