//! Expressions that tenants bring: an import with costly ones is read within seconds, and delays no other
//! client.

use super::Client;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_domain::record::EngagementRecord;
use turnstone_tests::{Backend, Fleet, OjsServer, Reply, model_server};

const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: finder
description: An agent that finds.
intent: You find what you are asked for.
owner: tests
capabilities: {search: {user_identity: false}}
exposes: {found: recent.search.outputs}
"#;

/// Returns expressions that would take hours, or much memory: nested loops, long texts, deep trees.
fn hostile() -> Vec<String> {
    let list = format!("[{}]", vec!["1"; 400].join(","));
    let names: Vec<String> = (0..8).map(|at| format!("x{at}")).collect();
    let nested =
        names.iter().rev().fold("true".to_owned(), |inner, name| format!("{list}.all({name}, {inner})"));
    let short =
        names.iter().rev().fold("true".to_owned(), |inner, name| format!("history.all({name}, {inner})"));
    let grown = vec!["string(recent)"; 400].join(" + ");
    let deep = format!("{}1{}", "(".repeat(3_000), ")".repeat(3_000));
    let maps = "[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, \
                [1,2,3,4,5,6,7,8,9].map(d, [1,2,3,4,5,6,7,8,9].map(e, [1,2,3,4,5,6,7,8,9].map(f, \
                [1,2,3,4,5,6,7,8,9].map(g, [a,b,c,d,e,f,g])))))))";
    let pattern = format!("\"{}\".matches(\"(a*)*(a*)*(a*)*b\")", "a".repeat(2_000));
    vec![nested, short, grown, deep, maps.to_owned(), pattern, "!".repeat(8_000) + "true"]
}

async fn costly_expressions_of_an_import_end_in_time(backend: Backend) {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": 1})),
        _ => Reply::text("found"),
    };
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    server.fleet.register(AGENT).await;
    let job = json!({"type": "agent.find", "args": ["go"], "meta": {"agent": "finder"}});
    let id = server.fleet.push(&job).await;
    server.fleet.wait_for(&id, &[JobState::Completed]).await;
    let engagement = server.fleet.engagement_of(&id).await;
    let document = server.get(&format!("/engagements/{engagement}/export")).await.expect(200).text;
    let mut record = EngagementRecord::read(&document).unwrap();
    let agent = &mut record.job.engagement.as_mut().unwrap().agent;
    let (source, number) = (hostile(), hostile().len());
    // Each of these alone is allowed, and all of them together are many.
    let allowed = "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, a + b + c)))";
    let source = source.into_iter().chain(vec![allowed.to_owned(); 5_000]);
    agent.exposes = source.enumerate().map(|(at, source)| (format!("x{at:04}"), source)).collect();
    let beta = Client::of(&server, "beta", "operator").await;
    let taken =
        beta.send_text(Method::POST, "/engagements/import", record.write().unwrap()).await.expect(201);
    // The id belongs to the fleet's engagement: the copy has another one.
    let copy = taken.json()["engagement_id"].as_str().unwrap().to_owned();
    assert_ne!(copy, engagement);
    let path = format!("/engagements/{copy}");
    // The client gives up after `wait::PATIENCE`.
    let (state, other) = tokio::join!(beta.get(&path), server.get("/ojs/v1/jobs"));
    other.expect(200);
    let state = state.expect(200).json();
    for at in 0..number {
        assert_eq!(state["results"][format!("x{at:04}")], Value::Null, "{at}: {}", state["warnings"]);
    }
    server.fleet.end_unchecked().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn costly_expressions_of_an_import_end_in_time_on_sqlite() {
    costly_expressions_of_an_import_end_in_time(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: the same rule on PostgreSQL"]
async fn costly_expressions_of_an_import_end_in_time_on_postgres() {
    costly_expressions_of_an_import_end_in_time(Backend::Postgres).await;
}
