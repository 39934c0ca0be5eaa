//! Events of a run as server-sent events. Each frame has the number as `id` and the event as `data`, and no name, so
//! that `EventSource.onmessage` receives it. Pieces of a model's text are between them as `delta`, without an `id`.

pub(crate) mod run;
mod spoken;

use super::{resume, run_events};
use crate::api::{App, Shared};
use crate::doorbell::POLL;
use crate::outage::store_failed;
use crate::reply::{self, Failure};
use crate::reset::Reset;
use crate::shared_stream::{Look, Page, Unread, alone};
use async_recursion::async_recursion as boxed;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures::Stream;
use futures::future::select_all;
use run::{Caller, PAGE, RunFrame, RunStream, What};
use serde_json::json;
use spoken::Spoken;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{EngagementId, JobId};
use turnstone_ojs::{CURSOR_LOST, OjsError};
use turnstone_store::{Ear, Piece, StoreError};

/// Silence is broken this often, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns the position of a client that comes back: the header `Last-Event-ID`.
///
/// # Errors
/// 400 for a value that is no number of an event.
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
    let stream = app.runs.follow(run.id.clone(), || RunStream::new(&app.bells, run));
    let (wakes, resets) = (stream.together.bell.listen(), stream.together.resets());
    let mut reader = Reader {
        app,
        stream,
        request,
        wakes,
        ears: Vec::new(),
        parts: Arc::from([]),
        spoken: Spoken::default(),
        since: since.unwrap_or(0),
        cursor: since.unwrap_or(0),
        // The first read of a client that comes back checks its cursor.
        resets: if since.is_some_and(|since| since > 0) { resets.wrapping_sub(1) } else { resets },
        reset: None,
        read: VecDeque::new(),
        begun: false,
        fresh: true,
        asked: false,
        over: false,
    };
    reader.listen();
    let frames = Sse::new(frames(reader)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("ping"));
    reply::streamed(frames)
}

impl RunStream {
    /// Reads the events after a number.
    async fn read(&self, app: &App, after: i64) -> Result<Page<RunFrame>, Unread> {
        let frame = self.tell(app, after).await;
        frame.map_err(|Failure(error)| match error.code {
            CURSOR_LOST => Unread::Lost,
            _ => Unread::Failed(error.message),
        })
    }

    async fn tell(&self, app: &App, after: i64) -> Result<Page<RunFrame>, Failure> {
        // An engagement whose hook is new may have had events before.
        let newest = loop {
            let heard = run_events::catch_up(app, &self.run).await?;
            if !self.follow(&heard.streams) {
                break heard.last;
            }
        };
        if after > newest {
            return Err(Reset::of_run(newest, after).into_error().into());
        }
        let page = app.api.store.runs.run_events(&self.run.id, after, None, PAGE).await?;
        let events = page.events.into_iter().map(|event| Arc::new(event.into())).collect();
        Ok(Page { events, more: page.more })
    }
}

/// One client's stream. It mostly waits, so what it does otherwise is boxed: a future is as large as its largest path.
struct Reader {
    app: Shared,
    stream: Arc<RunStream>,
    request: Option<JobId>,
    wakes: watch::Receiver<u64>,
    ears: Vec<Ear>,
    /// The engagements whose pieces are received.
    parts: Arc<[EngagementId]>,
    spoken: Spoken,
    /// The position of the client when it connected.
    since: i64,
    cursor: i64,
    /// The resets of the stream when the cursor was checked.
    resets: u64,
    /// The reset that is sent before the events that are read next.
    reset: Option<Reset>,
    read: VecDeque<Arc<RunFrame>>,
    /// True if the state before the first event that is sent is known.
    begun: bool,
    /// True if there may be unread events.
    fresh: bool,
    /// True if the client was sent a question.
    asked: bool,
    /// True if the end of the request was sent.
    over: bool,
}

fn frames(reader: Reader) -> impl Stream<Item = Result<Frame, Infallible>> + Send {
    futures::stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await?;
        Some((Ok(frame), reader))
    })
}

/// Why a stream stops waiting.
enum Woken {
    Look,
    Heard(Arc<Piece>),
    Draining,
}

