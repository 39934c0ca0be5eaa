//! A paused job cannot be claimed. A running one stops after its current phase and frees the slot.

use super::{agent_job, control, granted, reserved};
use crate::conformance::jobs;
use crate::fleet::Site;
use crate::policy::ask;
use crate::stores::on_stores;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::{JobState, TurnWrite};
use turnstone_store::{ClaimRequest, Doorbell, JobKind};
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Gate, Reply, model_server};

on_stores!(
    everywhere: [
        a_paused_job_is_not_claimed_until_it_is_resumed,
        a_running_job_pauses_after_its_phase_and_pays_nothing_twice,
        a_plain_job_keeps_the_lease_of_its_worker_and_is_held_afterwards,
        an_answer_to_a_review_does_not_resume_a_paused_job,
        an_invalid_pause_or_resume_is_refused,
    ],
    sqlite_first: [a_worker_that_is_not_notified_of_a_pause_calls_nothing_in_a_later_phase],
);

/// Claims all available jobs.
async fn claimable(fleet: &Fleet, kind: JobKind) -> Vec<turnstone_store::Claim> {
    let request = ClaimRequest {
        kind,
        queues: vec!["*".to_owned()],
        limit: 10,
        worker_id: "other".to_owned(),
        lease_ms: 60_000,
        tenant: None,
        runtime_tags: None,
        now: fleet.now(),
    };
    fleet.store.ledger.claim(request).await.unwrap()
}

async fn a_paused_job_is_not_claimed_until_it_is_resumed(backend: Backend) {
    let mut fleet = Fleet::builder().on(backend).workers(0).start().await;
    let (held, free) = (fleet.push(&agent_job("held")).await, fleet.push(&agent_job("free")).await);
    let paused = granted(&fleet, &held, "pause", json!({"reason": "a look first"})).await;
    assert_eq!((&paused["state"], &paused["job_state"]), (&json!("paused"), &json!("available")));
    // A second pause changes nothing.
    granted(&fleet, &held, "pause", json!({})).await;
    fleet.add_worker(1);
    fleet.wait_for(&free, &[JobState::Completed]).await;
    assert_eq!(fleet.job(&held).await["state"], "available");
    assert_eq!(fleet.models.calls().len(), 1);

    let resumed = granted(&fleet, &held, "resume", json!({"approved": true, "comment": "fine"})).await;
    assert_eq!(resumed["state"], "running");
    fleet.wait_for(&held, &[JobState::Completed]).await;
    let events = fleet.get(&format!("/ojs/v1/jobs/{held}/events")).await;
    let data = |name: &str| {
        let events = events["events"].as_array().unwrap().iter().filter(|e| e["name"] == name);
        events.map(|event| event["data"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(data("agent.paused"), [json!({"reason": "a look first"})]);
    assert_eq!(data("agent.resumed"), [json!({"approved": true, "comment": "fine"})]);
    fleet.end().await;
}

/// A model that makes one call, waits at the gate, and then answers.
fn gated(gate: &Gate) -> impl Fn(&Value) -> Reply + Send + Sync + 'static {
    let gate = gate.clone();
    move |request| match model_server::outcomes(request) {
        _ if request["messages"].to_string().contains("quick") => Reply::text("quick"),
        0 => Reply::call("search", json!({"q": 1})).behind(&gate),
        _ => Reply::text("done"),
    }
}

async fn a_running_job_pauses_after_its_phase_and_pays_nothing_twice(backend: Backend) {
    let gate = Gate::default();
    let mut fleet = Fleet::builder().on(backend).workers(0).model(gated(&gate)).start().await;
    fleet.add_worker(1);
    let id = fleet.push(&agent_job("slow")).await;
    fleet.models.seen(1).await;
    let paused = granted(&fleet, &id, "pause", json!({})).await;
    assert_eq!(paused["job_state"], "active", "the phase is not over: {paused}");
    let behind = fleet.push(&agent_job("quick")).await;
    gate.open();
    // The only slot is free again, and the paid answer is kept.
    fleet.wait_for(&behind, &[JobState::Completed]).await;
    let job = fleet.job(&id).await;
    assert_eq!(job["state"], "available", "{job:#}");
    assert_eq!(fleet.number("SELECT count(*) FROM jobs WHERE held = 1 AND lease_token IS NULL").await, 1);
    assert_eq!(reserved(&fleet).await, 0);
    assert!(fleet.tools.calls().is_empty(), "the phase after the pause began");
    let yielded = fleet.get(&format!("/ojs/v1/jobs/{id}/events")).await;
    let yielded = yielded["events"].as_array().unwrap().iter().find(|e| e["name"] == "job.yielded").cloned();
    assert_eq!(yielded.unwrap()["data"]["reason"], "paused");

    granted(&fleet, &id, "resume", json!({})).await;
    let done = fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(done["ext_agent_tokens_used"], 19 + 15);
    let slow = fleet.models.calls().iter().filter(|call| call.input() == "slow").count();
    assert_eq!(slow, 2, "a turn was paid for twice");
    assert_eq!(fleet.tools.calls().len(), 1);
    fleet.end().await;
}

/// The call during which a job is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum During {
    /// NORM.
    InputGuardrail,
    /// INFER.
    Model,
    /// INFER of a turn without calls.
    LastModel,
    /// EXEC.
    Tool,
}

impl During {
    /// Returns the numbers of model and tool calls before the job is resumed.
    fn calls(self) -> (usize, usize) {
        match self {
            Self::InputGuardrail => (0, 1),
            Self::Model | Self::LastModel => (1, 0),
            Self::Tool => (1, 1),
        }
    }

    fn guardrail(self) -> &'static str {
        match self {
            Self::InputGuardrail => "guardrails: {input: {tool_name: search, assertion: \"true\"}}",
            Self::LastModel => "guardrails: {output: {tool_name: search, assertion: \"true\"}}",
            Self::Model | Self::Tool => "",
        }
    }
}

