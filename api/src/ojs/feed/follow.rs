//! The feed as server-sent events, which resume where the client stopped.

use super::{Types, cursor, filter};
use crate::api::Shared;
use crate::outage::store_failed;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use crate::reset::Reset;
use async_recursion::async_recursion as boxed;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures::Stream;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use turnstone_domain::feed::{Cursor, FeedEvent, FeedFilter};
use turnstone_store::{Ring, StoreError};

/// The most events that are read at once and held in memory by one stream.
const PAGE: u32 = 200;
/// The interval of polling, because the doorbell may lose a notification.
const POLL: Duration = Duration::from_secs(2);
/// Notifications within this time are handled by one query.
const GATHER: Duration = Duration::from_millis(10);
/// Silence is broken this often, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns true if the client requests a stream where a page is offered as well.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    accepts.contains("text/event-stream")
}

/// Answers with a stream.
pub(super) async fn answer(app: Shared, params: &Params, tenant: Tenant, headers: &HeaderMap) -> Answer {
    let (filter, types) = filter(params, tenant)?;
    let resumed = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    // Subscribe before the query, so that nothing that happens after it is missed.
    let bell = app.api.store.doorbell.listen();
    let cursor = match (resumed, params.text("after")) {
        (Some(id), _) => cursor("the header Last-Event-ID", id)?,
        (None, Some(after)) => cursor("after", after)?,
        (None, None) => app.api.store.feed.feed_end().await?,
    };
    let follower =
        Follower { app, filter, types, bell, cursor, read: VecDeque::new(), more: true, reset: None };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    Ok(reply::streamed(Sse::new(frames(follower)).keep_alive(keep_alive)))
}

/// One client's stream. It mostly waits, so its reads are boxed: a future is as large as its largest path.
struct Follower {
    app: Shared,
    filter: FeedFilter,
    types: Types,
    bell: Receiver<Ring>,
    cursor: Cursor,
    read: VecDeque<FeedEvent>,
    /// True if there may be more without waiting.
    more: bool,
    /// The reset that is sent before the events that were read.
    reset: Option<Reset>,
}

/// A part of the stream.
enum FeedFrame {
    Event(Box<FeedEvent>),
    /// The stream begins anew: the database does not have what was sent.
    Reset(Reset),
}

fn frames(follower: Follower) -> impl Stream<Item = Result<Frame, Infallible>> + Send {
    futures::stream::unfold(follower, |mut follower| async move {
        loop {
            let event = match follower.next().await? {
                FeedFrame::Event(event) => event,
                FeedFrame::Reset(reset) => return Some((Ok(reset.into_frame()), follower)),
            };
            if let Some(reported) = follower.types.rendered(&event) {
                let frame = Frame::default().id(event.cursor.to_string()).event(&reported.name);
                return Some((Ok(frame.data(json!(reported).to_string())), follower));
            }
        }
    })
}

impl Follower {
    /// Returns the next event or reset; waits for it. `None` when the server drains.
    async fn next(&mut self) -> Option<FeedFrame> {
        loop {
            if let Some(reset) = self.reset.take() {
                return Some(FeedFrame::Reset(reset));
            }
            if let Some(event) = self.read.pop_front() {
                return Some(FeedFrame::Event(Box::new(event)));
            }
            let draining = self.app.api.shutdown.is_cancelled();
            if draining || (!self.more && !self.woken().await) {
                return None;
            }
            self.look().await;
        }
    }

    #[boxed]
    async fn look(&mut self) {
        let feed = &self.app.api.store.feed;
        let failed = match feed.feed(&self.filter, self.cursor, PAGE).await {
            Ok(page) => {
                self.more = page.has_more;
                self.cursor = page.cursor;
                self.read = page.events.into();
                return;
            }
            Err(StoreError::CursorLost { cursor }) => match Reset::of_feed(feed, cursor).await {
                Ok(reset) => {
                    (self.reset, self.cursor, self.more) = (Some(reset), Cursor::START, true);
                    return;
                }
                Err(error) => error,
            },
            Err(error) => error,
        };
        store_failed!(warn, failed, "events could not be read");
        self.more = false;
    }

    /// Waits until there may be something new; returns `false` when the server drains.
    async fn woken(&mut self) -> bool {
        let poll = tokio::time::sleep(POLL);
        tokio::pin!(poll);
        loop {
            tokio::select! {
                () = self.app.api.shutdown.cancelled() => return false,
                () = &mut poll => return true,
                ring = self.bell.recv() => match ring {
                    Ok(Ring::Events(_) | Ring::AllEvents) | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => {
                        poll.await;
                        return true;
                    }
                }
            }
        }
        tokio::time::sleep(GATHER).await;
        self.bell = self.bell.resubscribe();
        true
    }
}