impl Reader {
    /// Returns the next event, or piece of an answer; waits for it. `None` when the request has ended and everything
    /// was sent, or the server drains.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(reset) = self.reset.take() {
                return Some(reset.into_frame());
            }
            if let Some(reported) = self.read.pop_front() {
                self.cursor = reported.id;
                self.spoken.note(&reported);
                if !self.is_mine(reported.request.as_ref()) {
                    continue;
                }
                self.over |= self.request.is_some() && matches!(reported.what, What::Ends);
                self.asked |= self.request.is_some() && matches!(reported.what, What::Asks);
                return Some(Frame::default().id(reported.id.to_string()).data(&reported.body));
            }
            if self.over || self.app.api.shutdown.is_cancelled() {
                return None;
            }
            if self.fresh {
                self.look().await;
                continue;
            }
            match self.rests().await {
                None | Some(true) => return None,
                Some(false) if self.fresh => continue,
                Some(false) => {}
            }
            while let Some((piece, request, caller)) = self.spoken.next() {
                if self.is_mine(request.as_ref()) {
                    return Some(self.delta(&piece, &caller));
                }
            }
            match self.woken().await {
                Woken::Look => {
                    if self.is_gone().await {
                        return None;
                    }
                    self.fresh = true;
                }
                Woken::Heard(piece) => self.spoken.hear(piece),
                Woken::Draining => return None,
            }
        }
    }

    /// Returns true if the run is pruned: it will have no more events.
    #[boxed]
    async fn is_gone(&self) -> bool {
        // The run of the stream is not; perhaps that of a delegate is.
        let views = &self.app.api.store.views;
        self.stream.together.bell.rang_for_the_last_time()
            && matches!(views.engagement(&self.stream.run().id).await, Ok(None))
    }

    fn is_mine(&self, request: Option<&JobId>) -> bool {
        self.request.is_none() || self.request.as_ref() == request
    }

    #[boxed]
    async fn look(&mut self) {
        let (rings, others) = (*self.wakes.borrow_and_update(), Arc::strong_count(&self.stream) > 1);
        let (app, stream) = (&self.app, &self.stream);
        let read = |after, _| stream.read(app, after);
        let page = match stream.together.look((rings, self.resets), self.cursor, others, read).await {
            Look::Found(page) => page,
            Look::Behind => {
                let resets = stream.together.resets();
                match alone(stream.read(app, self.cursor).await).await {
                    Some(page) => {
                        self.resets = resets;
                        page
                    }
                    None => return self.begin_anew().await,
                }
            }
            Look::Failed => Page::default(),
        };
        self.fresh = page.more;
        self.read = page.events.into();
        self.listen();
    }

    /// Reads from the beginning, after a reset.
    async fn begin_anew(&mut self) {
        self.resets = self.stream.together.resets();
        let newest = run_events::catch_up(&self.app, self.stream.run()).await.map_or(0, |heard| heard.last);
        self.reset = Some(Reset::of_run(newest, self.cursor));
        (self.cursor, self.since, self.fresh) = (0, 0, true);
    }

    /// Subscribes to the pieces of all models in this run.
    fn listen(&mut self) {
        let parts = self.stream.parts();
        if !Arc::ptr_eq(&parts, &self.parts) {
            let live = self.app.api.store.doorbell.live();
            self.ears = parts.iter().map(|part| live.listen(part)).collect();
            self.parts = parts;
        }
    }

    /// Returns true if nothing comes before the client acts. The request ended before the stream began, or it waits for
    /// an answer to the question that was just sent (AP §3.4). A client that reconnects after that event waits with the
    /// request. `None` when the server drains.
    async fn rests(&mut self) -> Option<bool> {
        if self.begun && !self.asked {
            return Some(false);
        }
        match self.look_back().await {
            Ok(rests) => {
                (self.begun, self.asked) = (true, false);
                Some(rests)
            }
            Err(Failure(error)) => {
                store_failed!(warn, error.message, "the state of a request could not be read");
                tokio::select! {
                    () = self.app.api.shutdown.cancelled() => None,
                    () = tokio::time::sleep(POLL) => {
                        self.fresh = true;
                        Some(false)
                    }
                }
            }
        }
    }

    #[boxed]
    async fn look_back(&mut self) -> Result<bool, Failure> {
        if !self.begun && self.since > 0 {
            self.recall().await?;
        }
        let Some(request) = &self.request else { return Ok(false) };
        if !self.begun && self.has_ended(request).await? {
            return Ok(true);
        }
        let job = if self.asked { self.app.api.store.views.job(request).await? } else { None };
        match job {
            Some(job) => resume::waits(&self.app, self.stream.run(), &job).await,
            None => Ok(false),
        }
    }

    /// Recalls the answer under way, which began before this stream.
    async fn recall(&mut self) -> Result<(), StoreError> {
        let (run, runs) = (&self.stream.run().id, &self.app.api.store.runs);
        let before = runs.run_events(run, (self.cursor - i64::from(PAGE)).max(0), None, PAGE).await?;
        let cursor = self.cursor;
        let before = before.events.into_iter().filter(|event| event.id <= cursor);
        before.for_each(|event| self.spoken.note(&RunFrame::from(event)));
        Ok(())
    }

    /// Returns true if this request has ended with the events that were sent.
    async fn has_ended(&self, request: &JobId) -> Result<bool, StoreError> {
        let requests = self.app.api.store.runs.run_requests(&self.stream.run().id).await?;
        let ended = requests.iter().find(|other| other.job == *request).and_then(|request| request.ended);
        Ok(ended.is_some_and(|ended| self.cursor >= ended))
    }

    /// Waits until there may be something new. Notifications go before pieces: an event from before a model's piece is
    /// sent before that piece.
    async fn woken(&mut self) -> Woken {
        tokio::select! {
            biased;
            () = self.app.api.shutdown.cancelled() => Woken::Draining,
            // The hook exists as long as the stream is followed.
            _ = self.wakes.changed() => Woken::Look,
            piece = heard(&mut self.ears) => Woken::Heard(piece),
        }
    }

    fn delta(&self, piece: &Piece, caller: &Caller) -> Frame {
        let Piece { engagement, turn, offset, text, .. } = piece;
        let Caller { agent, depth, request_id } = caller;
        let delta = json!({
            "type": "text_output_delta", "run_id": self.stream.run().id, "request_id": request_id, "agent": agent,
            "role": "assistant", "depth": depth, "answer": format!("{engagement}:{turn}"), "offset": offset,
            "content": text,
        });
        Frame::default().event("delta").data(delta.to_string())
    }
}

async fn heard(ears: &mut [Ear]) -> Arc<Piece> {
    if ears.is_empty() {
        return std::future::pending().await;
    }
    select_all(ears.iter_mut().map(|ear| Box::pin(ear.hear()))).await.0
}
