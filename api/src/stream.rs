//! Event streams: a page of JSON, or server-sent events that resume where the client stopped; in our own form or as CloudEvents.

use crate::api::Shared;
use crate::doorbell::{Bells, Hook, POLL};
use crate::reply::{self, Answer, Failure};
use crate::request::Params;
use crate::reset::Reset;
use crate::rows::{EventPage, ShownEvent};
use crate::shared_stream::{Look, Page, Placed, SharedStream, Unread, alone};
use async_recursion::async_recursion as boxed;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures::Stream;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use turnstone_domain::feed::{FeedEvent, StreamCursor};
use turnstone_domain::{EngagementId, JobId, Phase};
use turnstone_ojs::OjsError;
use turnstone_store::{Ear, EventFilter, Piece, StoreError, Views};

/// The most events that are read at once and held in memory by one stream.
const PAGE: u32 = 200;
/// The most events of a page.
const MOST: u32 = 1000;
/// The interval of comments on a stream without events, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The stream that is requested.
pub(crate) struct Source {
    /// The filter of its events.
    pub(crate) filter: EventFilter,
    /// The stream's name on the doorbell.
    pub(crate) bell_name: String,
    /// True if the (latest) job has ended already.
    pub(crate) ended: bool,
    /// The engagement whose pieces of live text are sent; only on streams.
    pub(crate) live: Option<EngagementId>,
}

/// The form of events.
#[derive(Clone, Copy, Default)]
enum Form {
    /// Our own form, with the numbers of the stream.
    #[default]
    Own,
    /// As the feed has them: CloudEvents 1.0.
    Cloud,
}

impl Form {
    fn asked(params: &Params) -> Result<Self, Failure> {
        let read = |word: &str| match word {
            "turnstone" => Some(Self::Own),
            "cloudevents" => Some(Self::Cloud),
            _ => None,
        };
        Ok(params.word("format", read, "turnstone, cloudevents")?.unwrap_or_default())
    }

    fn write(self, event: &FeedEvent) -> ShownEvent {
        match self {
            Self::Cloud => ShownEvent::Cloud(event.into()),
            Self::Own => ShownEvent::Own(event.into()),
        }
    }
}

/// Answers with a page or with a stream, as the client requests.
///
/// `?stream=true` or `Accept: text/event-stream` makes it a stream. The cursor is the header `Last-Event-ID`, else
/// `?since=`: events after it are sent. Pieces of a model's text that are not durable yet are between them, as `delta`
/// without an `id`. A piece that no client receives is not kept, and no piece moves the cursor.
pub(crate) async fn answer(app: Shared, source: Source, headers: &HeaderMap, params: &Params) -> Answer {
    let resumed = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::trim);
    let since = match resumed {
        Some(text) => cursor("the header Last-Event-ID", text)?,
        None => cursor("since", params.text("since").unwrap_or("0"))?,
    };
    let form = Form::asked(params)?;
    if !wants_stream(headers, params) {
        return page(&app, &source.filter, since, params.number("limit", PAGE, 1, MOST)?, form).await;
    }
    let feed = Feed { form, ..Feed::open(app, source, since).await? };
    if feed.source.ended && feed.read.is_empty() && feed.reset.is_none() && resumed.is_some() {
        // This status stops an EventSource from reconnecting.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    Ok(reply::streamed(Sse::new(frames(feed)).keep_alive(keep_alive)))
}

/// Reads a cursor that a client gives back.
fn cursor(field: &str, text: &str) -> Result<StreamCursor, Failure> {
    let wrong =
        || OjsError::invalid_request(field, "must be the number or the `id` of an event of this stream");
    StreamCursor::parse(text.trim()).ok_or_else(|| wrong().into())
}

fn wants_stream(headers: &HeaderMap, params: &Params) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    accepts.contains("text/event-stream") || matches!(params.text("stream"), Some("true" | "1"))
}

async fn page(app: &Shared, filter: &EventFilter, since: StreamCursor, limit: u32, form: Form) -> Answer {
    let views = &app.api.store.views;
    let mut events = match views.feed_events_after(filter, since, limit + 1).await {
        Err(StoreError::CursorLost { cursor }) => {
            return Err(Reset::of_stream(views, filter, cursor).await?.into_error().into());
        }
        events => events?,
    };
    let has_more = events.len() > limit as usize;
    events.truncate(limit as usize);
    let cursor = events.last().map_or(since, place);
    let events = events.iter().map(|event| form.write(event)).collect();
    Ok(reply::ok(&EventPage { events, cursor: cursor.seq, cursor_id: cursor.to_string(), has_more }))
}

/// Returns the position behind an event.
fn place(event: &FeedEvent) -> StreamCursor {
    StreamCursor { seq: event.cursor.seq, commit: Some(event.cursor.commit) }
}

