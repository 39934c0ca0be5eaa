//! Definitions that come with an import: they run only if a registered agent, a known key or the checks of a push admit them.

use super::{exported, imported, job, runs_again, trip};
use crate::agent_spec::{job as flow_job, llm, part, register};
use crate::stores::on_stores;
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::{AgentDefinition, Clock, Ids, JobState};
use turnstone_ojs::attest::PublicKey;
use turnstone_tests::model_server::ModelCall;
use turnstone_tests::{Backend, Fleet, Reply, wait};
use turnstone_worker::tool::ToolPolicy;

on_stores!(
    everywhere: [
        a_claimed_digest_replaces_no_agent,
        an_import_starts_no_program,
        an_import_lifts_no_review,
    ],
    sqlite_first: [
        every_way_to_run_a_foreign_import_is_refused,
        a_registered_agent_lets_its_imports_run,
        an_agent_of_other_tenants_admits_no_import,
        an_ad_hoc_agent_of_an_import_passes_the_checks_of_a_push,
        a_known_key_lets_an_import_run,
        an_unverified_import_is_not_signed_anew,
        a_bulk_retry_leaves_foreign_imports_alone,
    ],
);

/// An agent that pays as the till, after a review.
const TILL: &str = "kind: \"openagentspec:v1/agent\"\nname: till\ndescription: It pays.\nintent: You pay.\nowner: tests\n\
                    capabilities:\n  search: {}\n  book: {user_identity: false, input_restriction: {require_review: ann}}\n";

/// The same agent, later.
const LATER_TILL: &str = "kind: \"openagentspec:v1/agent\"\nname: till\ndescription: It pays.\nintent: You pay late.\n\
                          owner: tests\ncapabilities:\n  search: {}\n";

/// A job whose only failure makes it a dead letter.
fn once(mut job: Value) -> Value {
    job["options"] = json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}});
    job
}

fn till() -> Value {
    once(json!({"type": "agent.till", "args": ["go"], "meta": {"agent": "till"}}))
}

/// Runs a job on a fleet whose model refuses all requests; returns the document of the dead letter.
async fn failed(fleet: &Fleet, job: &Value) -> String {
    let id = fleet.push(job).await;
    fleet.wait_for(&id, &[JobState::Discarded]).await;
    exported(fleet, &fleet.engagement_of(&id).await).await
}

async fn failing(backend: Backend) -> Fleet {
    Fleet::builder().on(backend).model(|_| Reply::Status(400)).start().await
}

/// Returns the document with new ids and a changed definition, without a signature; and the id of its job.
fn forged(document: &str, change: impl FnOnce(&mut AgentDefinition)) -> (String, EngagementRecord) {
    let mut record = EngagementRecord::read(document).unwrap();
    record.job.id = SystemIds.next().as_str().into();
    let new = record.job.engagement.as_mut().unwrap();
    new.id = SystemIds.next().into();
    change(&mut new.agent);
    (record.job.id.0.clone(), record)
}

async fn taken(fleet: &Fleet, record: &EngagementRecord) {
    let (status, answer) = imported(fleet, &record.write().unwrap()).await;
    assert_eq!(status, 201, "{answer:#}");
}

/// Tries a dead letter again; returns the status and the code of the error.
async fn retried(fleet: &Fleet, id: &str) -> (u16, Value) {
    let (status, body) = fleet.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await;
    (status.as_u16(), body["error"]["code"].clone())
}

fn refused() -> (u16, Value) {
    (409, json!("agent_not_registered"))
}

/// The prompts that the model of a fleet received.
fn prompts(fleet: &Fleet) -> Vec<Value> {
    let of = |call: ModelCall| call.request["messages"][0]["content"].clone();
    fleet.models.calls().into_iter().map(of).collect()
}

