//! `POST /engagements/{id}`: a further input of its user (facts: OpenAgentSpec server endpoints).

use super::answer::{AnswerTo, Answered, Given, IDEMPOTENCY_KEY, answer, asked, key_of};
use super::find;
use super::further::{Further, say};
use crate::agents::engage::{InputBody, again, idempotency_key, named_id, see, see_with};
use crate::agents::input::{Input, check_json};
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{Answer, Failure};
use crate::request::{JsonBytes, Params, RequestId, Segment, Tenant};
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use turnstone_domain::terms::Continues;
use turnstone_domain::{JobId, RawJson, RawObject};
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// An input that was taken.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Sent {
    engagement_id: String,
    location: String,
    /// The job that carries it; absent when the same request was sent before.
    job_id: Option<String>,
    /// `pending` while what was said before is worked on, else `available`.
    state: Option<String>,
}

/// Says something more to an agent. It is worked on when what was said before is answered, and what was said before is
/// remembered. While the agent waits for one answer of its user, it is that answer.
#[utoipa::path(
    post, path = "/engagements/{id}", tag = "engagements",
    params(
        ("id" = String, Path, description = "The engagement."),
        ("reopen" = Option<bool>, Query, description = "An engagement that has ended goes on with it."),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key for the same engagement is the same input, or the same answer."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Whose engagement it is."),
    ),
    request_body(description = "A text, or an object with the text as `input`.", content(
        (InputBody = "application/json"),
    )),
    responses(
        (status = 303, description = "It is taken; Location is the engagement's state.", body = Sent, content_type = "application/json"),
        (status = 403, description = "The engagement is another user's.", body = docs::ErrorReply, content_type = "application/json"),
        (status = 409, description = "The engagement has ended, or waits for a review.", body = docs::ErrorReply, content_type = "application/json"),
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
    let input = Input::read(&body?)?;
    let key = idempotency_key(&headers)?;
    let job = key.as_ref().map(|key| JobId(named_id(&["send", &id, key, tenant.name().unwrap_or_default()])));
    let args = RawJson::of(&json!([input.text]));
    if let Some(job) = &job
        && app.api.store.views.job(job).await?.is_some()
    {
        // The same request again: what it said is said.
        return again(&app, job, &args, None).await;
    }
    if let Some(taken) = answered(&app, &id, &tenant, &input, key.as_deref()).await? {
        if taken.repeated {
            return Ok(see(&taken.engagement));
        }
        return Ok(see_with(&taken.engagement, json!({"job_id": taken.job, "state": "available"})));
    }
    let mut sent = RawObject::new();
    sent.insert("meta", input.metadata);
    request.keep(&mut sent);
    let metadata = sent.remove("meta").and_then(|meta| meta.parse().ok()).unwrap_or_default();
    let continues = if reopen { Continues::Always } else { Continues::WhileOpen };
    let settings = RawObject::new();
    let said = Further { job: job.clone(), args: args.clone(), metadata, settings, continues };
    let taken = match (say(&app, &id, &tenant, said).await, &job) {
        // The same request at the same time.
        (Err(Failure(error)), Some(job)) if error.code == "duplicate" => {
            return again(&app, job, &args, None).await;
        }
        (taken, _) => taken?,
    };
    Ok(see_with(&taken.engagement, json!({"job_id": taken.job, "state": taken.state})))
}

/// A text is the answer to the one question that the engagement waits with, unless its key gave an answer before: then it is
/// that one.
async fn answered(
    app: &App,
    id: &str,
    tenant: &Tenant,
    input: &Input,
    key: Option<&str>,
) -> Result<Option<Answered>, Failure> {
    let (engagement, _, job) = find(app, id, tenant).await?;
    let Some(job) = app.api.store.views.job(&job).await? else { return Ok(None) };
    // Before it is looked for the key: what was answered meanwhile has left its key.
    let asked = asked(app, &engagement.id, &job).await?;
    let key = key.map(|key| key_of(IDEMPOTENCY_KEY, key));
    if let Some(key) = &key
        && let Some(given) = app.api.store.questions.answer_given(&engagement.id, key).await?
    {
        if given.values.values().any(|value| *value != input.text.as_str()) {
            return Err(OjsError::conflict("This Idempotency-Key was used for another answer.").into());
        }
        let taken = Answered { engagement: engagement.id, job: given.job, call: given.call, repeated: true };
        return Ok(Some(taken));
    }
    let Some(asked) = asked else { return Ok(None) };
    let Some(asks_for) = asked.question.only_key() else {
        let message = format!("Engagement {id} waits for several answers.");
        let hint = "POST /engagements/{id}/answer with a value for each key of `awaiting.request_keys`.";
        return Err(OjsError::new(409, "conflict", message, hint).into());
    };
    let user = input.metadata.given("user").and_then(|user| user.parse::<Value>().ok());
    let by = user.and_then(|user| Some(user["id"].as_str()?.to_owned()));
    let values = [(asks_for.to_owned(), input.text.as_str().into())].into_iter().collect();
    let given = Given { values, call: Some(asked.call_id), key, by, message: None };
    answer(app, AnswerTo::Engagement(id), tenant, given).await.map(Some)
}

fn flag(word: &str) -> Option<bool> {
    match word {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}