/// An event of a stream that is followed.
pub(crate) struct Noted {
    event: FeedEvent,
    /// True if a job ended with it, and nothing followed at the time of the read.
    over: bool,
}

impl Deref for Noted {
    type Target = FeedEvent;

    fn deref(&self) -> &FeedEvent {
        &self.event
    }
}

impl Placed for Noted {
    fn place(&self) -> i64 {
        self.event.cursor.seq
    }

    fn size(&self) -> usize {
        // Events carry excerpts of long content; this is about the most that one takes.
        4096
    }
}

/// A stream and its followers.
pub(crate) struct Followed {
    filter: EventFilter,
    together: SharedStream<Noted>,
    _hook: Hook,
}

impl Followed {
    fn new(bells: &Arc<Bells>, filter: EventFilter, name: &str) -> Self {
        let together = SharedStream::new();
        let hook = bells.hang(name, &together.bell);
        Self { filter, together, _hook: hook }
    }

    async fn read(&self, views: &Views, after: StreamCursor) -> Result<Page<Noted>, StoreError> {
        let events = views.feed_events_after(&self.filter, after, PAGE).await?;
        let more = events.len() >= PAGE as usize;
        let mut noted = Vec::with_capacity(events.len());
        for event in events {
            // The end of a job that was tried again is not its end.
            let over = match event.job_id.as_ref().filter(|_| event.name.ends_job()) {
                Some(job) => self.has_ended(views, job).await,
                None => false,
            };
            noted.push(Arc::new(Noted { event, over }));
        }
        Ok(Page { events: noted, more })
    }

    /// Returns true if nothing follows the end of this job: another job of the engagement may have begun meanwhile, or
    /// the job may have been tried again.
    async fn has_ended(&self, views: &Views, job: &JobId) -> bool {
        if let EventFilter::Engagement(id) = &self.filter {
            let latest: Result<_, StoreError> = views.engagement(id).await;
            if matches!(latest, Ok(Some((_, _, latest))) if latest != *job) {
                return false;
            }
        }
        !matches!(views.job(job).await, Ok(Some(job)) if !job.state.is_terminal())
    }
}

/// One client's stream. It mostly waits, so its reads are boxed: a future is as large as its largest path.
pub(crate) struct Feed {
    app: Shared,
    source: Source,
    form: Form,
    followed: Arc<Followed>,
    wakes: watch::Receiver<u64>,
    ear: Option<Ear>,
    /// The newest turn whose answer was sent as an event: pieces that arrive afterwards are late.
    answered: Option<(JobId, i64)>,
    cursor: StreamCursor,
    /// The resets of the stream when the cursor was checked.
    resets: u64,
    /// The reset that is sent before the events that were read.
    reset: Option<Reset>,
    read: VecDeque<Arc<Noted>>,
    /// True if there may be more without waiting.
    more: bool,
    /// True if the store did not answer: there may be more, but not before the next notification.
    failed: bool,
    /// True if the end of the job was sent.
    over: bool,
}

fn frames(feed: Feed) -> impl Stream<Item = Result<Frame, Infallible>> + Send {
    futures::stream::unfold(feed, |mut feed| async move {
        let said = feed.next().await?;
        Some((Ok(frame(said, feed.form)), feed))
    })
}

/// A frame of the stream.
pub(crate) enum StreamFrame {
    /// An event.
    Event(Arc<Noted>),
    /// The stream begins anew: the database does not have what was sent.
    Reset(Reset),
    /// A piece of the text that a model is writing.
    Delta(Arc<Piece>),
}

fn frame(said: StreamFrame, form: Form) -> Frame {
    match said {
        StreamFrame::Event(event) => {
            let frame = Frame::default().id(place(&event).to_string()).event(event.name.as_str());
            frame.data(reply::text(&form.write(&event)).unwrap_or_default())
        }
        StreamFrame::Reset(reset) => reset.into_frame(),
        StreamFrame::Delta(piece) => {
            let Piece { job, turn, offset, text, .. } = &*piece;
            let data = json!({"job_id": job, "turn": turn, "offset": offset, "text": text});
            Frame::default().event("delta").data(data.to_string())
        }
    }
}

/// The reason why a stream stops waiting.
enum Woken {
    /// There may be new events.
    Look,
    /// A model wrote a piece.
    Heard(Arc<Piece>),
    /// The server drains.
    Draining,
}

