//! `GET /ojs/v1/events?types=&queues=&job_types=&subject=&after=&limit=`: all events, oldest first (OJS events).

use super::{EventPage, cursor, filter, follow};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use crate::reset::Reset;
use axum::extract::State;
use axum::http::HeaderMap;
use turnstone_domain::feed::Cursor;
use turnstone_store::StoreError;

/// The default size of a page.
const USUAL: u32 = 100;
/// The largest page.
const MOST: u32 = 1_000;

/// All events in one order, oldest first. A reader that continues from `cursor` misses nothing and sees nothing twice.
#[utoipa::path(
    get, path = "/ojs/v1/events", tag = "events",
    security(("tenant" = ["viewer"])),
    params(
        ("types" = Option<String>, Query, description = "Names, `*` or beginnings such as `job.*`, commas between. \
                                                         Without it all but what happens inside the turns of agents. \
                                                         `io.ossa.*` are the events of OSSA."),
        ("queues" = Option<String>, Query, description = "Only of jobs in these queues, and of workflows with such jobs; commas between."),
        ("job_types" = Option<String>, Query, description = "Only of jobs of these types, commas between."),
        ("subject" = Option<String>, Query, description = "Only about this job, or whatever else an event is about."),
        ("after" = Option<String>, Query, description = "Only events after this one: the `cursor` of a page.",
         example = "evt_1042.17.3.52"),
        ("limit" = Option<u32>, Query, description = "100 unless said otherwise.", minimum = 1, maximum = 1000),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only events of this tenant's jobs."),
    ),
    responses((status = 200, description = "A page of events; a stream of them for `Accept: text/event-stream`.", content(
        (EventPage = "application/json"),
        (String = "text/event-stream"),
    )), (status = 409, description = "The events up to `after` are not in this database; `details.begin` says where to \
                                       begin. A stream sends the event `reset` instead.")),
)]
pub(crate) async fn list_events(
    State(app): State<Shared>,
    params: Params,
    tenant: Tenant,
    headers: HeaderMap,
) -> Answer {
    if follow::is_wanted(&headers) {
        return follow::answer(app, &params, tenant, &headers).await;
    }
    let (filter, types) = filter(&params, tenant)?;
    let after = params.text("after").map_or(Ok(Cursor::START), |text| cursor("after", text))?;
    let limit = params.number("limit", USUAL, 1, MOST)?;
    let feed = &app.api.store.feed;
    let page = match feed.feed(&filter, after, limit).await {
        Err(StoreError::CursorLost { cursor }) => {
            return Err(Reset::of_feed(feed, cursor).await?.into_error().into());
        }
        page => page?,
    };
    let events = page.events.iter().filter_map(|event| types.rendered(event)).collect();
    Ok(reply::ok(&EventPage { events, cursor: page.cursor.to_string(), has_more: page.has_more }))
}
