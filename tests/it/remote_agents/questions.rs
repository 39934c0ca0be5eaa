//! A remote agent's question to its user reaches our user, when the calling agent may ask its user at all.

use super::{PROTOCOLS, Site, remote, tool_outcome, who};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::wait::until;
use turnstone_tests::{ModelServer, Reply, model_server};

const SCOUT: (&str, &str) = ("scout", "capabilities: {ask-user: {}}\n");

/// Front calls the scout, which asks twice, and repeats its answer.
fn script(request: &Value) -> Reply {
    match (who(request), model_server::outcomes(request)) {
        ("scout", 0) => Reply::call("ask-user", json!({"request_keys": {"city": "Which city?"}})),
        ("scout", 1) => Reply::call("ask-user", json!({"question": "And when?"})),
        ("scout", _) => Reply::text(format!("done {}", tool_outcome(request))),
        (_, 0) => Reply::call("scout", json!({"input": "a trip"})),
        (_, _) => Reply::text(format!("heard {}", tool_outcome(request))),
    }
}

/// Issue 7, "Human in the loop": a remote agent's question parks the job here, survives a killed process, and is
/// answered once. The same remote call then resumes.
#[tokio::test]
async fn a_remote_question_reaches_the_local_user() {
    for (protocol, place) in PROTOCOLS {
        let models = ModelServer::start(script).await;
        let far = Site::start(&models.url, "", &[SCOUT]).await;
        let front = ("front", "capabilities: {scout: {}, ask-user: {}}\n");
        let mut near = Site::start(&models.url, &remote(protocol, place, &far.url, ""), &[front]).await;
        let job = near.push("front").await;
        let state = near.in_state(&job, &["waiting-for-input", "failed"]).await;
        assert_eq!(
            state["awaiting"]["request_keys"],
            json!({"city": "Which city?"}),
            "{protocol}: {state:#}"
        );
        near.kill().await;
        near.revive().await;
        let place = format!("/engagements/{}/answer", state["engagement_id"].as_str().unwrap());
        let (status, body) = near.send(Method::POST, &place, &json!({"answers": {"city": "Oslo"}})).await;
        assert_eq!(status, 200, "{protocol}: {body}");
        let first = state["awaiting"]["call_id"].clone();
        until("it asks the next question", async || {
            let call = near.engagement(&job).await["awaiting"]["call_id"].clone();
            !call.is_null() && call != first
        })
        .await;
        let state = near.engagement(&job).await;
        assert!(state["awaiting"]["prompt"].as_str().unwrap().contains("And when?"), "{protocol}: {state:#}");
        let (status, body) = near.send(Method::POST, &place, &json!({"answers": {"answer": "Monday"}})).await;
        assert_eq!(status, 200, "{protocol}: {body}");
        let state = near.in_state(&job, &["completed", "failed"]).await;
        let text = state["results"]["text"].as_str().unwrap_or_default();
        assert!(text.contains("done") && text.contains("Monday"), "{protocol}: {state:#}");
        assert_eq!(far.engagements("scout").await.len(), 1, "{protocol}: one piece of work");
        assert_eq!(models.count(), 5, "{protocol}: no model was called twice");
        near.stop().await;
        far.stop().await;
    }
}

/// Issue 7, "Bad input": an agent that may not ask its user receives an error, and the remote call is cancelled.
#[tokio::test]
async fn a_remote_question_without_a_user_fails_the_call() {
    for (protocol, place) in PROTOCOLS {
        let models = ModelServer::start(script).await;
        let far = Site::start(&models.url, "", &[SCOUT]).await;
        let front = ("front", "capabilities: {scout: {}}\n");
        let near = Site::start(&models.url, &remote(protocol, place, &far.url, ""), &[front]).await;
        let job = near.push("front").await;
        let state = near.in_state(&job, &["completed", "failed", "waiting-for-input"]).await;
        let text = state["results"]["text"].as_str().unwrap_or_default();
        assert!(text.contains("ask-user") && text.contains("Which city?"), "{protocol}: {state:#}");
        until("it is cancelled", async || {
            far.engagements("scout").await.iter().all(|scout| scout["status"] == "cancelled")
        })
        .await;
        near.stop().await;
        far.stop().await;
    }
}