/// A document claims the digest of a registered flow and has another prompt.
async fn a_claimed_digest_replaces_no_agent(backend: Backend) {
    let mut fleet = failing(backend).await;
    let agent = part("Agent", "desk", json!({"llm_config": llm(&fleet), "system_prompt": "You are kind."}));
    let name = register(&fleet, agent).await;
    let sent = once(flow_job(&name, &json!({})));
    let document = failed(&fleet, &sent).await;
    // Another worker has no flows in its memory yet.
    fleet.stop_workers().await;
    let (id, record) = forged(&document, |_| ());
    let written = record.write().unwrap();
    let text = written.replace("You are kind.", "You are evil.");
    assert_ne!(text, written);
    let (status, answer) = imported(&fleet, &resealed(&text)).await;
    assert_eq!(status, 201, "{answer:#}");
    let tried = retried(&fleet, &id).await;
    fleet.add_worker(4);
    let second = fleet.push(&sent).await;
    fleet.wait_for(&second, &[JobState::Discarded]).await;
    if tried.0 == 200 {
        fleet.wait_for(&id, &[JobState::Discarded]).await;
    }
    let received = json!(prompts(&fleet)).to_string();
    assert!(!received.contains("evil"), "{received}");
    assert_eq!(tried, refused());
    fleet.end().await;
}

/// Returns the document with a foot that matches its lines.
fn resealed(text: &str) -> String {
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let body = format!("{body}\n");
    let sha256 = turnstone_domain::digest::of_text(&body);
    format!("{body}{}\n", json!({"lines": body.lines().count(), "sha256": sha256}))
}

async fn an_import_starts_no_program(backend: Backend) {
    let scratch = turnstone_tests::scratch::folder();
    let mark = scratch.path().join("started");
    let mut fleet = failing(backend).await;
    let script = format!("touch {}", mark.display());
    let sh = json!({"sh": {"program": "/bin/sh", "args": ["-c", script]}});
    let policy = ToolPolicy {
        allowed_hosts: vec!["127.0.0.1".to_owned()],
        allowed_commands: serde_json::from_value(sh).unwrap(),
        allow_private: true,
        ..ToolPolicy::default()
    };
    fleet.stop_workers().await;
    fleet.add_worker_with(4, |mut deps| {
        let clock: Arc<dyn Clock> = Arc::clone(&deps.clock);
        deps.toolbox = deps.toolbox.with_policy(policy, &clock).expect("a policy");
        deps
    });
    let agent = part("Agent", "desk", json!({"llm_config": llm(&fleet), "system_prompt": "You are kind."}));
    let name = register(&fleet, agent.clone()).await;
    let document = failed(&fleet, &once(flow_job(&name, &json!({})))).await;
    let (id, record) = forged(&document, |_| ());
    let way = part("StdioTransport", "way", json!({"command": "sh", "args": ["-c", script]}));
    let with_box = {
        let mut agent = agent;
        agent["toolboxes"] = json!([part("MCPToolBox", "box", json!({"client_transport": way}))]);
        agent["agentspec_version"] = "26.2.0".into();
        agent.to_string()
    };
    let mut lines: Vec<Value> =
        record.write().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let job = lines.iter_mut().find(|line| line.get("job").is_some()).unwrap();
    job["job"]["engagement"]["agent"]["flow"]["document"] = json!(with_box);
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let (status, answer) = imported(&fleet, &resealed(&format!("{}\n", text.join("\n")))).await;
    assert_eq!(status, 201, "{answer:#}");
    let tried = retried(&fleet, &id).await;
    if tried.0 == 200 {
        fleet.wait_for(&id, &[JobState::Discarded]).await;
    }
    assert!(!mark.exists(), "the program of a document ran");
    assert_eq!(tried, refused());
    fleet.end().await;
}

/// A copy keeps the identity with which a tool is called, and drops the review before the call.
async fn an_import_lifts_no_review(backend: Backend) {
    let from = failing(backend).await;
    from.register(TILL).await;
    let document = failed(&from, &till()).await;
    let fleet = Fleet::builder().on(backend).model(trip).require_agent().start().await;
    fleet.register(TILL).await;
    let (id, record) = forged(&document, |agent| {
        agent.capabilities.iter_mut().for_each(|own| own.input_restriction = Default::default());
    });
    taken(&fleet, &record).await;
    assert_eq!(retried(&fleet, &id).await, refused());
    // The same without a name: the server takes only jobs of registered agents.
    let (id, mut record) =
        forged(&document, |agent| agent.format = turnstone_domain::agent::AgentFormat::AdHoc);
    record.job.envelope.meta.remove("agent");
    taken(&fleet, &record).await;
    assert_eq!(retried(&fleet, &id).await, refused());
    assert_eq!(fleet.tools.calls_of("book"), 0);
    // The copy that was not changed asks as the registered agent does.
    let (id, record) = forged(&document, |_| ());
    taken(&fleet, &record).await;
    assert_eq!(retried(&fleet, &id).await.0, 200);
    fleet.wait_for(&id, &[JobState::Pending]).await;
    assert_eq!(fleet.tools.calls_of("book"), 0);
    fleet.end().await;
    from.end().await;
}

