//! Event streams: a page of JSON, or server-sent events that resume where the client stopped; in our own form or as CloudEvents.

use crate::api::Shared;
use crate::reply::{self, Answer, Failure};
use crate::request::Params;
use crate::show;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures::Stream;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use turnstone_domain::event::Event;
use turnstone_domain::feed::FeedEvent;
use turnstone_domain::{EngagementId, EventName, JobId};
use turnstone_ojs::{OjsError, cloud_event};
use turnstone_store::{Ear, EventFilter, Piece, Ring, StoreError};

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
    /// Whose models are heard while they speak; only on streams.
    pub(crate) live: Option<EngagementId>,
}

/// How events are written.
#[derive(Clone, Copy, Default)]
enum Form {
    /// As the stream numbers them.
    #[default]
    Own,
    /// As the feed tells them: CloudEvents 1.0.
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

    fn write(self, event: FeedEvent) -> Value {
        match self {
            Self::Cloud => Value::Object(cloud_event(&event)),
            Self::Own => show::event(&Event {
                seq: event.cursor.seq,
                name: event.name,
                job_id: event.job_id.unwrap_or_else(|| JobId(String::new())),
                engagement_id: event.engagement_id,
                turn: event.turn,
                data: event.data,
                at: event.at,
            }),
        }
    }
}

/// Answers with a page or with a stream, as the client asks.
///
/// `?stream=true` or `Accept: text/event-stream` makes it a stream. The cursor is the header `Last-Event-ID`, else
/// `?since=`: events after it are sent. What a model says before its turn is durable stands between them, as `delta`
/// without an `id`: it is lost when nobody listens, and moves no cursor.
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
    let form = Form::asked(params)?;
    if !wants_stream(headers, params) {
        return page(&app, &source.filter, since, params.number("limit", PAGE, 1, MOST)?, form).await;
    }
    let feed = Feed { form, ..Feed::open(app, source, since).await? };
    if feed.source.ended && feed.read.is_empty() && resumed.is_some() {
        // What tells an EventSource that it need not come back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    Ok(Sse::new(frames(feed)).keep_alive(keep_alive).into_response())
}

fn wants_stream(headers: &HeaderMap, params: &Params) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    accepts.contains("text/event-stream") || matches!(params.text("stream"), Some("true" | "1"))
}

async fn page(app: &Shared, filter: &EventFilter, since: i64, limit: u32, form: Form) -> Answer {
    let mut events = app.api.store.views.feed_events_after(filter, since, limit + 1).await?;
    let has_more = events.len() > limit as usize;
    events.truncate(limit as usize);
    let cursor = events.last().map_or(since, |event| event.cursor.seq);
    let events: Vec<_> = events.into_iter().map(|event| form.write(event)).collect();
    Ok(reply::ok(&json!({"events": events, "cursor": cursor, "has_more": has_more})))
}

/// One client's stream.
pub(crate) struct Feed {
    app: Shared,
    source: Source,
    form: Form,
    bell: Receiver<Ring>,
    ear: Option<Ear>,
    /// The newest turn whose answer was sent as an event: what is heard of it afterwards is late.
    answered: Option<(JobId, i64)>,
    cursor: i64,
    read: VecDeque<FeedEvent>,
    /// Whether the last look found everything there was.
    exhausted: bool,
    /// Whether the end of the job was sent.
    over: bool,
}

fn frames(feed: Feed) -> impl Stream<Item = Result<Frame, Infallible>> + Send {
    futures::stream::unfold(feed, |mut feed| async move {
        let said = feed.next().await?;
        Some((Ok(frame(said, feed.form)), feed))
    })
}

/// What is sent.
pub(crate) enum Said {
    /// Something that happened.
    Event(Box<FeedEvent>),
    /// A piece of what a model is saying.
    Delta(Piece),
}

fn frame(said: Said, form: Form) -> Frame {
    match said {
        Said::Event(event) => {
            let frame = Frame::default().id(event.cursor.seq.to_string()).event(event.name.as_str());
            frame.data(form.write(*event).to_string())
        }
        Said::Delta(Piece { job, turn, offset, text, .. }) => {
            let data = json!({"job_id": job, "turn": turn, "offset": offset, "text": text});
            Frame::default().event("delta").data(data.to_string())
        }
    }
}

