//! Failed calls are retried within the turn (RS-20, RS-21, RS-25, RS-27, RS-45).

use super::{attempts, desk, push, register, run, tool};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply};
use turnstone_worker::tool::Toolbox;

/// RS-25, RS-27, facts §6.2 case 2: three failures and then a success are one call with three retries.
#[tokio::test]
async fn a_tool_that_fails_three_times_succeeds_with_three_retries() {
    for backend in Backend::ALL {
        let spec = format!("  tools:\n{}", tool("search", ""));
        let fleet = desk(Fleet::builder().on(backend), &spec, &["search"]).await;
        fleet.tools.fail("search", 3);
        let (id, done) = run(&fleet).await;
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("done")), "{done:#}");
        let calls = fleet.tools.calls();
        let keys: HashSet<&str> = calls.iter().map(|call| call.key.as_str()).collect();
        assert_eq!((calls.len(), keys.len()), (4, 1), "each try has the call's own key");
        let attempts = attempts(&fleet, &id).await;
        let call = &attempts[0];
        assert_eq!((&call["retries"], &call["sends"]), (&json!(3), &json!(4)), "{call:#}");
        assert_eq!(call["outcome"]["status"], "success");
        let tried = call["tried"].as_array().unwrap();
        assert_eq!(tried.len(), 3);
        assert!(tried.iter().all(|tried| tried["code"] == "AGENT_TOOL_EXECUTION_FAILED"), "{call:#}");
        assert!(call["started_at"].is_string() && call["completed_at"].is_string(), "{call:#}");
        let events = fleet.event_names(&id).await;
        assert_eq!(events.iter().filter(|name| *name == "tool.retrying").count(), 3);
        assert_eq!(events.iter().filter(|name| *name == "tool.called").count(), 1);
        fleet.end().await;
    }
}

/// RS-25, facts §6.2 case 2: after the fourth failure the model receives the error, and the turn continues.
#[tokio::test]
async fn a_fourth_failure_reaches_the_model() {
    let spec = format!("  tools:\n{}", tool("search", ""));
    let fleet = desk(Fleet::builder(), &spec, &["search"]).await;
    fleet.tools.fail("search", 4);
    let (id, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!(fleet.tools.calls().len(), 4);
    let outcome = attempts(&fleet, &id).await[0]["outcome"].clone();
    assert_eq!((&outcome["status"], &outcome["ossa_code"]), (&json!("error"), &json!("TOOL_ERROR")));
    assert_eq!(
        (&outcome["recoverable"], &outcome["type"]),
        (&json!(true), &json!("agent.tool")),
        "{outcome:#}"
    );
    let prompt = fleet.models.calls()[1].request["messages"].to_string();
    assert!(prompt.contains("AGENT_TOOL_EXECUTION_FAILED") && prompt.contains("500"), "{prompt}");
    fleet.end().await;
}

/// RS-25, issue 16: a tool that is not idempotent is called once when it answers an error, whatever the agent's
/// general retry policy. The model receives the error at once.
#[tokio::test]
async fn an_answered_error_of_a_tool_that_is_not_idempotent_reaches_the_model_at_once() {
    let spec = "  reliability: {retry: {initial_delay_ms: 1}}\n  tools: [{type: http, name: book}]";
    for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::SERVICE_UNAVAILABLE] {
        let fleet = desk(Fleet::builder(), spec, &["book"]).await;
        fleet.tools.fail_with("book", 9, (status, None));
        let (id, done) = run(&fleet).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!(fleet.tools.calls_of("book"), 1, "{status}");
        let call = attempts(&fleet, &id).await[0].clone();
        assert_eq!((&call["retries"], &call["sends"]), (&json!(0), &json!(1)), "{call:#}");
        let prompt = fleet.models.calls()[1].request["messages"].to_string();
        assert!(prompt.contains(status.as_str()) && !prompt.contains("unknown"), "{prompt}");
        fleet.end().await;
    }
}

/// RS-25, issue 16: a call that the tool turned away had no effect and is repeated, even when the tool is not
/// idempotent.
#[tokio::test]
async fn a_call_that_was_turned_away_is_repeated() {
    let spec = "  reliability: {retry: {initial_delay_ms: 1}}\n  tools: [{type: http, name: book}]";
    for failure in [(StatusCode::TOO_MANY_REQUESTS, None), (StatusCode::SERVICE_UNAVAILABLE, Some("0"))] {
        let fleet = desk(Fleet::builder(), spec, &["book"]).await;
        fleet.tools.fail_with("book", 2, failure);
        let (id, done) = run(&fleet).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        let call = attempts(&fleet, &id).await[0].clone();
        assert_eq!(
            (&call["retries"], &call["outcome"]["status"]),
            (&json!(2), &json!("success")),
            "{call:#}"
        );
        fleet.end().await;
    }
}

