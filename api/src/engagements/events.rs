//! `GET /engagements/{id}/events`: what happened in an engagement, as a page or as a stream.

use crate::api::Shared;
use crate::reply::Answer;
use crate::request::{Params, Segment};
use crate::stream::{self, Source};
use axum::extract::State;
use axum::http::HeaderMap;
use turnstone_domain::EngagementId;
use turnstone_store::EventFilter;

pub(crate) async fn events(
    State(app): State<Shared>,
    Segment(id): Segment,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let (engagement, _, job_id) = super::find(&app, &id).await?;
    let job = app.api.store.views.job(&job_id).await?;
    let source = Source {
        filter: EventFilter::Engagement(EngagementId::from(engagement.id.as_str())),
        bell_name: id,
        ended: job.is_none_or(|job| job.state.is_terminal()),
    };
    stream::answer(app, source, &headers, &params).await
}
