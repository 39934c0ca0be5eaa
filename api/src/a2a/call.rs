//! `POST /a2a/{agent}`: a call of JSON-RPC.

use super::rpc::A2aCall;
use super::{list, method};
use crate::api::Shared;
use crate::caller::Who;
use crate::reply::{Answer, Failure};
use crate::request::{Raw, RequestId, Segment};
use axum::extract::State;
use axum::http::HeaderMap;
use turnstone_ojs::OjsError;

/// A call of A2A 1.0 over JSON-RPC. Errors of the protocol are answers with `error` and the status 200.
#[utoipa::path(
    post, path = "/a2a/{agent}", tag = "a2a",
    security(("tenant" = ["submitter"])),
    params(
        ("agent" = String, Path, description = "The agent's name."),
        ("A2A-Version" = String, Header, description = "1.0; without it a client is taken to speak 0.3, which is refused."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the tasks."),
    ),
    request_body = A2aCall,
    responses((status = 200, description = "What JSON-RPC answers, or a stream of such answers.", content(
        (serde_json::Value = "application/json"),
        (String = "text/event-stream"),
    ))),
)]
pub(crate) async fn call(
    State(app): State<Shared>,
    Segment(agent): Segment,
    who: Who,
    trace: RequestId,
    headers: HeaderMap,
    body: Result<Raw, Failure>,
) -> Answer {
    let registered = app.api.store.views.agent(&agent, who.tenant.name()).await?.is_some();
    if !registered && !list::has_tasks(&app, &agent, &who.tenant).await? {
        return Err(OjsError::not_found("agent", &agent).into());
    }
    let peer_request = who.caller.peer_request(&who.tenant.principal, &headers)?;
    let from = method::Sender { agent: &agent, registered, who: &who, trace: &trace, peer_request };
    Ok(method::answer(&app, &from, &headers, &body?.0).await)
}
