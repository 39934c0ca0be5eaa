//! `GET /ojs/v1/jobs/{id}/events`: the events of one job, plain or agent, as a page or as a stream.

use crate::api::Shared;
use crate::reply::Answer;
use crate::request::{Params, Segment, Tenant};
use crate::rows::EventPage;
use crate::stream::{self, Source};
use axum::extract::State;
use axum::http::HeaderMap;
use turnstone_domain::JobId;
use turnstone_ojs::OjsError;
use turnstone_store::EventFilter;

/// The events of a job, as a page or as a stream.
#[utoipa::path(
    get, path = "/ojs/v1/jobs/{id}/events", tag = "jobs",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The job."),
        ("since" = Option<String>, Query, description = "Only events after this one: its `seq`, or a `cursor_id`.", example = "12.829"),
        ("limit" = Option<u32>, Query, description = "200 unless said otherwise.", minimum = 1, maximum = 1000),
        ("stream" = Option<bool>, Query, description = "Server-sent events; so does `Accept: text/event-stream`."),
        ("format" = Option<String>, Query, description = "turnstone unless said otherwise; or cloudevents, as the feed has them."),
        ("Last-Event-ID" = Option<String>, Header, description = "Where a stream resumes; wins over `since`."),
    ),
    responses(
        (status = 200, description = "A page of events, or a stream of them.", content(
            (EventPage = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 409, description = "The events up to `since` are not in this database; `details.begin` says where to begin. \
                                      A stream sends the event `reset` instead."),
        (status = 204, description = "The stream that is resumed has ended."),
    ),
)]
pub(crate) async fn job_events(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let job_id = JobId::from(id.as_str());
    let Some(job) = app.api.store.views.job_of(&job_id, tenant.name()).await? else {
        return Err(OjsError::not_found("job", &id).into());
    };
    let bell_name = job.agent.map_or_else(|| job.id.0.clone(), |agent| agent.engagement_id.0);
    let source =
        Source { filter: EventFilter::Job(job.id), bell_name, ended: job.state.is_terminal(), live: None };
    stream::answer(app, source, &headers, &params).await
}