impl Feed {
    /// Subscribes, and reads the events after `since`.
    pub(crate) async fn open(app: Shared, source: Source, since: StreamCursor) -> Result<Self, StoreError> {
        let followed = app.feeds.follow(source.filter.clone(), || {
            Followed::new(&app.bells, source.filter.clone(), &source.bell_name)
        });
        let wakes = followed.together.bell.listen();
        let ear = source.live.as_ref().map(|id| app.api.store.doorbell.live().listen(id));
        let (views, resets) = (&app.api.store.views, followed.together.resets());
        let (mut cursor, mut reset) = (since, None);
        let first = match followed.read(views, since).await {
            Err(StoreError::CursorLost { cursor: lost }) => {
                cursor = StreamCursor::default();
                reset = Some(Reset::of_stream(views, &source.filter, lost).await?);
                followed.read(views, cursor).await?
            }
            first => first?,
        };
        Ok(Self {
            app,
            source,
            form: Form::default(),
            followed,
            wakes,
            ear,
            answered: None,
            cursor,
            resets,
            reset,
            more: first.more,
            read: first.events.into(),
            failed: false,
            over: false,
        })
    }

    /// Returns the next event or piece of an answer; waits for it. `None` when the job has ended and everything was
    /// sent, or when the server drains.
    pub(crate) async fn next(&mut self) -> Option<StreamFrame> {
        loop {
            if let Some(reset) = self.reset.take() {
                return Some(StreamFrame::Reset(reset));
            }
            if let Some(event) = self.read.pop_front() {
                self.cursor = place(&event);
                if event.completes(Phase::Infer) {
                    self.answered = event.job_id.clone().map(|job| (job, event.turn));
                }
                if event.name.ends_job() {
                    self.over = event.over;
                }
                return Some(StreamFrame::Event(event));
            }
            let complete = (self.over || self.source.ended) && !self.more && !self.failed;
            if complete || self.app.api.shutdown.is_cancelled() {
                return None;
            }
            if !self.more {
                match self.woken().await {
                    Woken::Look if self.followed.together.bell.rang_for_the_last_time() => return None,
                    Woken::Look => {}
                    Woken::Heard(piece) if self.is_late(&piece) => continue,
                    Woken::Heard(piece) => return Some(StreamFrame::Delta(piece)),
                    Woken::Draining => return None,
                }
            }
            self.look().await;
        }
    }

    #[boxed]
    async fn look(&mut self) {
        let (rings, others) = (*self.wakes.borrow_and_update(), Arc::strong_count(&self.followed) > 1);
        let (views, followed) = (&self.app.api.store.views, &self.followed);
        let own = self.cursor;
        let read = |after: i64, newest: Option<Arc<Noted>>| async move {
            let from = match newest.as_deref().filter(|newest| Placed::place(*newest) == after) {
                Some(newest) => place(newest),
                None if own.seq == after => own,
                None => StreamCursor::after(after),
            };
            followed.read(views, from).await.map_err(Unread::from)
        };
        let look = followed.together.look((rings, self.resets), own.seq, others, read).await;
        let failed = matches!(look, Look::Failed);
        let page = match look {
            Look::Found(page) => page,
            Look::Behind => {
                let resets = followed.together.resets();
                let read = followed.read(views, own).await;
                match alone(read.map_err(Unread::from)).await {
                    Some(page) => {
                        self.resets = resets;
                        page
                    }
                    None => return self.begin_anew().await,
                }
            }
            Look::Failed => Page::default(),
        };
        self.failed = failed;
        self.more = page.more;
        self.read = page.events.into();
    }

    /// Reads from the beginning, after a reset.
    async fn begin_anew(&mut self) {
        let lost = self.cursor.to_string();
        match Reset::of_stream(&self.app.api.store.views, &self.source.filter, lost).await {
            Ok(reset) => {
                self.resets = self.followed.together.resets();
                (self.reset, self.cursor, self.over) = (Some(reset), StreamCursor::default(), false);
                (self.more, self.failed) = (true, false);
            }
            // The cursor is looked up again.
            Err(error) => {
                tracing::debug!(%error, "the newest event could not be read");
                tokio::time::sleep(POLL).await;
                self.more = true;
            }
        }
    }

    /// Waits until there may be something new. Notifications go before pieces: an event from before a model's piece is
    /// sent before that piece.
    async fn woken(&mut self) -> Woken {
        tokio::select! {
            biased;
            () = self.app.api.shutdown.cancelled() => Woken::Draining,
            // The hook exists as long as the stream is followed.
            _ = self.wakes.changed() => Woken::Look,
            piece = heard(&mut self.ear) => Woken::Heard(piece),
        }
    }

    /// Returns true if the whole answer was sent already.
    fn is_late(&self, piece: &Piece) -> bool {
        self.answered.as_ref().is_some_and(|(job, turn)| *job == piece.job && piece.turn <= *turn)
    }
}

async fn heard(ear: &mut Option<Ear>) -> Arc<Piece> {
    match ear {
        Some(ear) => ear.hear().await,
        None => std::future::pending().await,
    }
}