/// The operations that make work of an engagement: path, body.
fn ways(job: &str, engagement: &str) -> Vec<(String, Value)> {
    let merge = json!({"branch_a": job, "branch_b": job, "strategy": "ours"});
    let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}],
                         "contextId": engagement});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    vec![
        (format!("/ojs/v1/admin/jobs/{job}/retry"), json!({})),
        (format!("/ojs/v1/dead-letter/{job}/retry"), json!({})),
        (format!("/ojs/v1/admin/dead-letter/{job}/retry"), json!({})),
        (format!("/engagements/{engagement}/fork"), json!({"at_turn": 1, "live_tools": true})),
        (format!("/engagements/{engagement}/fork"), json!({"at_turn": 1, "set": {"prompt": "Be brief."}})),
        (format!("/ojs/v1/agents/{job}/fork"), json!({})),
        (format!("/v1/agent/jobs/{job}/fork"), json!({})),
        (format!("/ojs/v1/agents/{job}/merge"), merge.clone()),
        (format!("/v1/agent/jobs/{job}/merge"), merge),
        (format!("/engagements/{engagement}?reopen=true"), json!({"input": "go on"})),
        ("/agents/till/process".to_owned(), json!({"input": "go on", "run_id": engagement})),
        ("/a2a/till".to_owned(), call),
    ]
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn every_way_to_run_a_foreign_import_is_refused(backend: Backend) {
    let from = failing(backend).await;
    from.register(TILL).await;
    let document = failed(&from, &till()).await;
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    fleet.register(LATER_TILL).await;
    let (id, mut record) = forged(&document, |agent| agent.instructions.push('!'));
    record.end.attempt = 0;
    taken(&fleet, &record).await;
    let engagement = record.engagement_id().0;
    let before = fleet.job(&id).await;
    for (path, body) in ways(&id, &engagement) {
        let request = turnstone_tests::http::client().post(format!("{}{path}", fleet.url));
        let answer = request.header("a2a-version", "1.0").json(&body).send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        let expected = if path.starts_with("/a2a") { 200 } else { 409 };
        assert_eq!(status, expected, "{path}: {text}");
        assert!(
            text.contains("its agent `till` is registered here with another definition"),
            "{path}: {text}"
        );
        assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 1, "{path}");
    }
    let (_, body) = fleet.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await;
    let error = &body["error"];
    assert_eq!(
        (&error["code"], &error["details"]["agent"]),
        (&json!("agent_not_registered"), &json!("till"))
    );
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("registers this agent")), "{error:#}");
    assert_eq!(fleet.job(&id).await, before);
    assert_eq!((fleet.models.count(), fleet.tools.calls().len()), (0, 0));
    // It is read, exported, compared and replayed like any other.
    assert_eq!(
        runs_again(&exported(&fleet, &engagement).await).await,
        runs_again(&record.write().unwrap()).await
    );
    fleet.get(&format!("/engagements/{engagement}/diff?with={engagement}")).await;
    fleet.end().await;
    from.end().await;
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_registered_agent_lets_its_imports_run(backend: Backend) {
    let from = failing(backend).await;
    from.register(TILL).await;
    let document = failed(&from, &till()).await;
    let mut narrow = till();
    narrow["ext_agent_tools"] = json!([{"name": "search"}]);
    narrow["ext_agent_token_budget"] = json!(50_000);
    let narrowed = failed(&from, &narrow).await;
    let fleet = Fleet::builder().on(backend).model(|_| Reply::text("done")).start().await;
    let (mut ids, mut records) = (Vec::new(), Vec::new());
    for document in [&document, &narrowed, &document, &document] {
        let (id, record) = forged(document, |_| ());
        taken(&fleet, &record).await;
        assert_eq!(retried(&fleet, &id).await, refused());
        ids.push(id);
        records.push(record);
    }
    fleet.register(TILL).await;
    for id in &ids[..2] {
        assert_eq!(retried(&fleet, id).await.0, 200);
        fleet.wait_for(id, &[JobState::Completed]).await;
    }
    // Its fork has a prompt of its own, and a further input continues it.
    let engagement = records[0].engagement_id().0;
    let body = json!({"at_turn": 1, "set": {"prompt": "You search."}, "live_tools": true});
    let (_, done) = super::fork_ran(&fleet, &engagement, body).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let second = crate::further::send(&fleet, &engagement, "go on", "?reopen=true").await;
    fleet.wait_for(&second, &[JobState::Completed]).await;
    // What was registered before a newer version runs as well, until the agent is removed.
    fleet.register(LATER_TILL).await;
    assert_eq!(retried(&fleet, &ids[2]).await.0, 200);
    fleet.wait_for(&ids[2], &[JobState::Completed]).await;
    let (status, _) = fleet.send(reqwest::Method::DELETE, "/agents/till", "").await;
    assert!(status.is_success(), "{status}");
    assert_eq!(retried(&fleet, &ids[3]).await, refused());
    fleet.register(LATER_TILL).await;
    assert_eq!(retried(&fleet, &ids[3]).await, refused());
    fleet.end().await;
    from.end().await;
}