/// RS-25, issue 16: a refused connection made no call, so it is tried again even when the tool is not idempotent. It is
/// tried once more, or as often as the document says; then the model learns of it.
#[tokio::test]
async fn a_refused_connection_is_tried_again() {
    for (policy, retries) in [("initial_delay_ms: 1", 1), ("initial_delay_ms: 1, max_attempts: 4", 3)] {
        refused_connection(policy, retries).await;
    }
}

async fn refused_connection(policy: &str, retries: usize) {
    let spec = format!("  reliability: {{retry: {{{policy}}}}}\n  tools: [{{type: http, name: book}}]");
    let mut fleet = desk(Fleet::builder().workers(0), &spec, &["book"]).await;
    // A bound socket that does not listen: no other process takes the port, and a connection is refused.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = json!({"description": "books", "url": format!("http://{}/", closed.local_addr().unwrap()),
                        "allow_private": true});
    let config = BTreeMap::from([("book".to_owned(), serde_json::from_value(config).unwrap())]);
    fleet.add_worker_with(1, |mut deps| {
        deps.toolbox = Toolbox::from_config(&config, Arc::clone(&deps.clock)).unwrap();
        deps
    });
    let (id, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let call = attempts(&fleet, &id).await[0].clone();
    assert_eq!(call["retries"], retries, "{call:#}");
    let prompt = fleet.models.calls()[1].request["messages"].to_string();
    assert!(prompt.contains("cannot connect") && !prompt.contains("unknown"), "{prompt}");
    fleet.end().await;
}

/// RS-25: an error that an idempotent tool reports itself, in JSON, reaches the model after one more try.
#[tokio::test]
async fn an_error_that_an_idempotent_tool_reports_is_repeated_once() {
    let spec = format!("  tools:\n{}", tool("search", ""));
    let fleet = desk(Fleet::builder(), &spec, &["search"]).await;
    fleet.tools.fail_with("search", 9, (StatusCode::INTERNAL_SERVER_ERROR, json!({"error": "no index"})));
    let (id, done) = run(&fleet).await;
    assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 2), "{done:#}");
    assert_eq!(attempts(&fleet, &id).await[0]["retries"], 1);
    let prompt = fleet.models.calls()[1].request["messages"].to_string();
    assert!(prompt.contains("no index"), "{prompt}");
    fleet.end().await;
}

/// RS-25: the manifest's policy applies: `max_attempts` counts every call, the first included.
#[tokio::test]
async fn the_manifest_sets_the_number_of_tries() {
    let spec = "  tools:\n    - {type: http, name: search, capabilities: [{name: search, retry_policy: \
                {max_attempts: 2, initial_delay_ms: 1}}]}";
    let fleet = desk(Fleet::builder(), spec, &["search"]).await;
    fleet.tools.fail("search", 9);
    run(&fleet).await;
    assert_eq!(fleet.tools.calls().len(), 2);
    fleet.end().await;
}

