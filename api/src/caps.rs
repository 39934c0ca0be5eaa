//! The most that a tenant may create, so that one tenant cannot fill the database or take all connections.

use crate::reply::Failure;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_ojs::OjsError;

/// `[caps]`: the most that each tenant may have at once, and the fleet of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Caps {
    /// The most registered agents, which belong to the fleet.
    pub agents: u32,
    /// The most cron entries of a tenant.
    pub crons: u32,
    /// The most webhooks of a tenant.
    pub webhooks: u32,
    /// The most streams of events of a tenant that one process serves at once.
    pub streams: u32,
}

impl Default for Caps {
    fn default() -> Self {
        Self { agents: 10_000, crons: 1_000, webhooks: 100, streams: 1_000 }
    }
}

/// Returns the error about a number that is reached: 409, because waiting does not help.
pub(crate) fn reached(what: &'static str, most: u32) -> OjsError {
    let (code, hint) = match what {
        "agents" => ("too_many_agents", "Remove agents that are no longer used: `turnstone agent list`."),
        "crons" => ("too_many_crons", "Delete cron entries that are no longer used: `turnstone cron list`."),
        _ => ("too_many_webhooks", "Delete webhooks that are no longer used: `turnstone webhook list`."),
    };
    let message = format!("There are {most} {what}, and no more are allowed ([caps] {what}).");
    OjsError::new(409, code, message, hint).with("maximum", most)
}

/// The open streams, by tenant; those of the fleet have none.
#[derive(Default)]
pub(crate) struct OpenStreams(Arc<Mutex<HashMap<Option<String>, u32>>>);

/// A stream that is counted until it ends.
struct CountedStream {
    of: Arc<Mutex<HashMap<Option<String>, u32>>>,
    tenant: Option<String>,
}

impl OpenStreams {
    /// Counts the body of a stream of events until it ends. Above the limit the response becomes 429. Other responses stay
    /// as they are.
    pub(crate) fn admit(&self, tenant: Option<&str>, most: u32, response: Response) -> Response {
        let is_stream = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
        if !response.headers().get(CONTENT_TYPE).is_some_and(is_stream) {
            return response;
        }
        let Some(counted) = self.count(tenant, most) else { return too_many(most).into_response() };
        response.map(|body| {
            Body::from_stream(body.into_data_stream().inspect(move |_| {
                let _ = &counted;
            }))
        })
    }

    fn count(&self, tenant: Option<&str>, most: u32) -> Option<CountedStream> {
        let tenant = tenant.map(str::to_owned);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = open.entry(tenant.clone()).or_default();
        if *number >= most {
            return None;
        }
        *number += 1;
        Some(CountedStream { of: Arc::clone(&self.0), tenant })
    }
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        let mut open = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = open.get_mut(&self.tenant) {
            *number -= 1;
            if *number == 0 {
                open.remove(&self.tenant);
            }
        }
    }
}

/// 429: a stream may end soon.
fn too_many(most: u32) -> Failure {
    let message = format!("As many streams of events are open as `streams` in [caps] allows: {most}.");
    let hint = "Close a stream, or read pages of events; then send the request again.";
    let error = OjsError::new(429, "too_many_streams", message, hint).with("maximum", most);
    OjsError { retryable: true, ..error }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_counted_until_it_is_dropped() {
        let open = OpenStreams::default();
        let first = open.count(Some("acme"), 1).unwrap();
        assert!(open.count(Some("acme"), 1).is_none() && open.count(None, 1).is_some());
        drop(first);
        assert!(open.0.lock().unwrap().is_empty());
        assert!(open.count(Some("acme"), 1).is_some() && open.count(Some("acme"), 0).is_none());
    }
}
