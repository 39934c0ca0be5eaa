//! `POST /ojs/v1/agents/{id}/tool-retry`: the next turn makes a call again.

use super::request_fields::{name, refused, short, target};
use crate::api::Shared;
use crate::principals::work;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use crate::reviews::check_submitter;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::principal::Role;
use turnstone_domain::principal::WorkKind;
use turnstone_domain::{CallId, JobId};
use turnstone_ojs::{OjsError, request};
use turnstone_store::ToolRetry;
use utoipa::ToSchema;

/// The call, and the conditions of the retry.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"tool_call_id": "tc-001", "error": "provider timeout", "use_alternate": true}))]
pub(super) struct ToolRetryRequest {
    #[serde(deserialize_with = "name")]
    tool_call_id: String,
    /// The problem; kept in the event `agent.tool_retried`.
    #[serde(default, deserialize_with = "short::<_, 4096>")]
    error: Option<String>,
    /// True to call the job's `ext_agent_v2.tool_retry.alternate_provider` instead: for an agent's job, another of its
    /// tools.
    use_alternate: Option<bool>,
    /// True to allow a second call of a tool that is not idempotent.
    approved: Option<bool>,
}

/// The call that will be made again.
#[derive(Serialize, ToSchema)]
pub(super) struct Reply {
    retried: bool,
    tool_call_id: String,
    /// The tool that is called; null when only the job's worker knows it.
    provider: Option<String>,
    /// The number of requested retries of this call.
    attempt: i64,
}

/// Lets the next turn make a call again, with the same idempotency key.
#[utoipa::path(
    post, path = "/ojs/v1/agents/{id}/tool-retry", tag = "agents", params(("id" = String, Path, description = "The job.")),
    security(("tenant" = ["operator"])),
    request_body = ToolRetryRequest,
    responses((status = 200, description = "It is going to be made again.", body = Reply)),
)]
pub(crate) async fn tool_retry(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let sent: ToolRetryRequest = request::read(&body)?;
    let call = sent.tool_call_id;
    let retry = ToolRetry {
        call: CallId(call.clone()),
        error: sent.error,
        use_alternate: sent.use_alternate.unwrap_or(false),
        approved: sent.approved.unwrap_or(false),
    };
    if retry.approved && !tenant.principal.has(Role::Approver) {
        let message =
            format!("`approved` needs the role approver, which {} does not have.", tenant.principal.name);
        let hint = "Let an approver send it, or answer the review about the call's unknown outcome.";
        return Err(OjsError::new(403, "forbidden", message, hint).with("role", "approver").into());
    }
    if retry.approved {
        let job = app.api.store.views.job_of(&JobId::from(id.as_str()), tenant.name()).await?;
        if let Some(job) = job {
            check_submitter(&app, &job.id, &tenant.principal).await?;
        }
    }
    work::check_job(&app, &JobId::from(id.as_str()), &tenant, WorkKind::Unchanged).await?;
    match app.api.store.control.retry_tool(target(&app, &id, tenant).await?, retry).await? {
        Ok(retried) => Ok(reply::ok(&Reply {
            retried: true,
            tool_call_id: call,
            provider: retried.provider,
            attempt: retried.attempt,
        })),
        Err(refusal) => Err(refused(&id, &refusal)),
    }
}