/// Why a stream stops waiting.
enum Woken {
    /// There may be new events.
    Look,
    /// A model said something.
    Heard(Piece),
    /// The server drains.
    Draining,
}

impl Feed {
    /// Listens, and reads what there is after `since`.
    pub(crate) async fn open(app: Shared, source: Source, since: i64) -> Result<Self, StoreError> {
        let bell = app.api.store.doorbell.listen();
        let ear = source.live.as_ref().map(|id| app.api.store.doorbell.live().listen(id));
        let first = app.api.store.views.feed_events_after(&source.filter, since, PAGE).await?;
        let exhausted = first.len() < PAGE as usize;
        let (form, answered, over) = (Form::default(), None, false);
        Ok(Self {
            app,
            source,
            form,
            bell,
            ear,
            answered,
            cursor: since,
            exhausted,
            read: first.into(),
            over,
        })
    }

    /// The next event or piece of an answer; waits for it. `None` when the job has ended and everything was sent, or when the server drains.
    pub(crate) async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.cursor = event.cursor.seq;
                if event.name == EventName::PhaseCompleted && event.data["phase"] == "infer" {
                    self.answered = event.job_id.clone().map(|job| (job, event.turn));
                }
                // The end of a job that was tried again is not its end.
                if let Some(job) = event.job_id.as_ref().filter(|_| event.name.ends_job()) {
                    self.over = self.has_ended(job).await;
                }
                return Some(Said::Event(Box::new(event)));
            }
            let complete = (self.over || self.source.ended) && self.exhausted;
            if complete || self.app.api.shutdown.is_cancelled() {
                return None;
            }
            if self.exhausted {
                match self.rung().await {
                    Woken::Look => {}
                    Woken::Heard(piece) if self.is_late(&piece) => continue,
                    Woken::Heard(piece) => return Some(Said::Delta(piece)),
                    Woken::Draining => return None,
                }
            }
            self.look().await;
        }
    }

    async fn look(&mut self) {
        match self.app.api.store.views.feed_events_after(&self.source.filter, self.cursor, PAGE).await {
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

    /// Waits until there may be something new. Rings go before pieces: an event that was rung before a model spoke is sent
    /// before what it said.
    async fn rung(&mut self) -> Woken {
        let poll = tokio::time::sleep(POLL);
        tokio::pin!(poll);
        loop {
            tokio::select! {
                biased;
                () = self.app.api.shutdown.cancelled() => return Woken::Draining,
                ring = self.bell.recv() => match ring {
                    Ok(Ring::Events(name)) if name == self.source.bell_name => return Woken::Look,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return Woken::Look,
                    Err(RecvError::Closed) => {
                        poll.await;
                        return Woken::Look;
                    }
                },
                piece = heard(&mut self.ear) => return Woken::Heard(piece),
                () = &mut poll => return Woken::Look,
            }
        }
    }

    /// Whether the whole answer was sent already.
    fn is_late(&self, piece: &Piece) -> bool {
        self.answered.as_ref().is_some_and(|(job, turn)| *job == piece.job && piece.turn <= *turn)
    }

    /// Whether nothing follows the end of this job: an engagement may have begun another one meanwhile, and somebody may
    /// have had the job tried again.
    async fn has_ended(&self, job: &JobId) -> bool {
        let views = &self.app.api.store.views;
        if let EventFilter::Engagement(id) = &self.source.filter {
            let latest: Result<_, StoreError> = views.engagement(id).await;
            if matches!(latest, Ok(Some((_, _, latest))) if latest != *job) {
                return false;
            }
        }
        !matches!(views.job(job).await, Ok(Some(job)) if !job.state.is_terminal())
    }
}

async fn heard(ear: &mut Option<Ear>) -> Piece {
    match ear {
        Some(ear) => ear.hear().await,
        None => std::future::pending().await,
    }
}
