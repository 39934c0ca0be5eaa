//! `GET /ojs/v1/events/stream`: all events as they happen.

use super::follow;
use crate::api::Shared;
use crate::reply::Answer;
use crate::request::{Params, Tenant};
use axum::extract::State;
use axum::http::HeaderMap;

/// All events as they happen. `Last-Event-ID` resumes: nothing is missed and nothing is sent twice. Without a cursor
/// the stream begins with the next event.
#[utoipa::path(
    get, path = "/ojs/v1/events/stream", tag = "events",
    security(("tenant" = ["viewer"])),
    params(
        ("types" = Option<String>, Query, description = "Names, `*` or beginnings such as `job.*`, commas between. \
                                                         Without it all but what happens inside the turns of agents."),
        ("queues" = Option<String>, Query, description = "Only of jobs in these queues, and of workflows with such jobs; commas between."),
        ("job_types" = Option<String>, Query, description = "Only of jobs of these types, commas between."),
        ("subject" = Option<String>, Query, description = "Only about this job, or whatever else an event is about."),
        ("after" = Option<String>, Query, description = "Only events after this one."),
        ("Last-Event-ID" = Option<String>, Header, description = "Where the stream resumes; wins over `after`."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only events of this tenant's jobs."),
    ),
    responses((status = 200, description = "Server-sent events: `id` is a cursor, `data` an event.", body = String,
               content_type = "text/event-stream")),
)]
pub(crate) async fn stream_events(
    State(app): State<Shared>,
    params: Params,
    tenant: Tenant,
    headers: HeaderMap,
) -> Answer {
    follow::answer(app, &params, tenant, &headers).await
}
