//! A freeze of the fleet or of a tenant: no new call of a model or a tool within a second, until it is lifted.

use super::Client;
use crate::program::run;
use crate::stores::on_stores;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use turnstone_domain::JobState;
use turnstone_tests::model_server::{newest, outcomes};
use turnstone_tests::{Backend, Fleet, Gate, OjsServer, Reply, binaries, wait};
use turnstone_worker::model::{ModelDefaults, ProviderConfig, Providers};

on_stores!(
    everywhere: [],
    sqlite_first: [
        a_frozen_fleet_begins_no_call_and_loses_none,
        a_frozen_tenant_begins_no_call_and_holds_no_other,
        a_call_that_waits_for_a_place_is_frozen,
        calls_beyond_the_first_of_an_answer_are_frozen,
        a_repeated_call_is_frozen,
        a_guardrail_is_frozen,
    ],
);

/// The time within which a freeze holds.
const A_SECOND: Duration = Duration::from_secs(1);

const AGENT: &str = "kind: openagentspec:v1/agent\nname: booker\ndescription: An agent that books.\n\
                     intent: You book.\nowner: olga\ncapabilities:\n  book: {user_identity: false}\n";

async fn begun(server: &OjsServer, tenant: &str, input: &str) -> String {
    let job = json!({"type": "agent.book", "args": [input], "meta": {"agent": "booker"}}).to_string();
    let header = [("X-OJS-Tenant", tenant)];
    let reply = server.send(Method::POST, "/ojs/v1/jobs", &header, job).await.expect(201);
    reply.json()["job"]["id"].as_str().unwrap().to_owned()
}

/// Runs `turnstone freeze` and returns its output.
async fn turnstone(server: &OjsServer, arguments: &[&str]) -> String {
    let folder = turnstone_tests::scratch::folder();
    let all = [&["freeze", "--url", server.fleet.url.as_str()][..], arguments].concat();
    let ran = run(folder.path(), &all, &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.trim().to_owned()
}

/// Freezes the fleet over HTTP, and waits until the freeze holds.
async fn frozen(fleet: &Fleet) {
    let (status, body) = fleet.send(Method::PUT, "/freeze", "").await;
    assert_eq!(status.as_u16(), 200, "{body}");
    held().await;
}

/// Waits for the time within which a freeze holds.
async fn held() {
    assert!(!wait::holds(A_SECOND, async || false).await);
}

async fn lifted(fleet: &Fleet) {
    let (status, body) = fleet.send(Method::DELETE, "/freeze", "").await;
    assert_eq!(status.as_u16(), 200, "{body}");
}

/// Asserts that the calls of models and tools are these, and remain so for a while.
async fn stay(fleet: &Fleet, (models, tools): (usize, usize)) {
    let others = async || (fleet.models.count(), fleet.tools.calls().len()) != (models, tools);
    let changed = wait::holds(A_SECOND, others).await;
    assert!(!changed, "{} models, {:?}", fleet.models.count(), fleet.tools.calls());
}

/// A model that books once per job. Inputs that begin with `slow` are answered behind the gate.
fn books(gate: &Gate) -> impl Fn(&Value) -> Reply + Send + Sync + 'static {
    let gate = gate.clone();
    move |request| match outcomes(request) {
        0 if newest(request).starts_with("slow") => Reply::call("book", json!({"price": 1})).behind(&gate),
        0 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("booked"),
    }
}

