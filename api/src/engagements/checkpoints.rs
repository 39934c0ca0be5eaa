//! `GET /engagements/{id}/checkpoints?page=&per_page=&bodies=true`: the phases that are done, oldest first.

use super::visible::Visible;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use turnstone_domain::record::RecordGap;
use turnstone_domain::{Phase, checkpoint};
use turnstone_store::{CheckpointRow, Page};
use utoipa::ToSchema;

/// A phase that is done.
#[derive(Serialize, ToSchema)]
#[schema(as = EngagementCheckpoint)]
struct Checkpoint {
    job_id: String,
    turn: i64,
    #[schema(example = "infer")]
    phase: &'static str,
    version: i64,
    /// The data for later phases; on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    duration_ms: i64,
    tokens_in: i64,
    tokens_out: i64,
    at: String,
    /// The prompt tokens that the provider had in its cache.
    tokens_cached: i64,
    /// Millionths of a currency.
    cost: i64,
    /// `provider/model`, when it called one.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

/// Checkpoints, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = EngagementCheckpoints)]
struct Checkpoints {
    checkpoints: Vec<Checkpoint>,
    /// The turns and phases that the whole record lacks, because the database lost them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<MissingPhase>,
    pagination: OpenEnd,
}

/// A turn that the record of an engagement lacks, or a phase of one.
#[derive(Serialize, ToSchema)]
struct MissingPhase {
    turn: i64,
    /// Absent if the whole turn is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "infer")]
    phase: Option<&'static str>,
}

impl From<RecordGap> for MissingPhase {
    fn from(gap: RecordGap) -> Self {
        Self { turn: gap.turn, phase: gap.phase.map(Phase::as_str) }
    }
}

/// The position of a page in a list that is not counted.
#[derive(Serialize, ToSchema)]
struct OpenEnd {
    page: u32,
    per_page: u32,
    has_more: bool,
}

impl Checkpoint {
    /// Returns a checkpoint. Its body may contain content that a restriction withholds, so it is shown only on request.
    fn of(with_body: bool, row: CheckpointRow) -> Self {
        let checkpoint::Checkpoint {
            turn,
            phase,
            version,
            body,
            duration_ms,
            tokens_in,
            tokens_out,
            at,
            spent,
        } = row.checkpoint;
        Self {
            job_id: row.job_id.to_string(),
            turn,
            phase: phase.as_str(),
            version,
            body: with_body.then_some(body),
            duration_ms,
            tokens_in,
            tokens_out,
            at: at.to_rfc3339(),
            tokens_cached: spent.tokens_cached,
            cost: spent.cost,
            model: spent.model,
        }
    }
}

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
    responses((status = 200, description = "The checkpoints.", body = Checkpoints)),
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
    let visible = Visible::of(&app, &engagement, &agent).await?;
    let with_body = |row: &CheckpointRow| with_bodies && visible.has(row.checkpoint.turn);
    let checkpoints = rows
        .into_iter()
        .map(|mut row| {
            visible.withhold_values(&mut row.checkpoint);
            Checkpoint::of(with_body(&row), row)
        })
        .collect();
    let pagination = OpenEnd { page, per_page: slice.limit, has_more };
    let missing = app.api.store.views.record_gaps(&engagement.id).await?;
    let missing = missing.into_iter().map(MissingPhase::from).collect();
    Ok(reply::ok(&Checkpoints { checkpoints, missing, pagination }))
}
