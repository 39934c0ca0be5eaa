//! `POST /ojs/v1/workers/heartbeat` (OJS HTTP binding §5.7).

use super::shapes;
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, LeaseToken, Tenant};
use axum::extract::State;
use turnstone_domain::JobId;
use turnstone_ojs::work::BeatBody;
use turnstone_ojs::{OjsError, request};
use turnstone_store::{Directive, Heartbeat, HeartbeatOutcome, StoreError, WorkerState};

/// Renews the reservations of the named jobs, and returns the directive of the worker.
#[utoipa::path(
    post, path = "/ojs/v1/workers/heartbeat", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),),
    request_body = BeatBody,
    responses(
        (status = 200, description = "What the worker is to do.", body = shapes::Heard),
        (status = 409, description = "One of Turnstone's own workers has this name, or a lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn heartbeat(
    State(app): State<Shared>,
    tenant: Tenant,
    token: LeaseToken,
    JsonBytes(body): JsonBytes,
) -> Answer {
    Ok(reply::ok(&hear(&app, (tenant, token), &body).await?.0))
}

/// Records a heartbeat; returns the response, and the state that the worker reported.
pub(super) async fn hear(
    app: &App,
    (tenant, token): (Tenant, LeaseToken),
    body: &[u8],
) -> Result<(shapes::Heard, WorkerState), Failure> {
    let body: BeatBody = request::read(body)?;
    let tokens = body.tokens(token.or(body.ext_lease_token.clone())?)?;
    let (jobs, busy) = body.jobs();
    let state = |takes_jobs| if takes_jobs { WorkerState::Running } else { WorkerState::Draining };
    let at = app.api.clock.now();
    let beat = Heartbeat {
        worker: body.worker_id,
        jobs: jobs.into_iter().map(JobId).collect(),
        tokens,
        busy,
        state: body.takes_jobs.map(state),
        visibility_ms: body.visibility_timeout_ms,
        tenant: tenant.into_name(),
        at,
    };
    let answer = match app.api.store.remote.heartbeat(beat).await.map_err(refused)? {
        HeartbeatOutcome::Heard(answer) => answer,
        HeartbeatOutcome::Stale(jobs) => {
            let message = format!(
                "No reservation was renewed: the lease tokens of {} are those of earlier attempts, or of other jobs.",
                jobs.join(", ")
            );
            return Err(OjsError::stale_lease(message).with("job_ids", jobs).into());
        }
    };
    let directive = answer.directive.map_or("running", Directive::as_str);
    let jobs_extended = answer.extended.into_iter().map(|id| id.to_string()).collect();
    Ok((
        shapes::Heard { state: directive, directive, jobs_extended, server_time: at.to_rfc3339() },
        answer.state,
    ))
}

fn refused(error: StoreError) -> Failure {
    match error {
        StoreError::WorkerNameTaken { name, .. } => {
            let message =
                format!("One of Turnstone's own workers is called `{name}`; choose another worker_id.");
            OjsError::conflict(message).with("worker_id", name).into()
        }
        other => other.into(),
    }
}
