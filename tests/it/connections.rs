//! Clients that connect and send too little or too much.

use futures::StreamExt as _;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnstone_api::ServeLimits;
use turnstone_tests::{Fleet, wait};

const SHORT: Duration = Duration::from_millis(500);

async fn fleet(limits: ServeLimits) -> Fleet {
    Fleet::builder().workers(0).serve_limits(limits).start().await
}

async fn connect(fleet: &Fleet, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(fleet.url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream
}

/// Reads until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let read = wait::output("the connection ends", stream.read_to_end(&mut text)).await;
    drop(read);
    String::from_utf8(text).unwrap()
}

/// Reads until this many answers have arrived.
async fn answers(stream: &mut TcpStream, count: usize) -> String {
    let mut text = String::new();
    while text.matches("HTTP/1.1 ").count() < count {
        let mut part = [0; 4096];
        let read = wait::output("an answer", stream.read(&mut part)).await.unwrap();
        assert!(read > 0, "it ended after {text}");
        text.push_str(std::str::from_utf8(&part[..read]).unwrap());
    }
    text
}

#[tokio::test]
async fn half_sent_headers_are_closed_and_live_streams_stay() {
    let fleet =
        fleet(ServeLimits { header: SHORT, body: SHORT, idle: SHORT, ..ServeLimits::default() }).await;
    let id = "0190a7b2-0000-7000-8000-000000000001";
    let job = json!({"type": "a.b", "args": [], "id": id});
    let http = turnstone_tests::http::client();
    let jobs = format!("{}/ojs/v1/jobs", fleet.url);
    assert_eq!(http.post(&jobs).json(&job).send().await.unwrap().status(), 201);
    let mut stream = http.get(format!("{jobs}/{id}/events?stream=true")).send().await.unwrap().bytes_stream();
    let first = wait::output("the first event", stream.next()).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("job.enqueued"));

    let mut half = Vec::new();
    for sent in ["", "GET /livez HTTP/1.1\r\n", "GET /livez HTTP/1.1\r\nHost: a\r\nX-A: "] {
        for _ in 0..20 {
            half.push(connect(&fleet, sent).await);
        }
    }
    // Single bytes do not extend the deadline.
    let mut dripping = connect(&fleet, "GET /livez HTTP/1.1\r\nX-A: ").await;
    wait::until("the dripping client is closed", async || dripping.write_all(b"a").await.is_err()).await;
    for stream in &mut half {
        assert_eq!(rest(stream).await, "");
    }

    // The stream was open for longer than all of them.
    assert_eq!(http.post(format!("{jobs}/{id}/cancel")).send().await.unwrap().status(), 200);
    let mut seen = String::new();
    while !seen.contains("job.cancelled") {
        let part = wait::output("the next event", stream.next()).await.expect("it is open").unwrap();
        seen.push_str(&String::from_utf8_lossy(&part));
    }
    fleet.end().await;
}

#[tokio::test]
async fn a_body_that_stops_is_closed() {
    let fleet = fleet(ServeLimits { body: SHORT, ..ServeLimits::default() }).await;
    let head = "POST /ojs/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{\"type\"";
    let answer = rest(&mut connect(&fleet, head).await).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("before it was complete"), "{answer}");
    // A slow client is closed, too, although it keeps sending.
    let mut slow = connect(&fleet, head).await;
    wait::until("the slow client is closed", async || slow.write_all(b" ").await.is_err()).await;
    fleet.end().await;
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_order_and_an_idle_connection_is_closed() {
    let fleet = fleet(ServeLimits { idle: SHORT, ..ServeLimits::default() }).await;
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let all: String = ["/livez", "/nowhere", "/livez", "/nowhere"].map(request).concat();
    let mut stream = connect(&fleet, &all).await;
    let text = answers(&mut stream, 4).await;
    let codes: Vec<&str> =
        text.split("HTTP/1.1 ").skip(1).map(|answer| answer.split_once(' ').unwrap().0).collect();
    assert_eq!(codes, ["200", "404", "200", "404"], "{text}");
    rest(&mut stream).await;
    fleet.end().await;
}

#[tokio::test]
async fn connections_above_the_limit_are_refused_until_there_is_room() {
    let fleet = fleet(ServeLimits { connections: 3, ..ServeLimits::default() }).await;
    let request = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(&fleet, request).await;
        answers(&mut stream, 1).await;
        open.push(stream);
    }
    let mut refused = TcpStream::connect(fleet.url.trim_start_matches("http://")).await.unwrap();
    let answer = rest(&mut refused).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("Retry-After"), "{answer}");
    open.pop();
    wait::until("there is room", async || {
        let mut stream = connect(&fleet, request).await;
        let mut part = [0; 12];
        stream.read_exact(&mut part).await.is_ok_and(|_| part.ends_with(b"200"))
    })
    .await;
    fleet.end().await;
}