/// For another tenant the agent does not exist, and the refusal does not reveal it.
async fn an_agent_of_other_tenants_admits_no_import(backend: Backend) {
    let fleet = failing(backend).await;
    fleet.register(TILL).await;
    let document = failed(&fleet, &till()).await;
    let kept = fleet.send(reqwest::Method::PUT, "/agents/till?tenants=acme", TILL).await;
    assert!(kept.0.is_success(), "{kept:?}");
    for (tenant, is_run) in [("acme", true), ("globex", false)] {
        let (id, mut record) = forged(&document, |_| ());
        record.job.terms.tenant = Some(tenant.to_owned());
        record.job.envelope.meta.insert("user", json!({"id": "ben", "email": "boss@corp.example"}));
        taken(&fleet, &record).await;
        let shown = fleet.get(&format!("/ojs/v1/jobs/{id}")).await;
        assert!(!shown.to_string().contains("boss@corp"), "the user is that of the engagement: {shown}");
        let (status, body) = fleet.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await;
        assert_eq!(status.as_u16(), if is_run { 200 } else { 409 }, "{tenant}: {body}");
        if is_run {
            fleet.wait_for(&id, &[JobState::Discarded]).await;
        } else {
            assert!(body.to_string().contains("is not registered here"), "{body}");
        }
        let fork = json!({"at_turn": 1, "live_tools": true});
        let path = format!("/engagements/{}/fork", record.engagement_id());
        let (status, body) = fleet.post(&path, &fork).await;
        assert_eq!(status.as_u16(), if is_run { 201 } else { 409 }, "{tenant}: {body}");
    }
    fleet.end_unchecked().await;
}

async fn an_ad_hoc_agent_of_an_import_passes_the_checks_of_a_push(backend: Backend) {
    let from = failing(backend).await;
    let document = failed(&from, &once(job("go"))).await;
    let open = Fleet::builder().on(backend).model(|_| Reply::text("done")).start().await;
    let (id, record) = forged(&document, |_| ());
    taken(&open, &record).await;
    assert_eq!(retried(&open, &id).await.0, 200);
    open.wait_for(&id, &[JobState::Completed]).await;
    type Change = fn(&mut AgentDefinition);
    let changes: [(&str, Change); 4] = [
        ("an identity", |agent| agent.capabilities[1].static_identity = Some("till".to_owned())),
        ("a prompt", |agent| agent.instructions = "You steal.".to_owned()),
        ("a tool", |agent| agent.capabilities.push(turnstone_domain::agent::Capability::named("rm"))),
        ("a budget", |agent| agent.limits.token_budget = None),
    ];
    for (what, change) in changes {
        let (id, record) = forged(&document, change);
        taken(&open, &record).await;
        assert_eq!(retried(&open, &id).await, refused(), "{what}");
    }
    let strict = Fleet::builder().on(backend).model(|_| Reply::text("done")).require_agent().start().await;
    let (id, record) = forged(&document, |_| ());
    taken(&strict, &record).await;
    assert_eq!(retried(&strict, &id).await, refused());
    assert_eq!(strict.models.count(), 0);
    for fleet in [from, open, strict] {
        fleet.end().await;
    }
}

