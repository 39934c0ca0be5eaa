//! `POST /agents/{name}`: begins an engagement and answers 303 to its state (OAS-72 … OAS-75).
//!
//! The input becomes an OJS job, which [`accept`] checks like any other. With an `Idempotency-Key` the id of the job is made
//! from the key. So a repeated request finds the job of the first one, even when both arrive at once.

use super::input::{Input, InputBody, check_accepted, check_json};
use crate::api::Shared;
use crate::caller::{Caller, PeerRequest};
use crate::ojs::jobs::accept::accept;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, RequestId, Segment, Tenant};
use axum::extract::State;
use axum::http::header::{HeaderValue, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use turnstone_domain::agent::MAX_DELEGATION_DEPTH;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{EngagementId, Job, JobError, NewJob, RawJson, RawObject};
use turnstone_ojs::OjsError;
use turnstone_store::StoreError;
use utoipa::ToSchema;

/// The OJS type of the jobs that carry the inputs of engagements.
pub(crate) const JOB_TYPE: &str = "agent.engagement";
/// The most characters of an idempotency key.
const KEY_CHARACTERS: usize = 255;

/// An engagement, and the address of its state.
#[derive(Serialize, ToSchema)]
pub(crate) struct Begun {
    pub(crate) engagement_id: String,
    pub(crate) location: String,
}

/// Begins an engagement with an agent.
#[utoipa::path(
    post, path = "/agents/{name}", tag = "agents",
    security(("tenant" = ["submitter"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated request with the same key for the same agent begins no second engagement, and gets the address of the first."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the engagement."),
    ),
    request_body(description = "A text, or an object with the text as `input`.", content = InputBody),
    responses(
        (status = 303, description = "The engagement has begun; Location is its state.", body = Begun),
    ),
)]
pub(crate) async fn engage(
    State(app): State<Shared>,
    Segment(name): Segment,
    caller: Caller,
    tenant: Tenant,
    request: RequestId,
    headers: HeaderMap,
    body: Result<JsonBytes, Failure>,
) -> Answer {
    check_json(&headers)?;
    check_accepted(&headers, &["application/json"])?;
    let peer_request = caller.peer_request(&tenant.principal, &headers)?;
    let Some(agent) = app.api.store.views.agent(&name, tenant.name()).await? else {
        return Err(OjsError::not_found("agent", &name).into());
    };
    let input = Input::read(&body?, agent.definition.flow.is_some())?;
    let mut fields = fields(&name, &input, peer_request.as_ref());
    let key = idempotency_key(&headers)?;
    let named = key.as_ref().map(|key| of_key(&name, key, &tenant, &caller));
    let names = app.names().await?;
    if let Some(named) = &named {
        fields.insert("id", names.id(named).as_str());
    }
    request.keep(&mut fields);
    let mut job = accept(&app, fields, &tenant, app.api.clock.now()).await.map_err(as_sent)?;
    if let Some(peer_request) = &peer_request {
        place(&mut job, peer_request)?;
    }
    let (id, began) = (job.id.clone(), job.engagement.as_ref().map(|new| new.id.clone()));
    let (args, meta) = (job.envelope.args.clone(), comparable(&job.envelope.meta));
    if let Some(named) = &named
        && let Some(before) = names.find(&app.api.store.views, named, tenant.name()).await?
    {
        return again(before, &args, Some(&meta));
    }
    match app.api.store.intake.push(vec![job]).await {
        Ok(_) => {}
        // A request with the same key was stored after the check above.
        Err(StoreError::DuplicateJob(_)) if named.is_some() => {
            let before = app.api.store.views.job(&id).await?;
            let before = before.ok_or_else(|| OjsError::not_found("job", id.shown()))?;
            return again(before, &args, Some(&meta));
        }
        Err(error) => return Err(error.into()),
    }
    let began = began.ok_or_else(|| OjsError::internal("The job has no engagement."))?;
    Ok(see(&began))
}

/// Renames `meta` to `metadata` in an error about the job's `meta`, because the client sent it under this name.
fn as_sent(failure: impl Into<Failure>) -> Failure {
    let mut error = failure.into().0;
    let field =
        error.details.get("field").and_then(|field| field.as_str()?.strip_prefix("meta.").map(str::to_owned));
    if let Some(field) = field {
        let (own, sent) = (format!("meta.{field}"), format!("metadata.{field}"));
        error.message = error.message.replacen(&own, &sent, 1);
        error.details.insert("field".to_owned(), sent.into());
        error.hint = "Correct the field that the message names and send the request again.";
    }
    Failure(error)
}

