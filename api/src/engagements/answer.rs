//! `POST /engagements/{id}/answer`: the user's answer to the question that an engagement waits with.

use super::answering::{UserAnswer, give, key_of};
use super::find;
use super::waiting::Among;
use crate::agents::engage::idempotency_key;
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use turnstone_domain::question::Said;
use turnstone_domain::{CallId, RawObject};
use turnstone_ojs::{Fields, OjsError};
use utoipa::ToSchema;

/// The kind of a key from a header.
pub(crate) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// A value for each requested key.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"answers": {"city": "Oslo"}}))]
pub(crate) struct AnswerBody {
    /// The values; other keys are ignored.
    #[schema(value_type = Map<String, Value>)]
    answers: Option<RawObject>,
    /// The call that asked, as in `awaiting`; the answer then applies to no other question.
    call_id: Option<String>,
    /// The user of the engagement.
    by: Option<String>,
}

/// An answer that was accepted.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct AnswerTaken {
    engagement_id: String,
    job_id: String,
    call_id: String,
    /// True if the same answer was accepted before.
    pub repeated: bool,
}

/// Answers an agent's question to its user. The parked job continues; repeating the same answer changes nothing.
/// Without `call_id` and without a key, the answer goes to the last question displayed in `awaiting`.
#[utoipa::path(
    post, path = "/engagements/{id}/answer", tag = "engagements",
    security(("tenant" = ["submitter"])),
    params(
        ("id" = String, Path, description = "The engagement."),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key for the same engagement is the same answer."),
    ),
    request_body = AnswerBody,
    responses(
        (status = 200, description = "The answer counts.", body = AnswerTaken),
        (status = 403, description = "The engagement is another user's.", body = docs::ErrorReply),
        (status = 409, description = "It does not wait for an answer, or another one counted.", body = docs::ErrorReply),
        (status = 422, description = "A key has no value; it still waits.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn answer_question(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    headers: HeaderMap,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let fields = Fields::read(&body)?;
    if let Some(unknown) = fields.0.names().find(|name| !["answers", "call_id", "by"].contains(name)) {
        let why = "is not known here; an answer has `answers`, and `call_id` and `by` if need be";
        return Err(OjsError::invalid_request(unknown, why).into());
    }
    let missing = || OjsError::invalid_request("answers", "is missing: give a value for each key");
    let AnswerBody { answers, call_id, by } = fields.typed()?;
    let values = answers.ok_or_else(missing)?.parse().map_err(|(name, _)| {
        OjsError::invalid_request(&format!("answers.{name}"), "is not JSON that can be read")
    })?;
    let key = idempotency_key(&headers)?.map(|key| key_of(IDEMPOTENCY_KEY, &key));
    let given = UserAnswer {
        said: Said::Values(values),
        call: call_id.map(CallId),
        key,
        by,
        principal: Arc::clone(&tenant.principal),
        message: None,
    };
    let (engagement, _, job) = find(&app, &id, &tenant).await?;
    let job = app.api.store.views.job(&job).await?.ok_or_else(|| OjsError::not_found("engagement", &id))?;
    let taken = give(&app, (&engagement, &job), &tenant, &given, Among::Delegates).await?;
    Ok(reply::ok(&AnswerTaken {
        engagement_id: engagement.id.0,
        job_id: taken.job.to_string(),
        call_id: taken.question,
        repeated: taken.repeated,
    }))
}
