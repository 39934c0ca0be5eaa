//! `GET /engagements/{id}/events`: the events of an engagement, as a page or as a stream.

use crate::api::Shared;
use crate::reply::Answer;
use crate::request::{Params, Segment, Tenant};
use crate::rows::EventPage;
use crate::stream::{self, Source};
use axum::extract::State;
use axum::http::HeaderMap;
use turnstone_domain::EngagementId;
use turnstone_store::EventFilter;

/// The events of an engagement, as a page or as a stream.
///
/// A stream also has `delta` between the events. Each is a piece of the text that the model is writing, with `job_id`,
/// `turn`, `offset` and `text`. `offset` counts the characters before it; 0 begins anew. Deltas have no `id` and are
/// not sent again: the whole answer is a message when its turn's `infer` is done. Agents whose answers are checked
/// first have none.
#[utoipa::path(
    get, path = "/engagements/{id}/events", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The engagement."),
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
pub(crate) async fn events(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let (engagement, _, job_id) = super::find(&app, &id, &tenant).await?;
    let job = app.api.store.views.job(&job_id).await?;
    let engagement = EngagementId::from(engagement.id.as_str());
    let source = Source {
        live: Some(engagement.clone()),
        filter: EventFilter::Engagement(engagement),
        bell_name: id,
        ended: job.is_none_or(|job| job.state.is_terminal()),
    };
    stream::answer(app, source, &headers, &params).await
}
