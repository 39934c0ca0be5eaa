//! Reading event streams with an independent client library.

use eventsource_stream::{Event, Eventsource};
use futures::StreamExt;
use std::time::Duration;

/// How long [`follow`] waits before it comes back.
const PAUSE: Duration = Duration::from_millis(50);
/// A stream that has not brought what is waited for by then never will.
const PATIENCE: Duration = Duration::from_secs(300);

/// Reads a stream to its end, or until `enough` says so. `after` is sent as `Last-Event-ID`.
///
/// # Panics
/// When neither happens in five minutes.
pub async fn read(url: &str, after: Option<&str>, enough: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let reading = read_to_the_end(url, after, enough);
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("{url} does not end"))
}

async fn read_to_the_end(url: &str, after: Option<&str>, enough: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
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

/// Reads a stream as an `EventSource` does: whenever it breaks or ends, it comes back after the last event that it has, until
/// `enough` says so. The address is asked for each time, because who comes back may have to go to another process.
pub async fn follow(url: impl Fn() -> String, mut enough: impl FnMut(&[Event]) -> bool) -> Vec<Event> {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let mut events: Vec<Event> = Vec::new();
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
        tokio::time::sleep(PAUSE).await;
    }
}
