//! Events of a run as server-sent events: each frame has the number as `id` and the event as `data`, and no name, so that
//! `EventSource.onmessage` gets it.

use super::resume;
use super::telling::{self, Heard};
use crate::api::Shared;
use crate::reply::Failure;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::Stream;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use turnstone_domain::JobId;
use turnstone_domain::engagement::Engagement;
use turnstone_ojs::OjsError;
use turnstone_store::{Ring, RunEvent};

/// Events that one stream holds in memory at most.
const PAGE: u32 = 200;
/// The doorbell may lose a ring; then the stream looks by itself.
const POLL: Duration = Duration::from_secs(2);
/// How an event is known that may ask the caller for something; whether the request waits is asked of the store.
const WAIT_FOR_INPUT: &str = "\"type\":\"wait_for_input\"";
/// Silence is broken this often, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Where a client that comes back stands: the header `Last-Event-ID`.
///
/// # Errors
/// 400 for what is no number of an event.
pub(super) fn resumed(headers: &HeaderMap) -> Result<Option<i64>, Failure> {
    let Some(sent) = headers.get("last-event-id") else { return Ok(None) };
    let number = sent.to_str().ok().and_then(|text| text.trim().parse::<i64>().ok());
    match number.filter(|number| *number >= 0) {
        Some(number) => Ok(Some(number)),
        None => {
            Err(OjsError::invalid_request("the header Last-Event-ID", "must be an `id` of this stream")
                .into())
        }
    }
}

/// Streams a request from its first event, or a run from its beginning, or either after `since`.
pub(super) fn answer(app: Shared, run: Engagement, request: Option<JobId>, since: Option<i64>) -> Response {
    let bell = app.api.store.doorbell.listen();
    let reader = Reader {
        app,
        run,
        request,
        bell,
        bells: Vec::new(),
        since: since.unwrap_or(0),
        cursor: since.unwrap_or(0),
        read: VecDeque::new(),
        over: false,
    };
    let frames = Sse::new(frames(reader)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("ping"));
    frames.into_response()
}

/// One client's stream.
struct Reader {
    app: Shared,
    run: Engagement,
    request: Option<JobId>,
    bell: Receiver<Ring>,
    /// The engagements whose rings are for this stream.
    bells: Vec<String>,
    /// Where the client stood when it came.
    since: i64,
    cursor: i64,
    read: VecDeque<RunEvent>,
    /// Whether the end of the request was read.
    over: bool,
}

fn frames(reader: Reader) -> impl Stream<Item = Result<Frame, Infallible>> + Send {
    futures::stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok(Frame::default().id(event.id.to_string()).data(event.body)), reader))
    })
}

impl Reader {
    /// The next event; waits for it. `None` when the request has ended and everything was sent, or the server drains.
    async fn next(&mut self) -> Option<RunEvent> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.cursor = event.id;
                return Some(event);
            }
            if self.over || self.app.api.shutdown.is_cancelled() {
                return None;
            }
            match self.look().await {
                Ok(()) if self.read.is_empty() && !self.over => {
                    if !self.rung().await {
                        return None;
                    }
                }
                Ok(()) => {}
                Err(Failure(error)) => {
                    tracing::warn!(error = %error.message, "events of a run could not be read");
                    tokio::time::sleep(POLL).await;
                }
            }
        }
    }

    async fn look(&mut self) -> Result<(), Failure> {
        let Heard { bells, .. } = telling::catch_up(&self.app, &self.run).await?;
        self.bells = bells;
        let runs = &self.app.api.store.runs;
        self.read = runs.run_events(&self.run.id, self.cursor, self.request.as_ref(), PAGE).await?.into();
        if self.read.len() < PAGE as usize {
            let last = self.read.back().map_or(self.cursor, |last| last.id);
            self.over = self.ended(last).await? || self.waits().await?;
        }
        Ok(())
    }

    /// Whether nothing can come after this number: the request has ended by then, or every request of the run.
    async fn ended(&self, last: i64) -> Result<bool, Failure> {
        let Some(request) = &self.request else { return Ok(false) };
        let requests = self.app.api.store.runs.run_requests(&self.run.id).await?;
        let ended = requests.iter().find(|other| other.job == *request).and_then(|request| request.ended);
        Ok(ended.is_some_and(|ended| last >= ended))
    }

    /// Whether the client hears now what the request waits for: then it is its turn to say something (AP §3.4). Who comes back
    /// after that event waits with the request.
    async fn waits(&self) -> Result<bool, Failure> {
        let Some(request) = self.request.as_ref().filter(|_| !self.read.is_empty()) else { return Ok(false) };
        let asked = |event: &RunEvent| event.id > self.since && event.body.contains(WAIT_FOR_INPUT);
        if !self.read.iter().any(asked) {
            return Ok(false);
        }
        let Some(job) = self.app.api.store.views.job(request).await? else { return Ok(false) };
        resume::waits(&self.app, &self.run, &job).await
    }

    /// Waits until there may be something new. False when the server drains.
    async fn rung(&mut self) -> bool {
        let poll = tokio::time::sleep(POLL);
        tokio::pin!(poll);
        loop {
            tokio::select! {
                biased;
                () = self.app.api.shutdown.cancelled() => return false,
                ring = self.bell.recv() => match ring {
                    Ok(Ring::Events(name)) if self.bells.contains(&name) => return true,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return true,
                    Err(RecvError::Closed) => {
                        poll.await;
                        return true;
                    }
                },
                () = &mut poll => return true,
            }
        }
    }
}