/// RS-25: a timed-out call is retried twice, and only when its effect may be repeated.
#[tokio::test]
async fn a_timeout_is_tried_twice_more_unless_it_may_have_had_its_effect() {
    let spec = format!(
        "  tools:\n{}{}",
        tool("hang", ", timeout_ms: 1500"),
        tool("book", ", timeout_ms: 1500, circuit_breaker: {enabled: false}")
    );
    let fleet = desk(Fleet::builder(), &spec, &["hang", "book"]).await;
    let gate = turnstone_tests::Gate::default();
    fleet.tools.hold(&gate);
    let (id, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!((fleet.tools.calls_of("hang"), fleet.tools.calls_of("book")), (3, 1));
    let attempts = attempts(&fleet, &id).await;
    assert_eq!((&attempts[0]["retries"], &attempts[1]["retries"]), (&json!(2), &json!(0)));
    assert_eq!(attempts[1]["outcome"]["status"], "timeout", "{:#}", attempts[1]);
    let prompt = fleet.models.calls()[1].request["messages"].to_string();
    assert_eq!(prompt.matches("the outcome of this call is unknown").count(), 1, "of `book` only: {prompt}");
    fleet.end().await;
}

/// RS-11, RS-42: `timeout_ms` of a tool holds for each of its capabilities that has no time of its own, and
/// `timeout_seconds` of the constraints for a tool without any.
#[tokio::test]
async fn a_tool_has_a_deadline_wherever_its_manifest_sets_one() {
    let off = "circuit_breaker: {enabled: false}, retry_policy: {max_attempts: 1}";
    let own = format!("    - {{type: http, timeout_ms: 700, {off}, capabilities: [{{name: hang}}]}}\n");
    let shorter = format!(
        "    - {{type: http, timeout_ms: 60000, {off}, capabilities: [{{name: book, timeout: {{execution_seconds: 0.6}}}}]}}\n"
    );
    let none = format!("    - {{type: http, name: search, {off}}}\n");
    let spec = format!("  constraints: {{timeout_seconds: 2}}\n  tools:\n{own}{shorter}{none}");
    let fleet = desk(Fleet::builder(), &spec, &["hang", "book", "search"]).await;
    let gate = turnstone_tests::Gate::default();
    fleet.tools.hold(&gate);
    let (id, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let attempts = attempts(&fleet, &id).await;
    for (attempt, name) in attempts.iter().zip(["hang", "book", "search"]) {
        assert_eq!(
            (&attempt["name"], &attempt["outcome"]["status"]),
            (&json!(name), &json!("timeout")),
            "{attempt:#}"
        );
    }
    fleet.end().await;
}

/// RS-21, RS-45: invalid arguments are an error for the model, and never reach the tool.
#[tokio::test]
async fn wrong_arguments_are_never_sent() {
    let spec = "  tools:\n    - {type: http, name: search, input_schema: {type: object, properties: {n: {type: string}}}}";
    let fleet = desk(Fleet::builder(), spec, &["search"]).await;
    let (id, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!(fleet.tools.calls().len(), 0);
    let outcome = attempts(&fleet, &id).await[0]["outcome"].clone();
    assert_eq!(
        (&outcome["code"], &outcome["ossa_code"]),
        (&json!("SCHEMA_VIOLATION"), &json!("SCHEMA_VIOLATION"))
    );
    assert_eq!(outcome["recoverable"], false, "{outcome:#}");
    fleet.end().await;
}

/// RS-20: every call has an id of its own, across all turns.
#[tokio::test]
async fn every_call_has_an_id_of_its_own() {
    let fleet = Fleet::builder()
        .model(|request: &Value| match turnstone_tests::model_server::outcomes(request) {
            0..6 => {
                Reply::Calls(vec![("search".to_owned(), json!({})), ("search".to_owned(), json!({}))], (1, 1))
            }
            _ => Reply::text("done"),
        })
        .start()
        .await;
    register(&fleet, "  tools: [{type: http, name: search}]").await;
    let (_, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let keys: HashSet<String> = fleet.tools.calls().into_iter().map(|call| call.key).collect();
    assert_eq!(keys.len(), 6);
    fleet.end().await;
}

/// RS-25, RS-27: a worker that is killed between two tries leaves their number behind, and the next worker continues
/// with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tries_survive_a_kill() {
    for backend in Backend::ALL {
        // The tries are a day apart: only a new worker continues at once.
        let spec = "  tools:\n    - {type: http, name: book, retry_policy: {max_attempts: 4, initial_delay_ms: 3600000, \
                    max_delay_ms: 60000}}";
        let fleet = desk(Fleet::builder().on(backend).workers(0), spec, &["book"]).await;
        fleet.tools.fail("book", 2);
        let id = push(&fleet).await;
        for failed in 1..=2 {
            let mut worker = crate::crash::spawn(&fleet, 2, None);
            fleet
                .until("the failed try is journalled", async || {
                    let sql = format!("SELECT count(*) FROM tool_calls WHERE retries = {failed}");
                    fleet.number(&sql).await == 1
                })
                .await;
            worker.start_kill().unwrap();
            crate::crash::killed(worker).await;
            fleet.release_all().await;
        }
        let last = crate::crash::spawn(&fleet, 2, None);
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Pending, JobState::Discarded]).await;
        drop(last);
        assert_eq!(done["state"], "completed", "a known failure needs no review: {done:#}");
        assert_eq!(fleet.tools.calls().len(), 3);
        let call = attempts(&fleet, &id).await[0].clone();
        assert_eq!((&call["retries"], &call["sends"]), (&json!(2), &json!(3)), "{call:#}");
        fleet.end().await;
    }
}