/// The commit before the first call of a phase finds the pause. The phases are INFER after a guardrail of NORM or after
/// EXEC, EXEC after INFER, and EMIT with a guardrail.
async fn a_worker_that_is_not_notified_of_a_pause_calls_nothing_in_a_later_phase(backend: Backend) {
    for during in [During::InputGuardrail, During::Model, During::LastModel, During::Tool] {
        let gate = Gate::default();
        let behind = gate.clone();
        let script = move |request: &Value| {
            let reply = match model_server::outcomes(request) {
                0 if during != During::LastModel => Reply::call("book", json!({})),
                _ => Reply::text("done"),
            };
            if during == During::Tool { reply } else { reply.behind(&behind) }
        };
        let mut fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
        fleet.tools.hold(&gate);
        fleet.register(oas("agent", &format!("capabilities: {{book: {{}}}}\n{}", during.guardrail()))).await;
        let id = ask(&fleet, "agent").await;
        fleet.add_worker_with(1, |mut deps| {
            deps.doorbell = Doorbell::default();
            deps
        });
        let (models, tools) = during.calls();
        fleet.models.seen(models).await;
        fleet.tools.seen(tools).await;
        granted(&fleet, &id, "pause", json!({})).await;
        gate.open();
        fleet.wait_for(&id, &[JobState::Available]).await;
        let called = (fleet.models.calls().len(), fleet.tools.calls().len());
        assert_eq!(called, (models, tools), "{during:?}");
        assert_eq!(reserved(&fleet).await, 0, "{during:?}");
        granted(&fleet, &id, "resume", json!({})).await;
        fleet.wait_for(&id, &[JobState::Completed]).await;
        let turns = if during == During::LastModel { 1 } else { 2 };
        assert_eq!(fleet.models.calls().len(), turns, "{during:?}: a turn was paid for twice");
        fleet.end().await;
    }
}

