//! Reading event streams with an independent client library.

use crate::wait::{self, Pauses};
use eventsource_stream::{Event, Eventsource};
use futures::StreamExt;
use serde_json::Value;
use std::time::Duration;

/// The deadline of a stream. Several leases may have to run out before it ends.
const PATIENCE: Duration = Duration::from_secs(300);

/// Reads a stream to its end, or until `enough` returns true. `after` is sent as `Last-Event-ID`.
///
/// # Panics
/// When neither happens in five minutes.
pub async fn read(url: &str, after: Option<&str>, enough: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let reading = read_to_the_end(url, after, enough);
    wait::output_within(&format!("the events of {url}"), PATIENCE, reading).await
}

async fn read_to_the_end(url: &str, after: Option<&str>, enough: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let client = crate::http::client();
    let mut request = client.get(url).header("accept", "text/event-stream");
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    let answer = request.send().await.expect("a stream");
    assert!(answer.status().is_success(), "{}", answer.status());
    let mut stream = Box::pin(answer.bytes_stream().eventsource());
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event.expect("an event"));
        if enough(&events) {
            break;
        }
    }
    events
}

/// Reads a stream as an `EventSource` does. After every break or end it connects again after its last event,
/// until `enough` returns true. The address is read each time, because another process may have to answer.
///
/// # Panics
/// When that does not happen in five minutes.
pub async fn follow(url: impl Fn() -> String, mut enough: impl FnMut(&[Event]) -> bool) -> Vec<Event> {
    let client = crate::http::client();
    let following = async {
        let mut events: Vec<Event> = Vec::new();
        let mut pauses = Pauses::default();
        loop {
            let mut request = client.get(url()).header("accept", "text/event-stream");
            if let Some(last) = events.last() {
                request = request.header("last-event-id", &last.id);
            }
            if let Ok(answer) = request.send().await
                && answer.status().is_success()
            {
                let mut stream = Box::pin(answer.bytes_stream().eventsource());
                while let Some(Ok(event)) = stream.next().await {
                    events.push(event);
                    if enough(&events) {
                        return events;
                    }
                }
            }
            pauses.next().await;
        }
    };
    wait::output_within("the last event of a stream", PATIENCE, following).await
}

/// Returns the number of an event in its stream.
///
/// # Panics
/// When its id is none of a stream.
#[must_use]
pub fn number(event: &Event) -> i64 {
    event.id.split('.').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Returns the data of an event.
///
/// # Panics
/// When it is no JSON.
#[must_use]
pub fn data(event: &Event) -> Value {
    serde_json::from_str(&event.data).expect("JSON")
}
