//! Readers of events that follow all the time, and the verdict over what they saw.

use eventsource_stream::Eventsource as _;
use futures::StreamExt as _;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::task::AbortOnDropHandle;
use turnstone_tests::wait::{self, Pauses};

/// The cursor before all events of the feed.
const START: &str = "evt_0.0.0";

/// A step of a reader.
#[derive(Clone, Debug)]
enum Step {
    /// It received this event.
    Event(Value),
    /// Its cursor was refused, with the place where to begin.
    Reset,
}

/// The ways to read.
#[derive(Clone, Debug)]
enum Way {
    /// The feed as a stream.
    Stream,
    /// The feed in pages.
    Pages,
    /// The stream of one engagement.
    Engagement(String),
}

/// A reader. It reads until it is dropped.
pub(super) struct Reader {
    /// Its name in messages.
    pub(super) name: &'static str,
    way: Way,
    steps: Arc<Mutex<Vec<Step>>>,
    _reading: AbortOnDropHandle<()>,
}

impl Reader {
    /// Starts one that follows the stream of the feed.
    pub(super) fn of_stream(url: &str) -> Self {
        Self::start("stream", url, Way::Stream)
    }

    /// Starts one that reads the feed in pages.
    pub(super) fn of_pages(url: &str) -> Self {
        Self::start("pages", url, Way::Pages)
    }

    /// Starts one that follows the stream of an engagement.
    pub(super) fn of_engagement(url: &str, engagement: String) -> Self {
        Self::start("engagement", url, Way::Engagement(engagement))
    }

    fn start(name: &'static str, url: &str, way: Way) -> Self {
        let steps: Arc<Mutex<Vec<Step>>> = Arc::default();
        let reading = read(url.to_owned(), way.clone(), Arc::clone(&steps));
        Self { name, way, steps, _reading: AbortOnDropHandle::new(tokio::spawn(reading)) }
    }

    fn steps(&self) -> Vec<Step> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it is at the end, and compares what it saw with all events.
    pub(super) async fn verdict(&self, url: &str) -> Verdict {
        let all = match &self.way {
            Way::Stream | Way::Pages => feed(url).await,
            Way::Engagement(id) => events_of(url, id).await,
        };
        let at_the_end = async || matches!((self.steps().last(), all.last()), (Some(Step::Event(seen)), Some(last)) if seen == last);
        // A reader that never comes there has a verdict, too.
        wait::holds(CATCH_UP, at_the_end).await;
        Verdict::of(&self.steps(), &all)
    }
}

/// The time for readers to see the newest events.
const CATCH_UP: std::time::Duration = std::time::Duration::from_secs(10);

/// The difference between what a reader saw since it last began, and the events of the database.
#[derive(Default, Debug)]
pub(super) struct Verdict {
    /// The events of the database.
    #[expect(dead_code, reason = "printed with the outcome")]
    events: usize,
    /// The number of times that its cursor was refused.
    pub(super) resets: usize,
    /// Events after its first one that it did not see.
    pub(super) missing: usize,
    /// Events that it saw since, and that the database does not have.
    pub(super) unknown: usize,
    /// Events that it saw a second time, or in another order.
    pub(super) disordered: usize,
}

impl Verdict {
    fn of(steps: &[Step], all: &[Value]) -> Self {
        let resets = steps.iter().filter(|step| matches!(step, Step::Reset)).count();
        let last = steps.iter().rev().take_while(|step| !matches!(step, Step::Reset));
        let mut seen: Vec<String> = last
            .filter_map(|step| match step {
                Step::Event(event) => Some(event.to_string()),
                Step::Reset => None,
            })
            .collect();
        seen.reverse();
        let all: HashMap<String, usize> =
            all.iter().enumerate().map(|(place, event)| (event.to_string(), place)).collect();
        let places: Vec<usize> = seen.iter().filter_map(|event| all.get(event).copied()).collect();
        // A reader whose cursor was refused knows that it may have missed what is before its first event.
        let first = if resets == 0 { 0 } else { places.first().copied().unwrap_or(all.len()) };
        let distinct: std::collections::BTreeSet<usize> = places.iter().copied().collect();
        Self {
            events: all.len(),
            resets,
            missing: (first..all.len()).filter(|place| !distinct.contains(place)).count(),
            unknown: seen.len() - places.len(),
            disordered: places.windows(2).filter(|pair| pair[1] <= pair[0]).count(),
        }
    }