async fn a_plain_job_keeps_the_lease_of_its_worker_and_is_held_afterwards(backend: Backend) {
    let fleet = Fleet::builder().on(backend).workers(0).start().await;
    let id = fleet.push(&json!({"type": "mail.send", "args": []})).await;
    let claim = claimable(&fleet, JobKind::Plain).await.pop().unwrap();
    granted(&fleet, &id, "pause", json!({})).await;
    let ledger = Arc::clone(&fleet.store.ledger);
    let standing = ledger.reads().standing(std::slice::from_ref(&claim.lease)).await.unwrap();
    assert_eq!((standing.lost, standing.paused), (vec![], vec![claim.lease.token.clone()]));
    ledger.checkpoint(&claim.lease, TurnWrite::default(), fleet.now(), 60_000).await.unwrap();
    ledger.release(&[claim.lease], fleet.now()).await.unwrap();
    assert!(claimable(&fleet, JobKind::Plain).await.is_empty());
    granted(&fleet, &id, "resume", json!({})).await;
    let claim = claimable(&fleet, JobKind::Plain).await.pop().unwrap();
    ledger.settle(&claim.lease, TurnWrite::default(), jobs::complete(), fleet.now()).await.unwrap();
    let (status, body) = control(&fleet, &id, "pause", json!({})).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{body}");
    fleet.end().await;
}

const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: asker
description: An agent that asks first.
intent: You book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      require_review: manager
"#;

async fn an_answer_to_a_review_does_not_resume_a_paused_job(backend: Backend) {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({})),
        _ => Reply::text("booked"),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    fleet.register(AGENT).await;
    let id = fleet.push(&json!({"type": "agent.book", "args": ["go"], "meta": {"agent": "asker"}})).await;
    fleet.wait_for(&id, &[JobState::Pending]).await;
    granted(&fleet, &id, "pause", json!({})).await;
    let review = fleet.get("/reviews?state=open").await["items"][0]["id"].as_str().unwrap().to_owned();
    let (status, _) = fleet.post(&format!("/reviews/{review}/approve"), &json!({"by": "manager"})).await;
    assert_eq!(status, StatusCode::OK);
    let behind = fleet.push(&json!({"type": "agent.book", "args": ["go"], "ext_agent_model": "m"})).await;
    fleet.wait_for(&behind, &[JobState::Completed]).await;
    assert_eq!(fleet.job(&id).await["state"], "available");
    assert!(fleet.tools.calls().is_empty());
    granted(&fleet, &id, "resume", json!({})).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(fleet.tools.calls().len(), 1);
    fleet.end().await;
}

async fn an_invalid_pause_or_resume_is_refused(backend: Backend) {
    let fleet = Fleet::builder().on(backend).workers(0).start().await;
    let id = fleet.push(&json!({"type": "mail.send", "args": []})).await;
    let unknown = "01890000-0000-7000-8000-000000000000";
    for (id, verb, body, status) in [
        (unknown, "pause", json!({}), 404),
        (unknown, "resume", json!({}), 404),
        (&id, "resume", json!({}), 422),
        (&id, "pause", json!({"reason": 3}), 400),
        (&id, "pause", json!([]), 400),
    ] {
        let (got, answer) = control(&fleet, id, verb, body).await;
        assert_eq!(got.as_u16(), status, "{verb}: {answer}");
        assert!(answer["error"]["hint"].is_string(), "{answer}");
    }
    // The body is optional, and the SDKs' path is the same endpoint.
    let path = format!("/v1/agent/jobs/{id}");
    let (status, answer) = fleet.send(reqwest::Method::POST, &format!("{path}/pause"), "").await;
    assert_eq!((status.as_u16(), &answer["state"]), (200, &json!("paused")), "{answer}");
    let (status, answer) = fleet.send(reqwest::Method::POST, &format!("{path}/resume"), "").await;
    assert_eq!((status.as_u16(), &answer["state"]), (200, &json!("running")), "{answer}");
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_in_another_process_releases_a_paused_job_after_its_phase() {
    let gate = Gate::default();
    let site = Site::start(gated(&gate)).await;
    let worker = site.worker("far", &["--slots", "1"], &[]).await;
    let id = site.push("slow").await;
    site.fleet.models.seen(1).await;
    granted(&site.fleet, &id, "pause", json!({})).await;
    gate.open();
    let given = "SELECT count(*) FROM jobs WHERE state = 'available' AND held = 1";
    site.fleet.until("the job is given back", async || site.fleet.number(given).await == 1).await;
    assert_eq!(reserved(&site.fleet).await, 0);
    granted(&site.fleet, &id, "resume", json!({})).await;
    site.fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(site.fleet.models.calls().len(), 2, "a turn was paid for twice");
    worker.stop().await;
    site.fleet.end().await;
}