/// Returns the fields of an enqueue request. The path names the agent, not `metadata`.
fn fields(name: &str, input: &Input, peer_request: Option<&PeerRequest>) -> RawObject {
    let mut meta = input.metadata.clone();
    meta.insert("agent", name);
    if let Some(peer_request) = peer_request {
        meta.remove("user");
        if let Some(user) = &peer_request.user {
            meta.insert("user", json!({"id": user.id, "email": user.email}));
        }
    }
    let mut fields = RawObject::new();
    fields.insert("type", JOB_TYPE);
    fields.insert("args", input.args.clone());
    fields.insert("meta", meta);
    if let Some(limit) = peer_request.and_then(|peer_request| peer_request.token_budget) {
        fields.insert("ext_agent_token_budget", limit);
    }
    fields
}

/// Sets the depth of an engagement that another server asked for: its callers on other servers count as agents above it.
///
/// # Errors
/// [`FailureKind::DelegationDepth`] when it would be deeper than the agent permits.
pub(crate) fn place(job: &mut NewJob, peer_request: &PeerRequest) -> Result<(), Failure> {
    let Some(new) = &mut job.engagement else { return Ok(()) };
    let most = i64::from(new.agent.limits.max_delegation_depth.min(MAX_DELEGATION_DEPTH));
    if peer_request.depth > most {
        let message = format!(
            "the engagement would be at depth {}; agent `{}` permits at most depth {most}",
            peer_request.depth, new.agent.name
        );
        let error = JobError::new(FailureKind::DelegationDepth, message);
        return Err(OjsError::agent(error.with("depth", peer_request.depth).with("max_depth", most)).into());
    }
    new.depth = peer_request.depth;
    Ok(())
}

/// Returns the `Idempotency-Key` of a request, if it has one.
///
/// # Errors
/// 400 for a key that is empty, too long, or not of visible ASCII characters.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().unwrap_or_default().trim();
    if (1..=KEY_CHARACTERS).contains(&key.len()) {
        return Ok(Some(key.to_owned()));
    }
    let why = format!("must have 1 to {KEY_CHARACTERS} visible ASCII characters");
    Err(OjsError::invalid_request("the header Idempotency-Key", why).into())
}

/// Returns the name of a job for this key, agent, tenant and caller. Equal keys of different callers make different names.
pub(crate) fn of_key(agent: &str, key: &str, tenant: &Tenant, caller: &Caller) -> Value {
    named(&[agent, key, tenant.name().unwrap_or_default(), &format!("{caller:?}")])
}

/// Returns the name that consists of these parts; [`crate::names`] makes the id of it.
pub(crate) fn named(parts: &[&str]) -> Value {
    json!(["engage", parts])
}

/// Returns `meta` without the id of the request, which differs each time, so that two requests can be compared.
fn comparable(meta: &RawObject) -> RawObject {
    let mut comparable = meta.clone();
    comparable.remove("request_id");
    comparable
}

/// Returns the response to a repeated request: the address of the engagement that the first one began. `meta` is compared
/// too, if it is given, because it names the user for whom the engagement acts.
///
/// # Errors
/// 409 when the first request had another input or other metadata.
pub(crate) fn again(job: Job, args: &RawJson, meta: Option<&RawObject>) -> Answer {
    if job.envelope.args != *args || meta.is_some_and(|meta| comparable(&job.envelope.meta) != *meta) {
        let message = "This Idempotency-Key was used for another input, or with other metadata.";
        return Err(OjsError::conflict(message).into());
    }
    let agent = job.agent.ok_or_else(|| OjsError::internal("The job has no engagement."))?;
    Ok(see(&agent.engagement_id))
}

impl Begun {
    /// Returns an engagement and the relative address of its state (OAS-75, OAS-A16).
    pub(crate) fn of(id: &EngagementId) -> Self {
        Self { engagement_id: id.to_string(), location: format!("/engagements/{id}") }
    }
}

/// Returns a response 303 to the state of an engagement.
fn see(id: &EngagementId) -> Response {
    let begun = Begun::of(id);
    see_with(&begun.location, &begun)
}

/// Returns a response 303 to this address.
pub(crate) fn see_with(location: &str, body: &impl Serialize) -> Response {
    let mut response = reply::json(StatusCode::SEE_OTHER, body);
    response.headers_mut().extend(HeaderValue::from_str(location).ok().map(|value| (LOCATION, value)));
    response
}
