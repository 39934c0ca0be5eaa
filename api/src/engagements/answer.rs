//! `POST /engagements/{id}/answer`: what the user says to the question that an engagement waits with. The Agent Protocol's
//! `ResumeWithInput` comes the same way.

use super::find;
use crate::agents::engage::idempotency_key;
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Map, Value, json};
use turnstone_domain::question::{AskedUser, Question, Unanswered};
use turnstone_domain::{CallId, EngagementId, Job, JobId, JobState, digest};
use turnstone_ojs::{Fields, OjsError};
use turnstone_store::{AnswerOutcome, NewAnswer};
use utoipa::ToSchema;

/// The kind of a key that stands in a header.
pub(crate) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Whose question is answered.
#[derive(Clone, Copy)]
pub(crate) enum AnswerTo<'a> {
    /// That of the input which an engagement works on.
    Engagement(&'a str),
    /// That of one job.
    Job(&'a JobId),
}

/// What is answered.
#[derive(Clone)]
pub(crate) struct Given {
    /// A value for each key; others are ignored.
    pub(crate) values: Map<String, Value>,
    /// The call that asks. Without it, it is what counted last once more, and never the answer to what is asked by then.
    pub(crate) call: Option<CallId>,
    /// By what it is given, so that the same once more is known whatever is asked by then: see [`key_of`].
    pub(crate) key: Option<String>,
    /// Who answers, when it is said; the user of the engagement.
    pub(crate) by: Option<String>,
    /// What its sender calls it.
    pub(crate) message: Option<String>,
}

/// An answer that counts.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) engagement: EngagementId,
    pub(crate) job: JobId,
    pub(crate) call: CallId,
    /// Whether it counted already, and nothing changed.
    pub(crate) repeated: bool,
}

/// Answers a question: the answer is the outcome of the call that asked, and the job goes on. The same answer once more has
/// no second effect.
///
/// # Errors
/// 404 when there is no such engagement or job of this tenant; 403 when somebody else than its user answers; 422 that names
/// the missing keys, and it still waits; 409 when it does not wait, or another answer counted.
pub(crate) async fn answer(
    app: &App,
    to: AnswerTo<'_>,
    tenant: &Tenant,
    given: Given,
) -> Result<Answered, Failure> {
    let job = match to {
        AnswerTo::Engagement(id) => find(app, id, tenant).await?.2,
        AnswerTo::Job(id) => id.clone(),
    };
    let missing = || OjsError::not_found("job", job.as_str());
    let engagement = app.api.store.views.job_of(&job, tenant.name()).await?.ok_or_else(missing)?.agent;
    let engagement = engagement.ok_or_else(missing)?.engagement_id;
    let user = find(app, engagement.as_str(), tenant).await?.0.user.id;
    if given.by.as_ref().is_some_and(|by| *by != user) {
        return Err(OjsError::forbidden(format!("Engagement {engagement} is another user's.")).into());
    }
    let new = NewAnswer {
        job: job.clone(),
        tenant: tenant.0.clone(),
        call: given.call,
        key: given.key,
        values: given.values,
        by: user,
        message: given.message,
        at: app.api.clock.now(),
    };
    let (call, repeated) = match app.api.store.intake.answer_question(new).await? {
        AnswerOutcome::Answered(call) => (call, false),
        AnswerOutcome::Repeated(call) => (call, true),
        AnswerOutcome::Different => {
            return Err(OjsError::conflict("Another answer to this question counted already.").into());
        }
        AnswerOutcome::NotWaiting => {
            let message = format!("Engagement {engagement} does not wait for an answer.");
            return Err(OjsError::conflict(message).into());
        }
        AnswerOutcome::NotFound => return Err(missing().into()),
        AnswerOutcome::Refused(Unanswered::Missing(keys)) => {
            let message = format!("There is {}; it still waits.", Unanswered::Missing(keys.clone()));
            return Err(OjsError::validation("answers", message).with("missing", keys).into());
        }
        AnswerOutcome::Refused(why @ Unanswered::TooLong) => {
            return Err(OjsError::validation("answers", format!("In the answers {why}.")).into());
        }
    };
    Ok(Answered { engagement, job, call, repeated })
}

