//! A2A 1.0: every registered agent, in any format, over JSON-RPC and server-sent events.
//!
//! A task is a job, and its context is the engagement. A message is an input into that engagement; the agent's answer
//! is the task's artifact.

mod card;
mod list;
mod message;
mod method;
mod rpc;
mod send;
mod task;
mod watch;

use crate::api::{App, Shared};
use crate::caller::Who;
use crate::reply::{self, Answer, Failure};
use crate::request::{Raw, RequestId, Segment};
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use turnstone_ojs::OjsError;
use turnstone_store::AgentRecord;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(directory)).routes(routes!(card::card)).routes(routes!(call))
}

/// An agent, and the address of its card.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct A2aAgent {
    name: String,
    url: String,
    card: String,
}

/// A request of JSON-RPC 2.0.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct A2aCall {
    /// 2.0.
    jsonrpc: String,
    /// A text or a number.
    id: Value,
    /// SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask or SubscribeToTask.
    method: String,
    params: Option<Value>,
}

/// The agents that A2A serves: all of them.
#[utoipa::path(
    get, path = "/a2a", tag = "a2a",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "The agents.", body = [A2aAgent])),
)]
async fn directory(State(app): State<Shared>) -> Answer {
    let agents = app.api.store.views.agents().await?;
    let listed = agents.iter().map(|agent| {
        let place = format!("/a2a/{}", agent.definition.name);
        json!({"name": agent.definition.name, "url": place, "card": format!("{place}{}", card::PLACE)})
    });
    Ok(reply::ok(&listed.collect::<Vec<_>>()))
}

/// A call of A2A 1.0 over JSON-RPC. Errors of the protocol are answers with `error` and the status 200.
#[utoipa::path(
    post, path = "/a2a/{agent}", tag = "a2a",
    security(("tenant" = ["submitter"])),
    params(
        ("agent" = String, Path, description = "The agent's name."),
        ("A2A-Version" = String, Header, description = "1.0; without it a client is taken to speak 0.3, which is refused."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the tasks."),
    ),
    request_body(content((A2aCall = "application/json"))),
    responses((status = 200, description = "What JSON-RPC answers, or a stream of such answers.", content(
        (serde_json::Value = "application/json"),
        (String = "text/event-stream"),
    ))),
)]
async fn call(
    State(app): State<Shared>,
    Segment(agent): Segment,
    who: Who,
    trace: RequestId,
    headers: HeaderMap,
    body: Result<Raw, Failure>,
) -> Answer {
    let registered = app.api.store.views.agent(&agent).await?.is_some();
    if !registered && !list::has_tasks(&app, &agent, &who.tenant).await? {
        return Err(OjsError::not_found("agent", &agent).into());
    }
    let peer_request = who.caller.peer_request(&who.tenant.principal, &headers)?;
    let from = method::Sender { agent: &agent, registered, who: &who, trace: &trace, peer_request };
    Ok(method::answer(&app, &from, &headers, &body?.0).await)
}

async fn agent_named(app: &App, name: &str) -> Result<AgentRecord, Failure> {
    let found = app.api.store.views.agent(name).await?;
    found.ok_or_else(|| OjsError::not_found("agent", name).into())
}
