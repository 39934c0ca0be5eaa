//! All events, by cursor or as a stream.

mod follow;
mod list_events;
pub(crate) mod routes;
mod stream_events;

use crate::reply::Failure;
use crate::request::{Params, Tenant};
use serde::Serialize;
use turnstone_domain::EventName;
use turnstone_domain::feed::{Cursor, FeedEvent, FeedFilter, is_pattern};
use turnstone_ojs::{CloudEvent, OjsError, did_you_mean, form, names_matching};
use utoipa::ToSchema;

/// Events, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = EventFeed)]
pub(crate) struct EventPage {
    events: Vec<CloudEvent>,
    /// To be sent as `after` for the next page; also when there are no events.
    cursor: String,
    /// True if there may be more already.
    has_more: bool,
}

/// Reads a list separated by commas.
fn list(params: &Params, name: &str) -> Vec<String> {
    let items = params.text(name).unwrap_or_default().split(',').map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Returns the filter of the query.
fn filter(params: &Params, tenant: Tenant) -> Result<(FeedFilter, Types), Failure> {
    let mut types = list(params, "types");
    if let Some(wrong) = types.iter().find(|name| !is_pattern(name)) {
        let shown: String = wrong.chars().take(100).collect();
        let why = format!("must be names of events, `*`, or beginnings such as `job.*`; `{shown}` is none");
        return Err(OjsError::invalid_request("types", why).into());
    }
    let nothing = |name: &&String| *name != "*" && names_matching([name.as_str()]).is_empty();
    if let Some(unknown) = types.iter().find(nothing) {
        let known = EventName::ALL.iter().map(|name| name.as_str());
        let why = format!("`{unknown}` is the name of no event{}", did_you_mean(unknown, known));
        return Err(OjsError::invalid_request("types", format!("must be names of events: {why}")).into());
    }
    if types.is_empty() {
        types.push("*".to_owned());
    }
    let filter = FeedFilter {
        names: names_matching(types.iter().map(String::as_str)),
        queues: list(params, "queues"),
        job_types: list(params, "job_types"),
        subject: params.text("subject").map(str::to_owned),
        tenant: tenant.into_name(),
    };
    Ok((filter, Types(types)))
}

/// The types that a reader requests.
struct Types(Vec<String>);

impl Types {
    /// Returns the event in the requested form; `None` when it was not requested.
    fn rendered(&self, event: &FeedEvent) -> Option<CloudEvent> {
        Some(CloudEvent::in_form(event, form(self.0.iter().map(String::as_str), event)?))
    }
}

/// Reads a cursor that a client gives back.
fn cursor(field: &str, text: &str) -> Result<Cursor, Failure> {
    let wrong =
        || OjsError::invalid_request(field, "must be the id of an event, or a `cursor` of this server");
    Cursor::parse(text.trim()).ok_or_else(|| wrong().into())
}
