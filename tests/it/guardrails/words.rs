//! The words of models that no check has passed: of a delegate whose caller may refuse them, and beside an answer that passed.

use super::output;
use crate::agent_spec;
use crate::policy::{ask, on_every_store, visible};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::documents::{oas, ossa};
use turnstone_tests::{Fleet, OjsServer, Receiver, Reply, model_server};

/// A caller whose delegate says something that the caller does not pass on.
const CALLERS: [(&str, &str); 2] = [
    ("an assertion refuses", "capabilities: {child: {output_restriction: {assertion: 'false'}}}\n"),
    ("a reviewer has not answered", "capabilities: {child: {output_restriction: {require_review: ann}}}\n"),
];
/// As [`CALLERS`], with filters.
const FILTERS: [(&str, &str); 3] = [
    ("personal data is blocked", "security: {output_filtering: {types: [email], action: block}}"),
    ("personal data is redacted", "security: {output_filtering: {types: [email], action: redact}}"),
    (
        "violence is blocked",
        "safety: {content_filtering: {categories: [violence], threshold: low, action: block}}",
    ),
];
/// The words of the delegate, which every one of the filters finds.
const SPOKEN: &str = "ada@example.org wants to kill them all";
/// The shortest part of them that may not be read.
const WORDS: [&str; 2] = ["ada@example.org", "kill them all"];

fn child_of(parent: &Value) -> Option<[String; 2]> {
    let link = parent["children"].as_array()?.first()?;
    Some(["job_id", "engagement_id"].map(|name| link[name].as_str().unwrap_or_default().to_owned()))
}

/// A model whose caller repeats nothing, and whose delegate says its words beside a call, in its arguments, and at the end.
fn script(request: &Value) -> Reply {
    let child = request["messages"].to_string().contains("You are child");
    match (child, model_server::outcomes(request)) {
        (true, 0) => Reply::Beside(SPOKEN.to_owned(), "book".to_owned(), json!({"note": SPOKEN})),
        (true, _) => Reply::text(SPOKEN),
        (false, 0) => Reply::call("child", json!({"input": "go on"})),
        _ => Reply::text("all is well"),
    }
}

/// Returns everything that others can read of the run of a caller and its delegate, in the feed and at webhooks too.
async fn read_by_others(server: &OjsServer, caller: &str, receiver: &Receiver) -> String {
    let fleet = &server.fleet;
    let engagement = fleet.engagement_of(caller).await;
    let parent = fleet.get(&format!("/engagements/{engagement}")).await;
    let [job, child] = child_of(&parent).expect("it has a delegate");
    let mut seen = visible(fleet, caller, &engagement).await + &visible(fleet, &job, &child).await;
    for path in [
        format!("/ojs/v1/jobs/{job}/result"),
        format!("/engagements/{child}/state"),
        format!("/engagements/{child}/artifacts"),
        format!("/engagements/{engagement}/diff?with={child}"),
        "/ojs/v1/events?types=*&limit=1000".to_owned(),
        "/ojs/v1/jobs?limit=100".to_owned(),
    ] {
        seen += &server.send(Method::GET, &path, &[], "").await.text;
    }
    for part in ["audit", "export"] {
        let path = format!("/engagements/{child}/{part}");
        seen += &server.send(Method::GET, &path, &[("x-ojs-tenant", "acme")], "").await.expect(403).text;
    }
    receiver.received().iter().for_each(|sent| seen += &sent.body);
    seen
}

async fn server(backend: turnstone_tests::Backend, receiver: &Receiver) -> OjsServer {
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    let hook = json!({"url": receiver.url, "events": ["*"]});
    let (status, body) = server.fleet.post("/ojs/v1/webhooks/subscriptions", &hook).await;
    assert_eq!(status, StatusCode::CREATED, "{body:#}");
    server
}

async fn begin(fleet: &Fleet, agent: &str) -> String {
    let meta = json!({"agent": agent, "tenant_id": "acme", "user": {"id": "u-17"}});
    fleet.push(&json!({"type": "agent.policy", "args": ["go"], "meta": meta})).await
}