/// The public key with which a fleet signs.
async fn key_of(fleet: &Fleet) -> PublicKey {
    let keys = fleet.get("/ojs/v1/attest/keys").await;
    PublicKey::read(keys["keys"][0]["public_key"].as_str().unwrap()).unwrap()
}

async fn a_known_key_lets_an_import_run(backend: Backend) {
    let from = failing(backend).await;
    from.register(TILL).await;
    let document = failed(&from, &till()).await;
    let id = EngagementRecord::read(&document).unwrap().job.id.0;
    let trusting = Fleet::builder().on(backend).trusts(key_of(&from).await).start().await;
    let other = Fleet::builder().on(backend).start().await;
    for fleet in [&trusting, &other] {
        assert_eq!(imported(fleet, &document).await.0, 201);
    }
    assert_eq!(retried(&other, &id).await, refused());
    assert_eq!(retried(&trusting, &id).await.0, 200);
    trusting.wait_for(&id, &[JobState::Completed]).await;
    for fleet in [from, trusting, other] {
        fleet.end().await;
    }
}

/// Otherwise a server would vouch for whatever was imported into it.
async fn an_unverified_import_is_not_signed_anew(backend: Backend) {
    let from = failing(backend).await;
    from.register(TILL).await;
    let document = failed(&from, &till()).await;
    let between = Fleet::builder().on(backend).workers(0).start().await;
    let (id, record) = forged(&document, |agent| agent.instructions.push('!'));
    taken(&between, &record).await;
    let again = exported(&between, &record.engagement_id().0).await;
    let to = Fleet::builder().on(backend).trusts(key_of(&between).await).start().await;
    let (status, answer) = imported(&to, &again).await;
    assert_eq!((status, &answer["signature"]["state"]), (201, &json!("missing")), "{answer:#}");
    assert_eq!(retried(&to, &id).await, refused());
    // A document that a known key signed is signed again.
    let trusting = Fleet::builder().on(backend).workers(0).trusts(key_of(&from).await).start().await;
    assert_eq!(imported(&trusting, &document).await.0, 201);
    let engagement = EngagementRecord::read(&document).unwrap().engagement_id().0;
    let again = exported(&trusting, &engagement).await;
    let last = Fleet::builder().on(backend).workers(0).trusts(key_of(&trusting).await).start().await;
    let (status, answer) = imported(&last, &again).await;
    assert_eq!((status, &answer["signature"]["state"]), (201, &json!("valid")), "{answer:#}");
    for fleet in [from, between, to, trusting, last] {
        fleet.end().await;
    }
}

async fn a_bulk_retry_leaves_foreign_imports_alone(backend: Backend) {
    let from = failing(backend).await;
    from.register(TILL).await;
    let document = failed(&from, &till()).await;
    let fleet = failing(backend).await;
    fleet.register(LATER_TILL).await;
    let own = fleet.push(&till()).await;
    fleet.wait_for(&own, &[JobState::Discarded]).await;
    let (id, record) = forged(&document, |_| ());
    taken(&fleet, &record).await;
    let paths = ["/ojs/v1/admin/jobs/bulk/retry", "/ojs/v1/jobs/bulk/retry", "/ojs/v1/dead-letter/retry"];
    for path in paths {
        let (status, body) = fleet.post(path, &json!({"confirm": true})).await;
        assert!(status.is_success(), "{path}: {body:#}");
        assert_eq!(body["ids"], json!([own]), "{path}: {body:#}");
        assert_eq!(body["errors"][0]["id"], json!(id), "{path}: {body:#}");
        let ended = wait::holds(wait::PATIENCE, async || fleet.job(&own).await["state"] == "discarded");
        assert!(ended.await, "{path}");
    }
    assert_eq!(fleet.job(&id).await["state"], "discarded");
    fleet.end().await;
    from.end().await;
}
