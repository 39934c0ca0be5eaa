//! `GET /ids`: the ids that begin with some characters.

use crate::api::{Routes, Shared};
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::ids::IdPrefix;
use turnstone_ojs::OjsError;
use utoipa::ToSchema;
use utoipa_axum::routes;

/// The most ids of one answer.
const MOST: u32 = 10;

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(find_ids))
}

/// The kind of thing that an id names.
#[derive(Clone, Copy)]
enum IdKind {
    Job,
    Engagement,
}

impl IdKind {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "job" => Some(Self::Job),
            "engagement" => Some(Self::Engagement),
            _ => None,
        }
    }
}

/// Ids that begin alike.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct FoundIds {
    /// The lowest first, at most ten.
    pub ids: Vec<String>,
    /// True if more ids begin like this.
    pub has_more: bool,
}

/// Finds the ids of jobs or engagements by their first characters.
#[utoipa::path(
    get, path = "/ids", tag = "jobs",
    security(("tenant" = ["viewer"])),
    params(
        ("prefix" = String, Query, description = "The first characters, with their dashes.", example = "0190a7b2-1c"),
        ("kind" = Option<String>, Query, description = "job unless said otherwise; or engagement."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's."),
    ),
    responses(
        (status = 200, description = "The ids.", body = FoundIds),
        (status = 400, description = "No id begins like this.", body = docs::ErrorReply),
    ),
)]
async fn find_ids(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let kind = params.word("kind", IdKind::parse, "job, engagement")?.unwrap_or(IdKind::Job);
    let Some(prefix) = params.text("prefix").and_then(IdPrefix::parse) else {
        let why = "must be the first characters of an id, such as 0190a7b2-1c";
        return Err(OjsError::invalid_request("prefix", why).into());
    };
    let (views, tenant) = (&app.api.store.views, tenant.name());
    let mut ids: Vec<String> = match kind {
        IdKind::Job => {
            views.job_ids(&prefix, tenant, MOST + 1).await?.into_iter().map(|id| id.to_string()).collect()
        }
        IdKind::Engagement => {
            views.engagement_ids(&prefix, tenant, MOST + 1).await?.into_iter().map(|id| id.0).collect()
        }
    };
    let has_more = ids.len() > MOST as usize;
    // Jobs of several tenants may have the same id.
    ids.dedup();
    ids.truncate(MOST as usize);
    Ok(reply::ok(&FoundIds { ids, has_more }))
}