/// OAS-35: while a reviewer has not answered, and after a refusal, no one reads the words of the delegate. They are not in its own
/// engagement, the caller's run, the feed, a webhook, or a tenant's export.
#[tokio::test]
async fn a_refused_delegates_words_are_read_nowhere() {
    on_every_store(async |backend| {
        let receiver = Receiver::start().await;
        let server = server(backend, &receiver).await;
        let fleet = &server.fleet;
        fleet.register(oas("child", "capabilities: {book: {}}\n")).await;
        for (number, (why, caller)) in CALLERS.into_iter().enumerate() {
            let name = format!("caller-{number}");
            fleet.register(oas(&name, caller)).await;
            let id = begin(fleet, &name).await;
            let reviewed = caller.contains("require_review");
            if reviewed {
                let reviews = async || fleet.get("/reviews?state=open").await["items"][0]["id"].is_string();
                fleet.until("a reviewer is asked", reviews).await;
            } else {
                let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
                assert_eq!(done["state"], "completed", "{why}: {done:#}");
            }
            let seen = read_by_others(&server, &id, &receiver).await;
            assert!(WORDS.iter().all(|words| !seen.contains(words)), "{why}: {seen}");
            let parent = fleet.get(&format!("/engagements/{}", fleet.engagement_of(&id).await)).await;
            let [_, child] = child_of(&parent).unwrap();
            let audit = fleet.get(&format!("/engagements/{child}/audit")).await.to_string();
            assert!(audit.contains(SPOKEN), "{why}: the operator's audit: {audit}");
            // A fork of the delegate hides what the delegate hides.
            let fork = json!({"at_turn": 2, "phase": "emit"});
            let (status, forked) = fleet.post(&format!("/engagements/{child}/fork"), &fork).await;
            assert!(status.is_success(), "{why}: {forked:#}");
            let job = forked["job_id"].as_str().or_else(|| forked["job"]["id"].as_str()).expect("its job");
            let done = fleet.wait_for(job, &[JobState::Completed, JobState::Discarded]).await;
            let copy = fleet.engagement_of(job).await;
            let seen = done.to_string() + &visible(fleet, job, &copy).await;
            assert!(WORDS.iter().all(|words| !seen.contains(words)), "{why}, of a fork: {seen}");
        }
        server.fleet.end().await;
    })
    .await;
}

/// RS-08, RS-23: the same for a delegate whose caller filters what leaves. Redacted words stay readable.
#[tokio::test]
async fn a_filtering_callers_delegate_is_filtered_everywhere() {
    on_every_store(async |backend| {
        let receiver = Receiver::start().await;
        let server = server(backend, &receiver).await;
        let fleet = &server.fleet;
        fleet.register(oas("child", "capabilities: {book: {}}\n")).await;
        for (number, (why, rule)) in FILTERS.into_iter().enumerate() {
            let name = format!("caller-{number}");
            let asks = "collaboration: {delegation: {enabled: true, allowed_agents: [child]}}";
            fleet.register(ossa(&name, &format!("  {asks}\n  {rule}"))).await;
            let id = begin(fleet, &name).await;
            let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!(done["result"], "all is well", "{why}: {done:#}");
            let redacts = rule.contains("redact");
            let engagement = fleet.engagement_of(&id).await;
            let parent = fleet.get(&format!("/engagements/{engagement}")).await;
            let [job, child] = child_of(&parent).unwrap();
            let mut seen = visible(fleet, &id, &engagement).await + &visible(fleet, &job, &child).await;
            receiver.received().iter().for_each(|sent| seen += &sent.body);
            assert!(!seen.contains(WORDS[0]), "{why}: {seen}");
            assert_eq!(seen.contains(WORDS[1]), redacts, "{why}: {seen}");
        }
        server.fleet.end().await;
    })
    .await;
}