/// Answers in flight are kept, also when their worker is replaced, and every call is made once.
#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_frozen_fleet_begins_no_call_and_loses_none(backend: Backend) {
    // The first use builds the program and blocks this thread; a call in flight would time out meanwhile.
    binaries::turnstone();
    let (models, tools) = (Gate::default(), Gate::default());
    let fleet = Fleet::builder().on(backend).model(books(&models)).start().await;
    let mut server = OjsServer::over(fleet);
    server.post_text("/agents", AGENT).await.expect(201);
    server.fleet.tools.hold(&tools);
    let mut jobs = vec![begun(&server, "alpha", "slow").await, begun(&server, "beta", "quick").await];
    server.fleet.models.seen(2).await;
    server.fleet.tools.seen(1).await;

    assert_eq!(turnstone(&server, &["set", "--reason", "wrong mails"]).await, "the whole fleet is frozen");
    assert!(turnstone(&server, &["list"]).await.contains("wrong mails"));
    held().await;
    jobs.push(begun(&server, "gamma", "late").await);
    server.fleet.wait_for(&jobs[2], &[JobState::Active]).await;
    models.open();
    tools.open();
    stay(&server.fleet, (2, 1)).await;
    let kept = "SELECT count(*) FROM tool_calls WHERE state = 'settled'";
    server.fleet.until("the tool's answer is kept", async || server.fleet.number(kept).await == 1).await;
    let spent = async || server.fleet.job(&jobs[0]).await["ext_agent_tokens_used"].as_i64() > Some(0);
    server.fleet.until("the model's answer is kept", spent).await;

    // Another worker takes over, and is frozen as well.
    server.fleet.stop_workers().await;
    server.fleet.add_worker(16);
    for id in &jobs {
        server.fleet.wait_for(id, &[JobState::Active]).await;
    }
    stay(&server.fleet, (2, 1)).await;
    let alpha = Client::of(&server, "alpha", "operator").await;
    alpha.send(Method::DELETE, "/freeze", &Value::Null).await.expect(404);

    assert_eq!(turnstone(&server, &["lift"]).await, "the whole fleet is no longer frozen");
    for id in &jobs {
        server.fleet.wait_for(id, &[JobState::Completed]).await;
    }
    let calls = server.fleet.tools.calls();
    let keys: HashSet<&str> = calls.iter().map(|call| call.key.as_str()).collect();
    assert_eq!((server.fleet.models.count(), calls.len(), keys.len()), (6, 3, 3));
    server.fleet.end().await;
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_frozen_tenant_begins_no_call_and_holds_no_other(backend: Backend) {
    binaries::turnstone();
    let gate = Gate::default();
    let server = OjsServer::over(Fleet::builder().on(backend).model(books(&gate)).start().await);
    server.post_text("/agents", AGENT).await.expect(201);
    let alpha = Client::of(&server, "alpha", "operator").await;
    let beta = Client::of(&server, "beta", "operator").await;
    let in_flight = begun(&server, "alpha", "slow").await;
    server.fleet.models.seen(1).await;

    alpha.send(Method::PUT, "/freeze", &json!({"tenant": "beta"})).await.expect(403);
    assert_eq!(turnstone(&server, &["set", "--tenant", "alpha"]).await, "tenant alpha is frozen");
    let frozen = alpha.send(Method::PUT, "/freeze", &json!({"reason": "wrong mails"})).await.expect(200);
    assert_eq!(
        (&frozen.json()["tenant"], &frozen.json()["frozen_by"]),
        (&json!("alpha"), &json!("alpha/operator-of-alpha"))
    );
    held().await;
    let (late, free) = (begun(&server, "alpha", "late").await, begun(&server, "beta", "free").await);
    server.fleet.wait_for(&late, &[JobState::Active]).await;
    server.fleet.wait_for(&free, &[JobState::Completed]).await;
    gate.open();
    stay(&server.fleet, (3, 1)).await;
    assert_eq!(beta.get("/freeze").await.expect(200).json()["freezes"], json!([]));
    beta.send(Method::DELETE, "/freeze", &Value::Null).await.expect(404);
    for id in [&in_flight, &late] {
        assert_eq!(server.job(id).await["state"], "active");
    }
    alpha.send(Method::DELETE, "/freeze", &Value::Null).await.expect(200);
    for id in [&in_flight, &late] {
        server.fleet.wait_for(id, &[JobState::Completed]).await;
    }
    assert_eq!((server.fleet.models.count(), server.fleet.tools.calls().len()), (6, 3));
    server.fleet.end().await;
}

/// A call that waited for a place among the provider's calls before the freeze is not begun after it.
async fn a_call_that_waits_for_a_place_is_frozen(backend: Backend) {
    let gate = Gate::default();
    let behind = gate.clone();
    let slow = move |_: &Value| Reply::text("done").behind(&behind);
    let mut fleet = Fleet::builder().on(backend).workers(0).model(slow).start().await;
    let config = json!({"kind": "openai", "base_url": fleet.models.url, "concurrency": 1});
    let config: ProviderConfig = serde_json::from_value(config).unwrap();
    let defaults = ModelDefaults { provider: Some("test".to_owned()), model: Some("m".to_owned()) };
    let providers = Providers::from_config(&[("test".to_owned(), config)].into(), defaults, ".".as_ref());
    let providers = providers.unwrap();
    fleet.add_worker_with(4, |mut deps| {
        deps.providers = providers;
        deps
    });
    let mut jobs = Vec::new();
    for _ in 0..2 {
        jobs.push(fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await);
    }
    for id in &jobs {
        fleet.wait_for(id, &[JobState::Active]).await;
    }
    fleet.models.seen(1).await;
    frozen(&fleet).await;
    gate.open();
    let one = "SELECT count(*) FROM jobs WHERE state = 'completed'";
    fleet.until("the first job ends", async || fleet.number(one).await == 1).await;
    stay(&fleet, (1, 0)).await;
    lifted(&fleet).await;
    for id in &jobs {
        fleet.wait_for(id, &[JobState::Completed]).await;
    }
    assert_eq!(fleet.models.count(), 2);
    fleet.end().await;
}

