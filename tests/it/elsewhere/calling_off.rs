//! What nobody waits for any more is called off on the other server, wherever the job stood, and whoever dies meanwhile.

use super::gateway::{self, Fate};
use super::{PROTOCOLS, Site, remote, who};
use crate::program::PATIENCE;
use axum::http::StatusCode;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use turnstone_tests::wait::{until, until_within};
use turnstone_tests::{Gate, ModelServer, Reply, model_server};

const ASKING: (&str, &str) = ("front", "capabilities: {scout: {}, ask-user: {}}\n");
const FRONT: (&str, &str) = ("front", "capabilities: {scout: {}}\n");

/// Front asks the scout, which asks its user.
fn asking(request: &Value) -> Reply {
    match (who(request).as_str(), model_server::outcomes(request)) {
        ("scout", 0) => Reply::call("ask-user", json!({"question": "Which city?"})),
        ("front", 0) => Reply::call("scout", json!({"input": "a trip"})),
        (name, _) => Reply::text(format!("{name} has heard")),
    }
}

/// Front asks the scout, whose answer is kept back.
fn thinking(gate: Gate) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| match (who(request).as_str(), model_server::outcomes(request)) {
        ("front", 0) => Reply::call("scout", json!({"input": "a trip"})),
        ("front", _) => Reply::text("front has heard"),
        _ => Reply::text("done").behind(&gate),
    }
}

fn ends_something(body: &str) -> bool {
    body.contains("CancelRequest") || body.contains("CancelTask")
}

async fn cancel(site: &Site, job: &str) {
    let (status, body) = site.send(Method::POST, &format!("/ojs/v1/jobs/{job}/cancel"), &json!({})).await;
    assert!(status < 300, "{body}");
    site.in_state(job, &["cancelled"]).await;
}

async fn called_off(far: &Site) {
    // Who took it may have died with it: another one takes it a minute later.
    until_within("the work elsewhere is cancelled", PATIENCE * 3, async || {
        let scouts = far.engagements("scout").await;
        !scouts.is_empty() && scouts.iter().all(|scout| scout["status"] == "cancelled")
    })
    .await;
}

/// Issue 7, "Cancel": a job that is parked with a question of the other agent is held by no worker; who cancels it calls that one
/// off, though the other server cannot be reached at first and this one is killed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_job_that_is_cancelled_is_called_off_whoever_dies() {
    for (protocol, place) in PROTOCOLS {
        let models = ModelServer::start(asking).await;
        let far = Site::start(&models.url, "", &[("scout", "capabilities: {ask-user: {}}\n")]).await;
        let (down, tries) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (closed, count) = (Arc::clone(&down), Arc::clone(&tries));
        let judge = move |body: &str| {
            if !ends_something(body) {
                return Fate::Passes;
            }
            count.fetch_add(1, Ordering::SeqCst);
            match closed.load(Ordering::SeqCst) {
                true => Fate::Refused(StatusCode::SERVICE_UNAVAILABLE),
                false => Fate::Passes,
            }
        };
        let (between, serving) = gateway::before(&far.url, judge).await;
        let mut near = Site::start(&models.url, &remote(protocol, place, &between, ""), &[ASKING]).await;
        let job = near.push("front").await;
        near.in_state(&job, &["waiting-for-input"]).await;
        cancel(&near, &job).await;
        until("it was tried", async || tries.load(Ordering::SeqCst) > 0).await;
        near.kill().await;
        down.store(false, Ordering::SeqCst);
        near.revive().await;
        called_off(&far).await;
        near.stop().await;
        far.stop().await;
        serving.abort();
    }
}

