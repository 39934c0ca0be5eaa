//! `GET /ojs/v1/jobs/{id}/events`: what happened to one job, plain or agent, as a page or as a stream.

use crate::api::Shared;
use crate::reply::Answer;
use crate::request::{Params, Segment};
use crate::stream::{self, Source};
use axum::extract::State;
use axum::http::HeaderMap;
use turnstone_domain::JobId;
use turnstone_ojs::OjsError;
use turnstone_store::EventFilter;

pub(crate) async fn job_events(
    State(app): State<Shared>,
    Segment(id): Segment,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let job_id = JobId::from(id.as_str());
    let Some(job) = app.api.store.views.job(&job_id).await? else {
        return Err(OjsError::not_found("job", &id).into());
    };
    let bell_name = job.agent.map_or(id, |agent| agent.engagement_id.0);
    let source = Source { filter: EventFilter::Job(job_id), bell_name, ended: job.state.is_terminal() };
    stream::answer(app, source, &headers, &params).await
}
