//! Event lists, streams and their end.

use super::server::Server;
use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode};
use futures::StreamExt;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

const ID: &str = "0190a7b2-0000-7000-8000-000000000001";

fn stream_request(path: &str, last_event_id: Option<&str>) -> Request<Body> {
    let request = Request::get(path).header("Accept", "text/event-stream");
    let request = match last_event_id {
        Some(id) => request.header("Last-Event-ID", id),
        None => request,
    };
    request.body(Body::empty()).unwrap()
}

async fn open(server: &Server, last_event_id: Option<&str>) -> BodyDataStream {
    let path = format!("/ojs/v1/jobs/{ID}/events");
    let response = server.router.clone().oneshot(stream_request(&path, last_event_id)).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response.into_body().into_data_stream()
}

async fn next(stream: &mut BodyDataStream) -> Option<String> {
    let chunk = tokio::time::timeout(Duration::from_secs(10), stream.next()).await.expect("an event in time");
    chunk.map(|bytes| String::from_utf8(bytes.unwrap().into()).unwrap())
}

#[tokio::test]
async fn a_stream_follows_the_job_to_its_end_and_resumes() {
    let server = Server::start().await;
    server.push(&json!({"type": "a.b", "args": [], "id": ID})).await;
    let mut stream = open(&server, None).await;
    let first = next(&mut stream).await.unwrap();
    assert!(first.contains("id: 1") && first.contains("event: job.enqueued"), "{first}");

    let cancelled = server.post(&format!("/ojs/v1/jobs/{ID}/cancel"), "").await;
    assert_eq!(cancelled.status, 200);
    let last = next(&mut stream).await.unwrap();
    assert!(last.contains("id: 2") && last.contains("event: job.cancelled"), "{last}");
    assert!(last.contains("\"previous_state\":\"available\""), "{last}");
    assert_eq!(next(&mut stream).await, None);

    let mut resumed = open(&server, Some("1")).await;
    assert!(next(&mut resumed).await.unwrap().contains("job.cancelled"));
    assert_eq!(next(&mut resumed).await, None);
    let path = format!("/ojs/v1/jobs/{ID}/events");
    assert_eq!(server.request(stream_request(&path, Some("2"))).await.status, 204);
    assert_eq!(server.request(stream_request(&path, Some("x"))).await.status, 400);
}

#[tokio::test]
async fn a_list_has_a_cursor() {
    let server = Server::start().await;
    server.push(&json!({"type": "a.b", "args": [], "id": ID})).await;
    server.post(&format!("/ojs/v1/jobs/{ID}/cancel"), "").await;
    let list = async |query: &str| server.get(&format!("/ojs/v1/jobs/{ID}/events?{query}")).await.json();
    let first = list("limit=1").await;
    assert_eq!((&first["cursor"], &first["has_more"]), (&json!(1), &json!(true)));
    assert_eq!(first["events"][0]["name"], "job.enqueued");
    assert!(first["events"][0]["at"].is_string());
    let rest = list("since=1").await;
    assert_eq!(
        (&rest["cursor"], &rest["has_more"], rest["events"].as_array().unwrap().len()),
        (&json!(2), &json!(false), 1)
    );
    assert_eq!(server.get(&format!("/ojs/v1/jobs/{ID}/events?since=-1")).await.status, 400);
}

#[tokio::test]
async fn an_open_stream_does_not_hold_up_the_drain() {
    let server = Server::start().await;
    server.push(&json!({"type": "a.b", "args": [], "id": ID})).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(crate::serve(
        listener,
        None,
        server.router.clone(),
        crate::ServeLimits::default(),
        server.shutdown.clone(),
    ));
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /ojs/v1/jobs/{ID}/events?stream=true HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("job.enqueued") {
        let mut chunk = [0; 4096];
        let read = client.read(&mut chunk).await.unwrap();
        assert!(read > 0, "the stream ended early");
        seen.extend_from_slice(&chunk[..read]);
    }
    server.shutdown.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(5), serving).await.expect("drained in time");
    ended.unwrap().unwrap();
}