/// OAS-43: a text beside tool calls, their arguments and outcomes and the state are hidden while a question waits and after
/// the answer has passed. The question and the answer are what the guardrail saw.
#[tokio::test]
async fn only_what_the_guardrail_saw_is_shown() {
    on_every_store(async |backend| {
        let script = |request: &Value| {
            let child = request["messages"].to_string().contains("You are child");
            match (child, model_server::outcomes(request)) {
                (true, _) => Reply::text("spoken-word of a child"),
                (false, 0) => Reply::Beside("spoken-word".to_owned(), "book".to_owned(), json!({"note": "spoken-word"})),
                (false, 1) => Reply::call("child", json!({"input": "spoken-word"})),
                (false, 2) => Reply::call("spoken-word", json!({"note": "spoken-word"})),
                (false, 3) => Reply::Beside("spoken-word".to_owned(), "ask-user".to_owned(), json!({"question": "Which?"})),
                _ => Reply::text("all is well"),
            }
        };
        let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
        let fleet = &server.fleet;
        fleet.register(oas("child", "")).await;
        let body = format!(
            "capabilities: {{book: {{}}, child: {{}}, ask-user: {{}}}}\n{}exposes:\n  note: recent.book.inputs.note\n  \
             heard: recent.child.outputs\n  count: history._total\n",
            output("echo.output.size() > 3")
        );
        fleet.register(oas("careful", &body)).await;
        let id = ask(fleet, "careful").await;
        fleet.wait_for(&id, &[JobState::Pending]).await;
        let engagement = fleet.engagement_of(&id).await;
        let state = async || fleet.get(&format!("/engagements/{engagement}")).await["status"].clone();
        fleet.until("it asks", async || state().await == "waiting-for-input").await;
        let seen = visible(fleet, &id, &engagement).await;
        assert!(seen.contains("Which?") && !seen.contains("spoken-word"), "while it asks: {seen}");
        let (status, answered) =
            fleet.post(&format!("/engagements/{engagement}"), &json!("that one")).await;
        assert!(status.is_success(), "{answered:#}");
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"]["text"], "all is well", "{done:#}");
        assert_eq!((&done["result"]["note"], &done["result"]["heard"]), (&Value::Null, &Value::Null), "{done:#}");
        assert!(done["result"]["count"].as_u64() >= Some(2), "{done:#}");
        let mut seen = visible(fleet, &id, &engagement).await + &done.to_string();
        let audit = format!("/engagements/{engagement}/audit");
        assert!(fleet.get(&audit).await.to_string().contains("spoken-word"), "the operator's audit");
        seen += &fleet.get(&format!("/engagements/{engagement}/diff?with={engagement}")).await.to_string();
        assert!(seen.contains("all is well") && !seen.contains("spoken-word"), "at the end: {seen}");
        server.fleet.end().await;
    })
    .await;
}

/// OAS-35: a flow that works for a restricting agent is hidden like every other delegate.
#[tokio::test]
async fn a_flow_that_works_for_a_restricting_agent_is_hidden() {
    let script = |request: &Value| match model_server::outcomes(request) {
        _ if request["messages"].to_string().contains("About") => Reply::text(SPOKEN),
        0 => Reply::call("child", json!({"input": "boats"})),
        _ => Reply::text("all is well"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let (topic, said) = (agent_spec::text("topic"), agent_spec::text("generated_text"));
    let fields = json!({"llm_config": agent_spec::llm(&fleet), "prompt_template": "About {{topic}}:"});
    let nodes = [
        agent_spec::start("start", std::slice::from_ref(&topic)),
        agent_spec::part("LlmNode", "gen", fields),
        agent_spec::end("end", std::slice::from_ref(&said)),
    ];
    let control = [agent_spec::then("start", "gen"), agent_spec::then("gen", "end")];
    assert_eq!(agent_spec::register(&fleet, agent_spec::flow("child", &nodes, &control, &[])).await, "child");
    fleet.register(oas("parent", CALLERS[0].1)).await;
    let id = ask(&fleet, "parent").await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "all is well", "{done:#}");
    let engagement = fleet.engagement_of(&id).await;
    let [job, child] = child_of(&fleet.get(&format!("/engagements/{engagement}")).await).unwrap();
    let mut seen = visible(&fleet, &id, &engagement).await;
    for path in [
        format!("/ojs/v1/jobs/{job}"),
        format!("/ojs/v1/jobs/{job}/events?limit=1000"),
        format!("/engagements/{child}"),
        format!("/engagements/{child}/messages"),
        format!("/engagements/{child}/checkpoints?bodies=true"),
    ] {
        seen += &fleet.get(&path).await.to_string();
    }
    assert!(WORDS.iter().all(|words| !seen.contains(words)), "{seen}");
    fleet.end().await;
}

/// RS-23: a question to the user leaves, too; so do arguments of a call that was refused.
#[tokio::test]
async fn questions_are_filtered_like_answers() {
    for (action, asks) in [("redact", true), ("block", false)] {
        let script = |request: &Value| match model_server::outcomes(request) {
            0 => Reply::call("nowhere", json!({"note": SPOKEN})),
            1 => Reply::call("ask-user", json!({"question": format!("Is it true that {SPOKEN}?")})),
            _ => Reply::text("all is well"),
        };
        let fleet = Fleet::builder().model(script).start().await;
        let rule = format!("security: {{output_filtering: {{types: [email], action: {action}}}}}");
        fleet
            .register(ossa("desk", &format!("  tools: [{{type: function, name: ask-user}}]\n  {rule}")))
            .await;
        let id = ask(&fleet, "desk").await;
        let done = fleet.settled(&id).await;
        let state = if asks { "pending" } else { "completed" };
        assert_eq!(done["state"], state, "{action}: {done:#}");
        let engagement = fleet.engagement_of(&id).await;
        let seen = visible(&fleet, &id, &engagement).await;
        assert!(!seen.contains(WORDS[0]), "{action}: {seen}");
        let prompt = fleet.get(&format!("/engagements/{engagement}")).await["awaiting"]["prompt"].clone();
        let asked = json!("Is it true that [redacted email] wants to kill them all?");
        assert_eq!(prompt, if asks { asked } else { Value::Null }, "{action}: {seen}");
        fleet.end().await;
    }
}
