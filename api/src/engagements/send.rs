//! `POST /engagements/{id}`: a further input of its user (facts: OpenAgentSpec server endpoints).

use super::answer::IDEMPOTENCY_KEY;
use super::answering::{Taken, UserAnswer, give_if_asked, key_of};
use super::find;
use super::further::{Further, say};
use super::waiting::{Among, Waiting, waiting};
use crate::agents::engage::{Begun, again, idempotency_key, named, see_with};
use crate::agents::input::{Input, InputBody, check_json};
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{Answer, Failure};
use crate::request::{JsonBytes, Params, RequestId, Segment, Tenant};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::question::Said;
use turnstone_domain::terms::Continues;
use turnstone_domain::{EngagementId, Job, JobId, RawJson, RawObject};
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// An input that was taken.
#[derive(Serialize, ToSchema)]
pub(crate) struct Sent {
    engagement_id: String,
    location: String,
    /// The job that carries it; absent when the same request was sent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    /// `pending` while earlier inputs are processed, else `available`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

impl Sent {
    /// Returns the response to an input of an engagement, and to one that a job carries.
    fn answer(to: &EngagementId, carried: Option<(JobId, &'static str)>) -> Response {
        let Begun { engagement_id, location } = Begun::of(to);
        let (job_id, state) = carried.map(|(job, state)| (job.to_string(), state)).unzip();
        let sent = Self { engagement_id, location, job_id, state };
        see_with(&sent.location, &sent)
    }
}

/// Sends a further input to an agent. It is processed after the earlier inputs, and the agent remembers them. While the
/// agent waits for one answer of its user, the input is that answer.
#[utoipa::path(
    post, path = "/engagements/{id}", tag = "engagements",
    security(("tenant" = ["submitter"])),
    params(
        ("id" = String, Path, description = "The engagement."),
        ("reopen" = Option<bool>, Query, description = "An ended engagement continues with it."),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key for the same engagement is the same input, or the same answer."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the engagement."),
    ),
    request_body(description = "A text, or an object with the text as `input`.", content = InputBody),
    responses(
        (status = 303, description = "It is taken; Location is the engagement's state.", body = Sent),
        (status = 403, description = "The engagement is another user's.", body = docs::ErrorReply),
        (status = 409, description = "The engagement has ended, or waits for a review.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn send(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    request: RequestId,
    params: Params,
    headers: HeaderMap,
    body: Result<JsonBytes, Failure>,
) -> Answer {
    check_json(&headers)?;
    let reopen = params.word("reopen", flag, "true, false")?.unwrap_or(false);
    let input = Input::read(&body?, true)?;
    let key = idempotency_key(&headers)?;
    let named = key.as_ref().map(|key| named(&["send", &id, key, tenant.name().unwrap_or_default()]));
    let names = app.names().await?;
    let args = RawJson::of(&input.args);
    let (engagement, agent, latest) = find(&app, &id, &tenant).await?;
    if agent.flow.is_none() {
        input.check_text()?;
    }
    let latest = app.api.store.views.job(&latest).await?;
    let latest = latest.ok_or_else(|| OjsError::not_found("engagement", &id))?;
    // Read before the search for the same request: a question that the request caused is not answered by it.
    let asks = waiting(&app, &engagement, &latest, Among::Delegates).await?;
    if let Some(named) = &named
        && let Some(before) = names.find(&app.api.store.views, named, tenant.name()).await?
    {
        // A repeated request has no second effect.
        return again(before, &args, None);
    }
    let asks = asks.first().map_or("", Waiting::name);
    if let Some(taken) =
        answered(&app, (&engagement, &latest), &tenant, &input, (key.as_deref(), asks)).await?
    {
        let carried = (!taken.repeated).then_some((taken.job, "available"));
        return Ok(Sent::answer(&engagement.id, carried));
    }
    let mut sent = RawObject::new();
    sent.insert("meta", input.metadata);
    request.keep(&mut sent);
    let metadata = sent.remove("meta").and_then(|meta| meta.parse().ok()).unwrap_or_default();
    let continues = if reopen { Continues::Always } else { Continues::WhileOpen };
    let settings = RawObject::new();
    let job = named.as_ref().map(|named| names.id(named));
    let said = Further { job, args: args.clone(), metadata, settings, continues };
    let taken = match (say(&app, &id, &tenant, said).await, &named) {
        // The same request at the same time.
        (Err(Failure(error)), Some(named)) if error.code == "duplicate" => {
            let before =
                names.find(&app.api.store.views, named, tenant.name()).await?.ok_or(Failure(error))?;
            return again(before, &args, None);
        }
        (taken, _) => taken?,
    };
    Ok(Sent::answer(&taken.engagement, Some((taken.job, taken.state.as_str()))))
}

/// Answers the one question that the engagement waits with, or the one that the input's key answered before. An input
/// with a key belongs to the question that was displayed, or to none.
async fn answered(
    app: &App,
    (engagement, job): (&Engagement, &Job),
    tenant: &Tenant,
    input: &Input,
    (key, asks): (Option<&str>, &str),
) -> Result<Option<Taken>, Failure> {
    let user = input.metadata.given("user").and_then(|user| user.parse::<Value>().ok());
    let given = UserAnswer {
        said: match &input.args[0] {
            Value::Object(values) => Said::Values(values.clone()),
            _ => Said::Text(input.text.clone()),
        },
        call: key.map(|_| asks.into()),
        key: key.map(|key| key_of(IDEMPOTENCY_KEY, key)),
        by: user.and_then(|user| Some(user["id"].as_str()?.to_owned())),
        principal: Arc::clone(&tenant.principal),
        message: None,
    };
    give_if_asked(app, (engagement, job), tenant, &given, Among::Delegates).await
}

fn flag(word: &str) -> Option<bool> {
    match word {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}
