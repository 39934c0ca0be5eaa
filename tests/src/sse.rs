//! Reading event streams with an independent client library.

use eventsource_stream::{Event, Eventsource};
use futures::StreamExt;

/// Reads a stream to its end, or until `enough` says so. `after` is sent as `Last-Event-ID`.
pub async fn read(url: &str, after: Option<&str>, enough: impl Fn(&[Event]) -> bool) -> Vec<Event> {
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