/// Answers the question that a job waits with, for a client that does not name it. When it cannot mean this one (it gives no
/// value for what is asked, or `untold`: nobody has heard of this question yet), and has said the same to the one before, it
/// repeats that, because the reply was lost.
///
/// # Errors
/// As [`answer`].
pub(crate) async fn answer_unnamed(
    app: &App,
    job: &JobId,
    tenant: &Tenant,
    given: Given,
    (open, untold): (&AskedUser, bool),
) -> Result<Answered, Failure> {
    let to = AnswerTo::Job(job);
    if (untold || open.question.answered(&given.values).is_err())
        && let Ok(before) = answer(app, to, tenant, Given { call: None, ..given.clone() }).await
    {
        return Ok(before);
    }
    answer(app, to, tenant, Given { call: Some(open.call_id.clone()), ..given }).await
}

/// The key of an answer: what a client calls its request, as `kind` of name.
pub(crate) fn key_of(kind: &str, name: &str) -> String {
    digest::of_json(&json!([kind, name]))
}

/// The question that a job waits with.
pub(crate) async fn asked(
    app: &App,
    engagement: &EngagementId,
    job: &Job,
) -> Result<Option<AskedUser>, Failure> {
    let asks = job.agent.as_ref().and_then(|agent| agent.position.asks.clone());
    let Some(call_id) = asks.filter(|_| job.state == JobState::Pending) else { return Ok(None) };
    let call = app.api.store.questions.tool_call(engagement, &call_id).await?;
    let question = call.and_then(|call| Question::read(&call.input).ok());
    Ok(question.map(|question| AskedUser { call_id, question }))
}

/// A value for each key that was asked for.
#[derive(ToSchema)]
#[schema(example = json!({"answers": {"city": "Oslo"}}))]
#[expect(dead_code, reason = "described, read by hand")]
pub(crate) struct AnswerBody {
    /// The values; keys that were not asked for are ignored.
    answers: Map<String, Value>,
    /// The call that asked, as `awaiting` names it: an answer to another question is refused then.
    call_id: Option<String>,
    /// Who answers: the user of the engagement.
    by: Option<String>,
}

/// An answer that counts.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct AnswerTaken {
    engagement_id: String,
    job_id: String,
    call_id: String,
    /// Whether the same answer counted before.
    repeated: bool,
}

/// Answers what an agent asks its user. The parked job goes on; the same answer once more changes nothing.
#[utoipa::path(
    post, path = "/engagements/{id}/answer", tag = "engagements",
    params(
        ("id" = String, Path, description = "The engagement."),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key for the same engagement is the same answer."),
    ),
    request_body(content = AnswerBody, content_type = "application/json"),
    responses(
        (status = 200, description = "The answer counts.", body = AnswerTaken, content_type = "application/json"),
        (status = 403, description = "The engagement is another user's.", body = docs::ErrorReply, content_type = "application/json"),
        (status = 409, description = "It does not wait for an answer, or another one counted.", body = docs::ErrorReply, content_type = "application/json"),
        (status = 422, description = "A key has no value; it still waits.", body = docs::ErrorReply, content_type = "application/json"),
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
    let answers = fields.object("answers")?.ok_or_else(missing)?;
    let values = answers.parse().map_err(|(name, _)| {
        OjsError::invalid_request(&format!("answers.{name}"), "is not JSON that can be read")
    })?;
    let call = fields.text("call_id")?.map(CallId);
    let key = idempotency_key(&headers)?.map(|key| key_of(IDEMPOTENCY_KEY, &key));
    let given = Given { values, call, key, by: fields.text("by")?, message: None };
    let (engagement, _, job) = find(&app, &id, &tenant).await?;
    let found = app.api.store.views.job(&job).await?;
    let open = match found.filter(|_| given.call.is_none()) {
        Some(job) => asked(&app, &engagement.id, &job).await?,
        None => None,
    };
    let taken = match open {
        Some(open) => answer_unnamed(&app, &job, &tenant, given, (&open, false)).await?,
        None => answer(&app, AnswerTo::Engagement(&id), &tenant, given).await?,
    };
    Ok(reply::ok(&json!({"engagement_id": taken.engagement, "job_id": taken.job, "call_id": taken.call,
                         "repeated": taken.repeated})))
}
