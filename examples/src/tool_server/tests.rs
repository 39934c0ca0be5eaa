//! The tool server as its callers see it, over a real socket.

use super::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn serve() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, tool_server()).await });
    address
}

async fn send(
    address: std::net::SocketAddr,
    method: &str,
    path: &str,
    key: &str,
    body: Value,
) -> (u16, Value) {
    let body = if method == "GET" { String::new() } else { body.to_string() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         idempotency-key: {key}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn search_ranks_by_shared_words() {
    let address = serve().await;
    let (status, found) = send(
        address,
        "POST",
        "/search",
        "k",
        json!({"query": "Summarize recent developments in quantum computing"}),
    )
    .await;
    assert_eq!(status, 200);
    let scores: Vec<u64> =
        found["results"].as_array().unwrap().iter().map(|result| result["score"].as_u64().unwrap()).collect();
    assert!(scores.len() == 4 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert_eq!(found["results"][0]["url"], "https://quantum.example/2025/12/year-in-review");
    let (_, nothing) = send(address, "POST", "/search", "k", json!({"query": "sourdough"})).await;
    assert_eq!(nothing["results"], json!([]));
    assert_eq!(send(address, "POST", "/search", "k", json!({"query": 1})).await.0, 422);
}

#[tokio::test]
async fn the_same_key_books_once_and_the_log_shows_every_call() {
    let address = serve().await;
    let requested = json!({"flight": "TS204", "price": 640});
    let (status, first) = send(address, "POST", "/flights/book", "k1", requested.clone()).await;
    assert_eq!((status, &first["reference"]), (201, &json!("TS-0001")));
    assert_eq!(send(address, "POST", "/flights/book", "k1", requested.clone()).await.1, first);
    assert_eq!(send(address, "POST", "/flights/book", "k1", json!({"flight": "TS118"})).await.0, 422);
    assert_eq!(send(address, "POST", "/flights/book", "k2", requested).await.1["reference"], "TS-0002");
    assert_eq!(send(address, "POST", "/flights/book", "k3", json!({"flight": "XX1"})).await.0, 404);
    let (_, log) = send(address, "GET", "/log", "", Value::Null).await;
    assert_eq!((&log["total"], log["bookings"].as_array().unwrap().len()), (&json!(5), 2));
    assert_eq!(
        (&log["calls"][1]["idempotency_key"], &log["calls"][1]["path"]),
        (&json!("k1"), &json!("/flights/book"))
    );
}

#[tokio::test]
async fn flights_and_answers_are_found() {
    let address = serve().await;
    let (_, found) = send(
        address,
        "POST",
        "/flights/search",
        "k",
        json!({"from": "Berlin", "to": "Lisbon", "date": "2026-03-02"}),
    )
    .await;
    assert_eq!((&found["flights"][0]["price"], &found["flights"][0]["to"]), (&json!(640), &json!("Lisbon")));
    let (_, all) = send(address, "POST", "/faqs/search", "k", json!({"query": "refund"})).await;
    assert!(all["pages"].as_array().unwrap().iter().any(|page| page["path"] == "internal/refund-limits"));
    let (_, public) =
        send(address, "POST", "/faqs/search", "k", json!({"query": "refund", "path": "public/"})).await;
    assert_eq!(public["pages"][0]["path"], "public/refunds");
    assert!(
        public["pages"]
            .as_array()
            .unwrap()
            .iter()
            .all(|page| page["path"].as_str().unwrap().starts_with("public/"))
    );
}
