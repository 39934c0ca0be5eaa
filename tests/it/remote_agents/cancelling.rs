//! A remote call without a waiting job is cancelled on the other server, in whichever state the job ended and
//! whichever process dies.

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

/// Front calls the scout, which asks its user.
fn asking(request: &Value) -> Reply {
    match (who(request), model_server::outcomes(request)) {
        ("scout", 0) => Reply::call("ask-user", json!({"question": "Which city?"})),
        ("front", 0) => Reply::call("scout", json!({"input": "a trip"})),
        (name, _) => Reply::text(format!("{name} received")),
    }
}

/// Front calls the scout, whose answer is held back.
fn thinking(gate: Gate) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| match (who(request), model_server::outcomes(request)) {
        ("front", 0) => Reply::call("scout", json!({"input": "a trip"})),
        ("front", _) => Reply::text("front received"),
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

async fn remotely_cancelled(far: &Site) {
    // The process that leased the cancellation may have died with it; another one leases it a minute later.
    until_within("the remote call is cancelled", PATIENCE * 3, async || {
        let scouts = far.engagements("scout").await;
        !scouts.is_empty() && scouts.iter().all(|scout| scout["status"] == "cancelled")
    })
    .await;
}

/// Issue 7, "Cancel": no worker holds a job that is parked with a question of the remote agent. Cancelling the job
/// cancels the remote call, although the other server is unreachable at first and this one is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_parked_job_cancels_its_remote_call_across_kills() {
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
        remotely_cancelled(&far).await;
        near.stop().await;
        far.stop().await;
        serving.abort();
    }
}

/// Issue 7, "Cancel": a job is cancelled before the request that begins the remote call is answered. The call that
/// may have begun is cancelled; where its id is unknown, an event reports it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: the time limits of real calls"]
async fn a_remote_call_that_may_have_begun_is_cancelled() {
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
        // Front and scout have called their models.
        models.seen(2).await;
        cancel(&near, &job).await;
        if protocol == "a2a" {
            reports_failure(&near, &job, "whether a task has begun").await;
        } else {
            remotely_cancelled(&far).await;
        }
        near.stop().await;
        far.stop().await;
        serving.abort();
    }
}

/// Issue 7, "Cancel": a remote call that began, although every answer to its request was lost, is cancelled when the
/// call has failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: the time limits of real calls"]
async fn a_remote_call_without_an_answer_is_cancelled() {
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
    remotely_cancelled(&far).await;
    near.stop().await;
    far.stop().await;
    serving.abort();
}

/// Issue 7, "Cancel": cancelling stops at a server that refuses for good, and an event reports that the call may
/// continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_remote_cancellation_is_an_event() {
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
        reports_failure(&near, &job, "403").await;
        near.stop().await;
        far.stop().await;
        serving.abort();
    }
}

async fn reports_failure(site: &Site, job: &str, words: &str) {
    let engagement = site.engagement(job).await["engagement_id"].as_str().unwrap().to_owned();
    let events = format!("/engagements/{engagement}/events?limit=1000");
    until("an event reports the failed cancellation", async || {
        let outcome = site.get(&events).await.to_string();
        outcome.contains("tool.not_cancelled") && outcome.contains(words)
    })
    .await;
}

/// Issue 7: a bounded number of turns waits for other servers without a slot. Further turns keep their slot, so no
/// further job is claimed, and all of them end.
#[tokio::test]
async fn a_worker_claims_no_more_than_may_wait_for_remote_agents() {
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
    // One turn waits without a slot, the other one in the only slot.
    models.seen(4).await;
    until("both wait", async || far.engagements("scout").await.len() == 2).await;
    let mut queued = 0;
    for job in &jobs {
        queued += usize::from(near.engagement(job).await["status"] == "queued");
    }
    assert_eq!(queued, 1, "the third one is not claimed");
    gate.open();
    for job in &jobs {
        let state = near.in_state(job, &["completed", "failed"]).await;
        assert_eq!(state["status"], "completed", "{state:#}");
    }
    near.stop().await;
    far.stop().await;
}
