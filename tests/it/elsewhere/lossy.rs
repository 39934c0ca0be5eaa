//! A gateway that loses answers: what it swallows is sent again, and has one effect.

use super::{PROTOCOLS, Site, remote, told, who};
use crate::program::PATIENCE;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method as HttpMethod, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_tests::fleet::until;
use turnstone_tests::{ModelServer, Reply, model_server};

/// What stands between the two servers.
struct Gateway {
    far: String,
    http: Client,
    /// Answers of users that came through, each of which it answers with 502 the first time.
    answers: AtomicUsize,
}

async fn pass(
    State(gateway): State<Arc<Gateway>>,
    method: HttpMethod,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let is_answer = {
        let text = String::from_utf8_lossy(&body);
        text.contains("ResumeWithInput") || (text.contains("SendMessage") && text.contains("\"taskId\""))
    };
    let mut request = gateway.http.request(method, format!("{}{uri}", gateway.far)).body(body);
    for name in [header::HOST, header::CONTENT_TYPE, header::ACCEPT, "a2a-version".parse().unwrap()] {
        if let Some(value) = headers.get(&name) {
            request = request.header(name, value);
        }
    }
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
    let body = answer.bytes().await.unwrap();
    if is_answer && gateway.answers.fetch_add(1, Ordering::SeqCst) % 2 == 0 {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let mut response = (status, body).into_response();
    if let Some(kind) = kind {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}

/// Front asks the scout, which asks twice for the same key.
fn script(request: &Value) -> Reply {
    match (who(request).as_str(), model_server::outcomes(request)) {
        ("scout", 0) => Reply::call("ask-user", json!({"question": "Which city?"})),
        ("scout", 1) => Reply::call("ask-user", json!({"question": "Delete all?"})),
        ("scout", _) => Reply::text(format!("done {}", told(request))),
        (_, 0) => Reply::call("scout", json!({"input": "a trip"})),
        (_, _) => Reply::text(format!("heard {}", told(request))),
    }
}

/// Issue 7, "Human in the loop": an answer whose reply is lost is given again, and is not the answer to the next question, though
/// that one asks for the same key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_sent_again_is_no_answer_to_the_next_question() {
    for (protocol, place) in PROTOCOLS {
        let models = ModelServer::start(script).await;
        let far = Site::start(&models.url, "", &[("scout", "capabilities: {ask-user: {}}\n")]).await;
        let gateway = Arc::new(Gateway {
            far: far.url.clone(),
            http: Client::builder().no_proxy().build().unwrap(),
            answers: AtomicUsize::new(0),
        });
        let app = Router::new().fallback(pass).with_state(Arc::clone(&gateway));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let between = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, app).await });
        let front = ("front", "capabilities: {scout: {}, ask-user: {}}\n");
        let near = Site::start(&models.url, &remote(protocol, place, &between, ""), &[front]).await;
        let job = near.push("front").await;
        let mut before = Value::Null;
        for (words, answer) in [("Which city?", "Oslo"), ("Delete all?", "no")] {
            until(words, PATIENCE, async || {
                let call = near.engagement(&job).await["awaiting"]["call_id"].clone();
                call.is_string() && call != before
            })
            .await;
            let state = near.engagement(&job).await;
            assert!(state["awaiting"]["prompt"].as_str().unwrap().contains(words), "{protocol}: {state:#}");
            before = state["awaiting"]["call_id"].clone();
            let place = format!("/engagements/{}/answer", state["engagement_id"].as_str().unwrap());
            let (status, body) =
                near.send(Method::POST, &place, &json!({"answers": {"answer": answer}})).await;
            assert_eq!(status, 200, "{protocol}: {body}");
        }
        let state = near.in_state(&job, &["completed", "failed"]).await;
        let text = state["results"]["text"].as_str().unwrap_or_default();
        assert!(
            text.contains("done") && text.contains("no") && !text.contains("Oslo"),
            "{protocol}: {state:#}"
        );
        assert!(gateway.answers.load(Ordering::SeqCst) >= 2, "{protocol}: both came through");
        let scouts = far.engagements("scout").await;
        assert_eq!((scouts.len(), models.count()), (1, 5), "{protocol}: nobody was asked twice");
        near.stop().await;
        far.stop().await;
        serving.abort();
    }
}
