//! `GET /engagements/{id}/audit`: the Engagement object as expressions see it (OAS-54 … OAS-65), every attempt, and
//! the reviews.

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};
use std::collections::HashSet;
use turnstone_domain::engagement::EngagementObject;

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
    let mut reviews: Vec<Value> = Vec::new();
    let mut seen = HashSet::new();
    for review_id in calls.iter().filter_map(|call| call.review_id.as_ref()).filter(|id| seen.insert(*id)) {
        if let Some(review) = views.review(review_id).await? {
            reviews.push(show::review(&review));
        }
    }
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