/// Of many calls of one answer, those that wait for the first ones are not begun after a freeze.
async fn calls_beyond_the_first_of_an_answer_are_frozen(backend: Backend) {
    let script = |request: &Value| match outcomes(request) {
        0 => {
            let calls = (0..10).map(|n| ("search".to_owned(), json!({"n": n})));
            Reply::Calls(calls.collect(), (12, 7))
        }
        _ => Reply::text("done"),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: desk, version: 1.0.0}\nspec:\n  role: You find.\n  \
                    llm: {provider: openai, model: m}\n  tools:\n    - {type: http, name: search, parallel: true}\n";
    fleet.register(manifest).await;
    let gate = Gate::default();
    fleet.tools.hold(&gate);
    let id = fleet
        .push(&json!({"type": "agent.find", "args": ["go"], "meta": {"agent": "desk"}, "ext_agent_token_budget": 100_000}))
        .await;
    fleet.tools.seen(8).await;
    frozen(&fleet).await;
    gate.open();
    stay(&fleet, (1, 8)).await;
    lifted(&fleet).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    let keys: HashSet<String> = fleet.tools.calls().into_iter().map(|call| call.key).collect();
    assert_eq!((fleet.tools.calls().len(), keys.len(), fleet.models.count()), (10, 10, 2));
    fleet.end().await;
}

/// A repetition that a client requests (agent control, tool-retry) waits like any other call.
async fn a_repeated_call_is_frozen(backend: Backend) {
    let gate = Gate::default();
    let behind = gate.clone();
    let script = move |request: &Value| match outcomes(request) {
        _ if request["messages"].to_string().contains("was made again") => Reply::text("done"),
        0 => Reply::call("search", json!({"q": 1})),
        _ => Reply::call("web_search", json!({})).behind(&behind),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    let id = fleet
        .push(&json!({"type": "agent.x", "args": ["go"], "ext_agent_model": "m", "ext_agent_token_budget": 100_000,
                      "ext_agent_tools": [{"name": "search"}, {"name": "web_search"}]}))
        .await;
    fleet.models.seen(2).await;
    let calls = fleet.get(&format!("/engagements/{}/tool-calls", fleet.engagement_of(&id).await)).await;
    let call = calls["tool_calls"][0]["call_id"].clone();
    let (status, answer) = fleet.post(&format!("/ojs/v1/agents/{id}/pause"), &json!({})).await;
    assert!(status.is_success(), "{answer}");
    let retry = json!({"tool_call_id": call});
    let (status, answer) = fleet.post(&format!("/ojs/v1/agents/{id}/tool-retry"), &retry).await;
    assert!(status.is_success(), "{answer}");
    gate.open();
    let paused = "SELECT count(*) FROM jobs WHERE state = 'available' AND held = 1";
    fleet.until("the job is given back", async || fleet.number(paused).await == 1).await;
    let made = fleet.tools.calls().len();
    frozen(&fleet).await;
    let (status, answer) = fleet.post(&format!("/ojs/v1/agents/{id}/resume"), &json!({})).await;
    assert!(status.is_success(), "{answer}");
    fleet.wait_for(&id, &[JobState::Active]).await;
    stay(&fleet, (2, made)).await;
    lifted(&fleet).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(fleet.tools.calls_of("search"), 2);
    fleet.end().await;
}

/// The tool of a guardrail is not called either, and an answer in flight is kept.
async fn a_guardrail_is_frozen(backend: Backend) {
    let gate = Gate::default();
    let behind = gate.clone();
    let script = move |_: &Value| Reply::text("done").behind(&behind);
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    let agent = AGENT.replace(
        "capabilities:\n  book: {user_identity: false}\n",
        "guardrails:\n  output: {tool_name: search, assertion: \"tool == 'search'\"}\n",
    );
    server.post_text("/agents", agent).await.expect(201);
    let id = begun(&server, "alpha", "hi").await;
    server.fleet.models.seen(1).await;
    frozen(&server.fleet).await;
    gate.open();
    stay(&server.fleet, (1, 0)).await;
    lifted(&server.fleet).await;
    server.fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!((server.fleet.models.count(), server.fleet.tools.calls_of("search")), (1, 1));
    server.fleet.end().await;
}
