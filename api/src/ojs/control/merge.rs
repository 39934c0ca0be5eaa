//! `POST /ojs/v1/agents/{id}/merge`: two branches become a new one.

use super::request_fields::{name, refused, short, target};
use crate::api::Shared;
use crate::principals::work;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::principal::WorkKind;
use turnstone_domain::{EngagementId, JobId};
use turnstone_ojs::{OjsError, request};
use turnstone_store::{Merge, Strategy};
use utoipa::ToSchema;

/// Two branches of the job, and the branch whose turns are kept.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"branch_a": "experiment-a", "branch_b": "experiment-b", "strategy": "union"}))]
pub(super) struct MergeRequest {
    /// A branch's id or name, or the id of its job.
    #[serde(deserialize_with = "name")]
    branch_a: String,
    #[serde(deserialize_with = "name")]
    branch_b: String,
    /// `ours` (branch_a, the default), `theirs` (branch_b), or `union`: branch_a, then branch_b from the first turn in
    /// which they differ.
    #[serde(default, deserialize_with = "short::<_, 32>")]
    strategy: Option<String>,
}

/// The merged branch. It is paused: it spends nothing until it is resumed.
#[derive(Serialize, ToSchema)]
pub(super) struct Reply {
    merged_id: String,
    /// The new job.
    job_id: String,
    /// Lower-case hex SHA-256 of the inherited content.
    content_id: String,
    strategy: &'static str,
    #[schema(example = "paused")]
    state: &'static str,
    /// The turns that both have, and in which they differ.
    conflicts: Vec<Conflict>,
}

/// A turn that both branches have, and in which they differ.
#[derive(Serialize, ToSchema)]
pub(super) struct Conflict {
    turn: i64,
}

/// Merges two branches of one job into a new one.
#[utoipa::path(
    post, path = "/ojs/v1/agents/{id}/merge", tag = "agents", params(("id" = String, Path, description = "The job.")),
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    request_body = MergeRequest,
    responses((status = 200, description = "The merged branch.", body = Reply)),
)]
pub(crate) async fn merge(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let MergeRequest { branch_a, branch_b, strategy } = request::read(&body)?;
    let Some(strategy) = Strategy::parse(strategy.as_deref().unwrap_or("ours")) else {
        return Err(OjsError::invalid_request("strategy", "must be ours, theirs or union").into());
    };
    let merge = Merge {
        ours: branch_a,
        theirs: branch_b,
        strategy,
        job: JobId(app.api.ids.next()),
        engagement: EngagementId(app.api.ids.next()),
    };
    work::check_job(&app, &JobId::from(id.as_str()), &tenant, WorkKind::Chosen).await?;
    match app.api.store.control.merge(target(&app, &id, tenant).await?, merge).await? {
        Ok(merged) => Ok(reply::ok(&Reply {
            merged_id: merged.branch.id,
            job_id: merged.branch.job.to_string(),
            content_id: merged.branch.content,
            strategy: strategy.as_str(),
            state: "paused",
            conflicts: merged.conflicts.into_iter().map(|turn| Conflict { turn }).collect(),
        })),
        Err(refusal) => Err(refused(&id, &refusal)),
    }
}
