//! `POST /ojs/v1/agents/{id}/fork`: a new job that continues from a turn of this one.

use super::request_fields::{refused, short, target};
use crate::api::Shared;
use crate::principals::work;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::principal::WorkKind;
use turnstone_domain::{EngagementId, JobId};
use turnstone_ojs::request;
use turnstone_ojs::request::between;
use turnstone_store::Fork;
use utoipa::ToSchema;

/// The fork point, and the name of the branch.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"at_turn": 2, "branch_name": "experiment-a"}))]
pub(super) struct JobForkRequest {
    /// The first turn of the branch's own; everything before it is inherited. 0 and 1 are the beginning. Left out: the
    /// current turn of the job.
    #[serde(default, deserialize_with = "between::<_, 0, { i64::MAX }>")]
    #[schema(minimum = 0)]
    at_turn: Option<i64>,
    /// Unique among the branches of the job.
    #[serde(default, deserialize_with = "short::<_, 255>")]
    branch_name: Option<String>,
}

/// The branch.
#[derive(Serialize, ToSchema)]
pub(super) struct Forked {
    /// The id of the new engagement, or of the new job when the job is not an agent's.
    branch_id: String,
    /// The new job.
    job_id: String,
    /// Lower-case hex SHA-256 of the inherited content: equal branches have equal ones.
    content_id: String,
    branch_name: Option<String>,
    /// The first turn of the branch's own.
    at_turn: i64,
    /// `running`, or `paused`: the copy of a job that is not an agent's waits to be resumed.
    #[schema(example = "running")]
    state: &'static str,
}

/// Forks an agent: a new job continues from a turn of this one, with everything before it. This one stays as it is.
#[utoipa::path(
    post, path = "/ojs/v1/agents/{id}/fork", operation_id = "fork_agent_job", tag = "agents", params(("id" = String, Path, description = "The job.")),
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    request_body = Option<JobForkRequest>,
    responses((status = 200, description = "The branch.", body = Forked)),
)]
pub(crate) async fn fork(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let JobForkRequest { at_turn, branch_name } = request::read_if_any(&body)?;
    let name = branch_name.filter(|name| !name.is_empty());
    let fork = Fork {
        at_turn,
        name: name.clone(),
        job: JobId(app.api.ids.next()),
        engagement: EngagementId(app.api.ids.next()),
    };
    work::check_job(&app, &JobId::from(id.as_str()), &tenant, WorkKind::Chosen).await?;
    match app.api.store.control.fork(target(&app, &id, tenant).await?, fork).await? {
        Ok(branch) => Ok(reply::ok(&Forked {
            branch_id: branch.id,
            job_id: branch.job.to_string(),
            content_id: branch.content,
            branch_name: name,
            at_turn: branch.at_turn,
            state: if branch.held { "paused" } else { "running" },
        })),
        Err(refusal) => Err(refused(&id, &refusal)),
    }
}
