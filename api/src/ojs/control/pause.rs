//! `POST /ojs/v1/agents/{id}/pause`: no worker claims the job until it is resumed.

use super::request_fields::{refused, short, target};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_ojs::request;
use utoipa::ToSchema;

/// Why a job is paused.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"reason": "a person looks at it first"}))]
pub(super) struct Pause {
    /// Kept in the event `agent.paused`.
    #[serde(default, deserialize_with = "short::<_, 4096>")]
    reason: Option<String>,
}

/// The status of the agent.
#[derive(Serialize, ToSchema)]
pub(super) struct AgentControlStatus {
    /// `paused` or `running`.
    #[schema(example = "paused")]
    pub(super) state: &'static str,
    pub(super) job_id: String,
    /// The state of the job, which is independent of the agent's. An active job is given back after its current phase.
    #[schema(example = "available")]
    pub(super) job_state: &'static str,
}

/// Pauses an agent. An active job stops after its current phase and frees the slot.
#[utoipa::path(
    post, path = "/ojs/v1/agents/{id}/pause", operation_id = "pause_agent_job", tag = "agents", params(("id" = String, Path, description = "The job.")),
    security(("tenant" = ["operator"])),
    request_body = Option<Pause>,
    responses((status = 200, description = "It is paused.", body = AgentControlStatus)),
)]
pub(crate) async fn pause(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let Pause { reason } = request::read_if_any(&body)?;
    match app.api.store.control.pause(target(&app, &id, tenant).await?, reason).await? {
        Ok(state) => {
            Ok(reply::ok(&AgentControlStatus { state: "paused", job_id: id, job_state: state.as_str() }))
        }
        Err(refusal) => Err(refused(&id, &refusal)),
    }
}