/// Issue 7, "Cancel": a job that is cancelled while the request that begins the work has no answer yet calls off what may have
/// begun. Where nobody can know what that is called, an event says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_have_begun_is_called_off() {
    for (protocol, place) in PROTOCOLS {
        let models = ModelServer::start(thinking(Gate::default())).await;
        let far = Site::start(&models.url, "", &[("scout", "")]).await;
        let judge = |body: &str| match body.contains("ChatRequest") || body.contains("SendMessage") {
            true => Fate::Silence,
            false => Fate::Passes,
        };
        let (between, serving) = gateway::before(&far.url, judge).await;
        let near = Site::start(&models.url, &remote(protocol, place, &between, ""), &[FRONT]).await;
        let job = near.push("front").await;
        // Front and scout have been asked.
        models.seen(2).await;
        cancel(&near, &job).await;
        if protocol == "a2a" {
            told_in_vain(&near, &job, "whether a task has begun").await;
        } else {
            called_off(&far).await;
        }
        near.stop().await;
        far.stop().await;
        serving.abort();
    }
}

/// Issue 7, "Cancel": work that began although every answer to the request for it was lost is called off when the call has failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_began_without_an_answer_is_called_off() {
    let models = ModelServer::start(thinking(Gate::default())).await;
    let far = Site::start(&models.url, "", &[("scout", "")]).await;
    let judge = |body: &str| match body.contains("ChatRequest") {
        true => Fate::Unanswered,
        false => Fate::Passes,
    };
    let (between, serving) = gateway::before(&far.url, judge).await;
    let settings = remote("agent-protocol", "agents", &between, "");
    let near = Site::start(&models.url, &settings, &[FRONT]).await;
    let job = near.push("front").await;
    near.in_state(&job, &["completed", "failed"]).await;
    called_off(&far).await;
    near.stop().await;
    far.stop().await;
    serving.abort();
}

/// Issue 7, "Cancel": a server that refuses for good is not asked for ever, and an event says that it may go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_called_off_is_told() {
    for (protocol, place) in PROTOCOLS {
        let models = ModelServer::start(asking).await;
        let far = Site::start(&models.url, "", &[("scout", "capabilities: {ask-user: {}}\n")]).await;
        let judge = |body: &str| match ends_something(body) {
            true => Fate::Refused(StatusCode::FORBIDDEN),
            false => Fate::Passes,
        };
        let (between, serving) = gateway::before(&far.url, judge).await;
        let near = Site::start(&models.url, &remote(protocol, place, &between, ""), &[ASKING]).await;
        let job = near.push("front").await;
        near.in_state(&job, &["waiting-for-input"]).await;
        cancel(&near, &job).await;
        told_in_vain(&near, &job, "403").await;
        near.stop().await;
        far.stop().await;
        serving.abort();
    }
}

async fn told_in_vain(site: &Site, job: &str, words: &str) {
    let engagement = site.engagement(job).await["engagement_id"].as_str().unwrap().to_owned();
    let events = format!("/engagements/{engagement}/events?limit=1000");
    until("an event reports the failed cancellation", async || {
        let told = site.get(&events).await.to_string();
        told.contains("tool.not_called_off") && told.contains(words)
    })
    .await;
}

/// Issue 7: so many turns wait for other servers without a slot, and no more; those beyond keep theirs, so nothing else is claimed
/// into memory, and all of them come to their end.
#[tokio::test]
async fn a_worker_takes_no_more_than_may_wait_elsewhere() {
    let gate = Gate::default();
    let models = ModelServer::start(thinking(gate.clone())).await;
    let far = Site::start(&models.url, "", &[("scout", "")]).await;
    let settings = remote("agent-protocol", "agents", &far.url, "");
    let settings = settings.replace("[remote]\n", "[worker]\nslots = 1\n[remote]\nwaiting = 1\n");
    let near = Site::start(&models.url, &settings, &[FRONT]).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(near.push("front").await);
    }
    // One waits without a slot, the other one in the only slot that there is.
    models.seen(4).await;
    until("both wait", async || far.engagements("scout").await.len() == 2).await;
    let mut queued = 0;
    for job in &jobs {
        queued += usize::from(near.engagement(job).await["status"] == "queued");
    }
    assert_eq!(queued, 1, "the third one is in nobody's memory");
    gate.open();
    for job in &jobs {
        let state = near.in_state(job, &["completed", "failed"]).await;
        assert_eq!(state["status"], "completed", "{state:#}");
    }
    near.stop().await;
    far.stop().await;
}
