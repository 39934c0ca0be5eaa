//! `POST /ojs/v1/agents/{id}/resume`: a paused job may be claimed again.

use super::pause::AgentControlStatus;
use super::request_fields::{refused, short, target};
use crate::api::Shared;
use crate::principals::work;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use serde::Deserialize;
use turnstone_domain::JobId;
use turnstone_domain::principal::WorkKind;
use turnstone_ojs::request;
use utoipa::ToSchema;

/// A person's decision; both members are kept in the event `agent.resumed`.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"approved": true, "comment": "checked"}))]
pub(super) struct Resume {
    approved: Option<bool>,
    #[serde(default, deserialize_with = "short::<_, 4096>")]
    comment: Option<String>,
}

/// Lets a paused agent continue where it stopped.
#[utoipa::path(
    post, path = "/ojs/v1/agents/{id}/resume", operation_id = "resume_agent_job", tag = "agents", params(("id" = String, Path, description = "The job.")),
    security(("tenant" = ["operator"])),
    request_body = Option<Resume>,
    responses((status = 200, description = "It is resumed.", body = AgentControlStatus)),
)]
pub(crate) async fn resume(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let Resume { approved, comment } = request::read_if_any(&body)?;
    work::check_job(&app, &JobId::from(id.as_str()), &tenant, WorkKind::Unchanged).await?;
    match app.api.store.control.resume(target(&app, &id, tenant).await?, approved, comment).await? {
        Ok(state) => {
            Ok(reply::ok(&AgentControlStatus { state: "running", job_id: id, job_state: state.as_str() }))
        }
        Err(refusal) => Err(refused(&id, &refusal)),
    }
}
