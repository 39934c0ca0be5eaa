//! `GET /engagements/{id}/checkpoints?page=&per_page=&bodies=true`: the phases that are done, oldest first.

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_store::{CheckpointRow, Page};

/// The phases of an engagement that are done, oldest first.
#[utoipa::path(
    get, path = "/engagements/{id}/checkpoints", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The engagement."),
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
        ("bodies" = Option<bool>, Query, description = "With what each phase left for the later ones."),
    ),
    responses((status = 200, description = "The checkpoints.", body = rows::Checkpoints)),
)]
pub(crate) async fn checkpoints(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let (engagement, agent, _) = super::find(&app, &id, &tenant).await?;
    let with_bodies = matches!(params.text("bodies"), Some("true" | "1"));
    let (page, slice) = params.page()?;
    let one_more = Page { limit: slice.limit + 1, ..slice };
    let mut rows = app.api.store.views.checkpoints(&engagement.id, one_more).await?;
    let has_more = rows.len() > slice.limit as usize;
    rows.truncate(slice.limit as usize);
    let released = super::released(&app, &engagement, &agent).await?;
    let shown = |row: &CheckpointRow| show::checkpoint(row, with_bodies && row.checkpoint.turn <= released);
    let checkpoints: Vec<Value> = rows.iter().map(shown).collect();
    let pagination = json!({"page": page, "per_page": slice.limit, "has_more": has_more});
    Ok(reply::ok(&json!({"checkpoints": checkpoints, "pagination": pagination})))
}
