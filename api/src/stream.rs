//! Event streams: a page of JSON, or server-sent events that resume where the client stopped.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Params;
use crate::show;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures::Stream;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use turnstone_domain::JobId;
use turnstone_domain::event::Event;
use turnstone_ojs::OjsError;
use turnstone_store::{EventFilter, Ring, StoreError};

/// Events that are read at once: what one stream holds in memory at most.
const PAGE: u32 = 200;
/// A list may have this many.
const MOST: u32 = 1000;
/// The doorbell may lose a ring; then the stream looks by itself.
const POLL: Duration = Duration::from_secs(2);
/// Silence is broken this often, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Whose events are asked for.
pub(crate) struct Source {
    /// Which events.
    pub(crate) filter: EventFilter,
    /// The stream's name on the doorbell.
    pub(crate) bell_name: String,
    /// Whether the (latest) job has ended already.
    pub(crate) ended: bool,
}

/// Answers with a page or with a stream, as the client asks.
///
/// `?stream=true` or `Accept: text/event-stream` makes it a stream. The cursor is the header `Last-Event-ID`, else
/// `?since=`: events after it are sent.
pub(crate) async fn answer(app: Shared, source: Source, headers: &HeaderMap, params: &Params) -> Answer {
    let resumed = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::trim);
    let since = match resumed {
        Some(text) => match text.parse::<i64>() {
            Ok(seq) if seq >= 0 => seq,
            _ => {
                return Err(OjsError::invalid_request(
                    "the header Last-Event-ID",
                    "must be an `id` of this stream",
                )
                .into());
            }
        },
        None => params.number("since", 0, 0, i64::MAX)?,
    };
    if !wants_stream(headers, params) {
        return page(&app, &source.filter, since, params.number("limit", PAGE, 1, MOST)?).await;
    }
    let bell = app.api.store.doorbell.listen();
    let first = app.api.store.views.events_after(&source.filter, since, PAGE).await?;
    if source.ended && first.is_empty() && resumed.is_some() {
        // What tells an EventSource that it need not come back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let feed = Feed {
        app,
        source,
        bell,
        cursor: since,
        exhausted: first.len() < PAGE as usize,
        read: first.into(),
        over: false,
    };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    Ok(Sse::new(frames(feed)).keep_alive(keep_alive).into_response())
}

fn wants_stream(headers: &HeaderMap, params: &Params) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    accepts.contains("text/event-stream") || matches!(params.text("stream"), Some("true" | "1"))
}

async fn page(app: &Shared, filter: &EventFilter, since: i64, limit: u32) -> Answer {
    let mut events = app.api.store.views.events_after(filter, since, limit + 1).await?;
    let has_more = events.len() > limit as usize;
    events.truncate(limit as usize);
    let cursor = events.last().map_or(since, |event| event.seq);
    let events: Vec<_> = events.iter().map(show::event).collect();
    Ok(reply::ok(&json!({"events": events, "cursor": cursor, "has_more": has_more})))
}

/// One client's stream.
struct Feed {
    app: Shared,
    source: Source,
    bell: Receiver<Ring>,
    cursor: i64,
    read: VecDeque<Event>,
    /// Whether the last look found everything there was.
    exhausted: bool,
    /// Whether the end of the job was sent.
    over: bool,
}

fn frames(feed: Feed) -> impl Stream<Item = Result<Frame, Infallible>> + Send {
    futures::stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok(frame(&event)), feed))
    })
}

fn frame(event: &Event) -> Frame {
    let frame = Frame::default().id(event.seq.to_string()).event(event.name.as_str());
    frame.data(show::event(event).to_string())
}

impl Feed {
    /// The next event; waits for it. `None` when the job has ended and everything was sent, or when the server drains.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.cursor = event.seq;
                if event.name.ends_job() {
                    self.over = self.is_latest(&event.job_id).await;
                }
                return Some(event);
            }
            let complete = self.over || (self.source.ended && self.exhausted);
            if complete || self.app.api.shutdown.is_cancelled() {
                return None;
            }
            if self.exhausted && !self.rung().await {
                return None;
            }
            self.look().await;
        }
    }

    async fn look(&mut self) {
        match self.app.api.store.views.events_after(&self.source.filter, self.cursor, PAGE).await {
            Ok(events) => {
                self.exhausted = events.len() < PAGE as usize;
                self.read = events.into();
            }
            Err(error) => {
                tracing::warn!(error = %turnstone_telemetry::redact(&error.to_string()), "events could not be read");
                self.exhausted = false;
                tokio::time::sleep(POLL).await;
            }
        }
    }

    /// Waits until there may be something new; `false` when the server drains.
    async fn rung(&mut self) -> bool {
        let poll = tokio::time::sleep(POLL);
        tokio::pin!(poll);
        loop {
            tokio::select! {
                () = self.app.api.shutdown.cancelled() => return false,
                () = &mut poll => return true,
                ring = self.bell.recv() => match ring {
                    Ok(Ring::Events(name)) if name == self.source.bell_name => return true,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return true,
                    Err(RecvError::Closed) => {
                        poll.await;
                        return true;
                    }
                }
            }
        }
    }

    /// Whether nothing follows the end of this job: an engagement may have begun another one meanwhile.
    async fn is_latest(&self, job: &JobId) -> bool {
        let EventFilter::Engagement(id) = &self.source.filter else { return true };
        let latest: Result<_, StoreError> = self.app.api.store.views.engagement(id).await;
        !matches!(latest, Ok(Some((_, _, latest))) if latest != *job)
    }
}
