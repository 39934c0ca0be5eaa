//! `GET /agents/{name}/request/{request_id}`: the status of a request.

use super::{configured, find, name, run_events};
use crate::api::Shared;
use crate::caller::Who;
use crate::engagements::exposed;
use crate::engagements::waiting::{Among, Wanted, waiting};
use crate::reply::{self, Answer};
use crate::request::Segments;
use axum::extract::State;
use serde::Serialize;
use serde_json::{Value, json};
use turnstone_domain::review::ReviewState;
use turnstone_domain::{Job, JobState, Timestamp};
use turnstone_store::{Page, ReviewFilter};
use utoipa::ToSchema;

/// The status of a request.
#[derive(Serialize, ToSchema)]
struct RequestStatus {
    request_id: String,
    run_id: String,
    agent: String,
    /// queued, running, waiting_for_input, waiting_for_review or completed.
    status: &'static str,
    /// success, error or canceled, once it has completed.
    finish_reason: Option<&'static str>,
    #[schema(value_type = Option<String>)]
    result: Value,
    /// The values that the agent exposes, with its answer or while it waits for input.
    exposes: Value,
    error: Option<Value>,
    created_at: String,
    started_at: Option<String>,
    completed_at: Option<String>,
    /// The number of the run's newest event.
    last_event_id: i64,
    /// As the client sent it.
    #[schema(value_type = Option<Value>)]
    request_metadata: Value,
    /// As the client sent it.
    #[schema(value_type = Option<Value>)]
    run_context: Value,
    /// As the client sent it.
    #[schema(value_type = Option<String>)]
    logging_level: Value,
}

/// The status of a request (Agent Protocol, optional endpoint).
#[utoipa::path(
    get, path = "/agents/{name}/request/{request_id}", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("request_id" = String, Path, description = "The request."),
    ),
    responses((status = 200, description = "Where it stands.", body = RequestStatus)),
)]
pub(crate) async fn status(
    State(app): State<Shared>,
    Segments(agent, id): Segments,
    Who { tenant, caller }: Who,
) -> Answer {
    let found = find::request_of(&app, &agent, &id, &tenant, caller.peer()).await;
    if found.is_err()
        && caller.peer().is_none()
        && let Some(record) = configured::find(&app, &agent, &id, &tenant).await?
        && record.request_id == id
    {
        return Ok(reply::ok(&record.status(&agent)));
    }
    let (job, run) = found?;
    let last = run_events::catch_up(&app, &run).await?.last;
    let open = ReviewFilter {
        state: Some(ReviewState::Open),
        engagement: Some(run.id.clone()),
        ..ReviewFilter::default()
    };
    let reviews = app.api.store.views.reviews(&open, Page { limit: 1, offset: 0 }).await?;
    let kept = name::kept(&job);
    let waiting = waiting(&app, &run, &job, Among::Reviews).await?;
    let asks = waiting.iter().any(|one| matches!(one.wanted, Wanted::Answer(_)));
    let reported = job
        .errors
        .last()
        .filter(|_| job.state == JobState::Discarded)
        .map(|failed| json!(failed.error.event_data()));
    let (text, mut exposes) = result(&job);
    if asks {
        exposes = exposed::now(&app, &run).await?;
    }
    Ok(reply::ok(&RequestStatus {
        request_id: name::of(app.names().await?, &job),
        run_id: run.id.0,
        agent: run.agent,
        status: word(&job, !reviews.is_empty() || !waiting.is_empty(), asks),
        finish_reason: finish_reason(job.state),
        result: text,
        exposes,
        error: reported,
        created_at: job.created_at.to_rfc3339(),
        started_at: job.started_at.map(Timestamp::to_rfc3339),
        completed_at: job.ended_at.map(Timestamp::to_rfc3339),
        last_event_id: last,
        request_metadata: kept["request_metadata"].clone(),
        run_context: kept["run_context"].clone(),
        logging_level: kept["logging_level"].clone(),
    }))
}

fn word(job: &Job, reviewed: bool, asks: bool) -> &'static str {
    match job.state {
        // It waits for the requests before it.
        JobState::Pending if job.started_at.is_none() => "queued",
        JobState::Scheduled | JobState::Available | JobState::Retryable => "queued",
        JobState::Pending if asks => "waiting_for_input",
        JobState::Pending if reviewed => "waiting_for_review",
        JobState::Pending | JobState::Active => "running",
        JobState::Completed | JobState::Discarded | JobState::Cancelled => "completed",
    }
}

fn finish_reason(state: JobState) -> Option<&'static str> {
    match state {
        JobState::Completed => Some("success"),
        JobState::Discarded => Some("error"),
        JobState::Cancelled => Some("canceled"),
        _ => None,
    }
}

/// Returns the answer as a text, and beside it the values that the agent exposes (OAS-47).
fn result(job: &Job) -> (Value, Value) {
    let result = job.result.as_ref().and_then(|result| result.parse().ok());
    result.map_or((Value::Null, json!({})), |result| run_events::result(&result))
}