    /// Returns true if something is amiss and the reader got no refusal.
    pub(super) fn is_silent(&self) -> bool {
        self.missing + self.unknown + self.disordered > 0
    }
}

/// Reads for ever, from the beginning.
async fn read(url: String, way: Way, steps: Arc<Mutex<Vec<Step>>>) {
    let (http, mut pauses) = (turnstone_tests::http::client(), Pauses::default());
    let mut cursor = match way {
        Way::Engagement(_) => None,
        Way::Stream | Way::Pages => Some(START.to_owned()),
    };
    let note = |step: Step| steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    loop {
        if let Ok(answer) = request(&http, &url, &way, cursor.as_deref()).await {
            match answer.status() {
                StatusCode::OK => {
                    let followed = match way {
                        Way::Pages => page(answer, &mut cursor, &note).await,
                        _ => stream(answer, &mut cursor, &note).await,
                    };
                    if followed > 0 {
                        pauses = Pauses::default();
                    }
                }
                StatusCode::CONFLICT => {
                    let body: Value = answer.json().await.unwrap_or_default();
                    let begin = &body["error"]["details"]["begin"];
                    let begin = begin.as_str().map_or_else(|| begin.to_string(), str::to_owned);
                    assert_ne!(
                        begin, "null",
                        "the refusal of a cursor does not say where to begin: {body:#}"
                    );
                    cursor = Some(begin);
                    note(Step::Reset);
                }
                // The stream has ended, or the database is away.
                StatusCode::NO_CONTENT | StatusCode::SERVICE_UNAVAILABLE => {}
                other => panic!("a reader gets {other}: {}", answer.text().await.unwrap_or_default()),
            }
        }
        pauses.next().await;
    }
}

async fn request(http: &Client, url: &str, way: &Way, cursor: Option<&str>) -> reqwest::Result<Response> {
    let request = match way {
        Way::Pages => {
            return http
                .get(format!("{url}/ojs/v1/events?limit=50&after={}", cursor.unwrap_or(START)))
                .send()
                .await;
        }
        Way::Stream => http.get(format!("{url}/ojs/v1/events/stream")),
        Way::Engagement(id) => http.get(format!("{url}/engagements/{id}/events")),
    };
    let request = request.header("accept", "text/event-stream");
    match cursor {
        Some(cursor) => request.header("last-event-id", cursor).send().await,
        None => request.send().await,
    }
}

/// Reads a page; returns its number of events.
async fn page(answer: Response, cursor: &mut Option<String>, mut note: impl FnMut(Step)) -> usize {
    let Ok(mut page) = answer.json::<Value>().await else { return 0 };
    let events = page["events"].as_array_mut().map(std::mem::take).unwrap_or_default();
    *cursor = page["cursor"].as_str().map(str::to_owned);
    let count = events.len();
    events.into_iter().for_each(|event| note(Step::Event(event)));
    count
}

/// Reads a stream until it breaks or ends; returns its number of events.
async fn stream(answer: Response, cursor: &mut Option<String>, mut note: impl FnMut(Step)) -> usize {
    let mut frames = Box::pin(answer.bytes_stream().eventsource());
    let mut count = 0;
    while let Some(Ok(frame)) = frames.next().await {
        match frame.event.as_str() {
            // A piece of a text that is not stored yet.
            "delta" => continue,
            "reset" => note(Step::Reset),
            _ => note(Step::Event(serde_json::from_str(&frame.data).expect("JSON"))),
        }
        *cursor = Some(frame.id);
        count += 1;
    }
    count
}

/// Returns all events of the feed, in pages from the beginning.
pub(super) async fn feed(url: &str) -> Vec<Value> {
    let (http, mut all, mut cursor) = (turnstone_tests::http::client(), Vec::new(), Some(START.to_owned()));
    loop {
        let answer = request(&http, url, &Way::Pages, cursor.as_deref()).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK, "the feed cannot be read from its beginning");
        let note = |step| {
            if let Step::Event(event) = step {
                all.push(event);
            }
        };
        if page(answer, &mut cursor, note).await == 0 {
            return all;
        }
    }
}

/// Returns all events of an engagement that has ended.
async fn events_of(url: &str, engagement: &str) -> Vec<Value> {
    let url = format!("{url}/engagements/{engagement}/events");
    let all = turnstone_tests::sse::read(&url, None, |_| false).await;
    all.iter().filter(|event| event.event != "delta").map(turnstone_tests::sse::data).collect()
}
