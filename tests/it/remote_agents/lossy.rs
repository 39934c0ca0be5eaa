//! A gateway that loses answers: a repeated request has one effect.

use super::gateway::{self, Fate};
use super::{PROTOCOLS, Site, remote, tool_outcome, who};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_tests::wait::until;
use turnstone_tests::{ModelServer, Reply, model_server};

/// Front calls the scout, which asks twice for the same key.
fn script(request: &Value) -> Reply {
    match (who(request), model_server::outcomes(request)) {
        ("scout", 0) => Reply::call("ask-user", json!({"question": "Which city?"})),
        ("scout", 1) => Reply::call("ask-user", json!({"question": "Delete all?"})),
        ("scout", _) => Reply::text(format!("done {}", tool_outcome(request))),
        (_, 0) => Reply::call("scout", json!({"input": "a trip"})),
        (_, _) => Reply::text(format!("heard {}", tool_outcome(request))),
    }
}

/// Issue 7, "Human in the loop": an answer is repeated because its reply was lost. It does not answer the next
/// question, although that one has the same key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_remote_answer_does_not_answer_the_next_question() {
    for (protocol, place) in PROTOCOLS {
        let models = ModelServer::start(script).await;
        let far = Site::start(&models.url, "", &[("scout", "capabilities: {ask-user: {}}\n")]).await;
        let answers = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&answers);
        let judge = move |body: &str| {
            let is_answer = body.contains("ResumeWithInput")
                || (body.contains("SendMessage") && body.contains("\"taskId\""));
            match is_answer && count.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
                true => Fate::Unanswered,
                false => Fate::Passes,
            }
        };
        let (between, serving) = gateway::before(&far.url, judge).await;
        let front = ("front", "capabilities: {scout: {}, ask-user: {}}\n");
        let near = Site::start(&models.url, &remote(protocol, place, &between, ""), &[front]).await;
        let job = near.push("front").await;
        let mut before = Value::Null;
        for (words, answer) in [("Which city?", "Oslo"), ("Delete all?", "no")] {
            until(words, async || {
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
        assert!(answers.load(Ordering::SeqCst) >= 2, "{protocol}: both came through");
        let scouts = far.engagements("scout").await;
        assert_eq!((scouts.len(), models.count()), (1, 5), "{protocol}: no model was called twice");
        near.stop().await;
        far.stop().await;
        serving.abort();
    }
}
