//! Circuit breakers of tools, which the whole fleet shares (RS-26, RS-47; facts §6.2 case 5).

use super::{attempts, desk, run};
use crate::program::{run as run_program, without_environment};
use reqwest::StatusCode;
use serde_json::json;
use tokio::process::Command;
use turnstone_tests::tool_server::Failure;
use turnstone_tests::{Backend, Fleet, binaries};

/// Without retries, so each job is one call.
const ONCE: &str = "  tools: [{type: http, name: search, retry_policy: {max_attempts: 1}}]";

async fn one_call(fleet: &Fleet) -> serde_json::Value {
    let (id, done) = run(fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    attempts(fleet, &id).await[0]["outcome"].clone()
}

/// RS-26, facts §6.2 case 5: the fifth failure in a row opens the breaker. Then no request leaves, from any
/// engagement or process, nor after a restart. After its timeout three trial calls close it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fifth_failure_opens_it_for_every_engagement_and_process() {
    for backend in Backend::ALL {
        let mut fleet = desk(Fleet::builder().on(backend), ONCE, &["search"]).await;
        fleet.tools.fail("search", 5);
        for _ in 0..5 {
            assert_eq!(one_call(&fleet).await["ossa_code"], "TOOL_ERROR");
        }
        let refused = one_call(&fleet).await;
        assert_eq!(
            (&refused["code"], &refused["ossa_code"]),
            (&json!("OSSA_CIRCUIT_OPEN"), &json!("CIRCUIT_OPEN"))
        );
        assert_eq!(
            (&refused["invoked"], &refused["retry_after_ms"]),
            (&json!(false), &json!(60_000)),
            "{refused:#}"
        );
        assert_eq!(fleet.tools.calls().len(), 5);
        // A new process, which has seen no failure.
        fleet.stop_workers().await;
        fleet.add_worker(4);
        assert_eq!(one_call(&fleet).await["ossa_code"], "CIRCUIT_OPEN");
        assert_eq!(fleet.tools.calls().len(), 5);
        fleet.clock.advance_ms(60_000);
        for _ in 0..3 {
            assert_eq!(one_call(&fleet).await["status"], "success");
        }
        assert_eq!(fleet.number("SELECT count(*) FROM breakers").await, 0, "it is closed, and costs nothing");
        fleet.end().await;
    }
}

/// RS-26, issue 16: an answered error opens no breaker, whether it is an error in JSON or a refusal to take calls
/// now.
#[tokio::test]
async fn an_error_that_a_tool_answers_opens_no_breaker() {
    let missing = json!({"error": "there is no such file"});
    let answers: [Failure; 4] = [
        (StatusCode::INTERNAL_SERVER_ERROR, missing.clone()).into(),
        (StatusCode::SERVICE_UNAVAILABLE, missing).into(),
        (StatusCode::TOO_MANY_REQUESTS, None).into(),
        (StatusCode::SERVICE_UNAVAILABLE, Some("1")).into(),
    ];
    for answer in answers {
        let fleet = desk(Fleet::builder(), ONCE, &["search"]).await;
        fleet.tools.fail_with("search", 6, answer.clone());
        for _ in 0..6 {
            assert_eq!(one_call(&fleet).await["ossa_code"], "TOOL_ERROR", "{answer:?}");
        }
        assert_eq!(fleet.tools.calls().len(), 6, "{answer:?}");
        assert_eq!(fleet.number("SELECT count(*) FROM breakers").await, 0, "{answer:?}");
        fleet.end().await;
    }
}

/// RS-26, issue 16: an error in JSON from a gateway is no answer of the tool behind it, so it counts.
#[tokio::test]
async fn an_error_of_a_gateway_opens_the_breaker() {
    let fleet = desk(Fleet::builder(), ONCE, &["search"]).await;
    fleet.tools.fail_with("search", 5, (StatusCode::BAD_GATEWAY, json!({"message": "bad gateway"})));
    for _ in 0..5 {
        assert_eq!(one_call(&fleet).await["ossa_code"], "TOOL_ERROR");
    }
    assert_eq!(one_call(&fleet).await["ossa_code"], "CIRCUIT_OPEN");
    assert_eq!(fleet.tools.calls().len(), 5);
    fleet.end().await;
}

/// RS-26: a failure while the breaker is half-open opens it again. A success before the fifth failure resets the
/// count.
#[tokio::test]
async fn a_failed_trial_opens_it_again_and_a_success_resets_it() {
    let fleet = desk(Fleet::builder(), ONCE, &["search"]).await;
    fleet.tools.fail("search", 4);
    for _ in 0..4 {
        one_call(&fleet).await;
    }
    assert_eq!(one_call(&fleet).await["status"], "success");
    fleet.tools.fail("search", 6);
    for _ in 0..5 {
        assert_eq!(one_call(&fleet).await["ossa_code"], "TOOL_ERROR");
    }
    fleet.clock.advance_ms(60_000);
    assert_eq!(one_call(&fleet).await["ossa_code"], "TOOL_ERROR", "the probe");
    assert_eq!(one_call(&fleet).await["ossa_code"], "CIRCUIT_OPEN");
    assert_eq!(fleet.tools.calls().len(), 11);
    fleet.end().await;
}

/// RS-26, RS-50: CIRCUIT_OPEN takes the document's fallback, without a request to the open tool.
#[tokio::test]
async fn an_open_breaker_takes_the_fallback() {
    let spec = "  tools:\n    - {type: http, name: broken, retry_policy: {max_attempts: 1}, circuit_breaker: {enabled: true, \
                failure_threshold: 1}, error_handling: {on_error: fallback, fallback_capability: search}}\n    - {type: http, name: search}";
    let fleet = desk(Fleet::builder(), spec, &["broken"]).await;
    for job in 1..=3 {
        assert_eq!(one_call(&fleet).await["status"], "success");
        assert_eq!((fleet.tools.calls_of("broken"), fleet.tools.calls_of("search")), (1, job));
    }
    let (id, _) = run(&fleet).await;
    let audit = fleet.get(&format!("/engagements/{}/audit", fleet.engagement_of(&id).await)).await;
    assert_eq!(audit["engagement"]["history"]["_list"], json!(["search"]), "the same calls after a resume");
    fleet.end().await;
}

/// RS-26: when the fallback's breaker is open as well, neither is called, and the model receives the error in the
/// same turn.
#[tokio::test]
async fn an_open_breaker_with_an_open_fallback_is_an_error() {
    let opens = "circuit_breaker: {enabled: true, failure_threshold: 1}, retry_policy: {max_attempts: 1}";
    let spec = format!(
        "  tools:\n    - {{type: http, name: broken, {opens}, error_handling: {{on_error: fallback, fallback_capability: \
         search}}}}\n    - {{type: http, name: search, {opens}}}"
    );
    let fleet = desk(Fleet::builder(), &spec, &["broken"]).await;
    fleet.tools.fail("search", 1);
    // Both calls fail, and both breakers open.
    assert_eq!(one_call(&fleet).await["status"], "error");
    assert_eq!((fleet.tools.calls_of("broken"), fleet.tools.calls_of("search")), (1, 1));
    let refused = one_call(&fleet).await;
    assert_eq!(refused["ossa_code"], "CIRCUIT_OPEN", "{refused:#}");
    assert_eq!((fleet.tools.calls_of("broken"), fleet.tools.calls_of("search")), (1, 1));
    fleet.end().await;
}

/// RS-26: the breaker of a tool is off by default, the agent's is on.
#[tokio::test]
async fn a_breaker_that_is_off_never_opens() {
    let spec = "  reliability: {circuit_breaker: {enabled: false}}\n".to_owned() + ONCE;
    let fleet = desk(Fleet::builder(), &spec, &["search"]).await;
    fleet.tools.fail("search", 7);
    for _ in 0..7 {
        assert_eq!(one_call(&fleet).await["ossa_code"], "TOOL_ERROR");
    }
    assert_eq!(fleet.number("SELECT count(*) FROM breakers").await, 0);
    fleet.end().await;
}

/// Breakers are listed with their state and closed by an operator; then calls leave again at once.
#[tokio::test]
async fn an_operator_sees_and_closes_breakers() {
    for backend in Backend::ALL {
        let fleet = desk(Fleet::builder().on(backend), ONCE, &["search"]).await;
        fleet.tools.fail("search", 5);
        for _ in 0..4 {
            one_call(&fleet).await;
        }
        let shown = fleet.get("/breakers").await["breakers"].clone();
        assert_eq!(
            shown,
            json!([{"name": "tool/desk/search", "state": "closed", "failures": 4, "open_until": null}])
        );
        one_call(&fleet).await;
        let shown = fleet.get("/breakers").await["breakers"][0].clone();
        assert_eq!((&shown["state"], &shown["failures"]), (&json!("open"), &json!(5)));
        assert!(shown["open_until"].is_string(), "{shown}");
        fleet.clock.advance_ms(60_000);
        assert_eq!(fleet.get("/breakers").await["breakers"][0]["state"], "half-open");
        let path = "/breakers/tool%2Fdesk%2Fsearch";
        let (status, body) = fleet.send(reqwest::Method::DELETE, path, "").await;
        assert_eq!((status.as_u16(), &body["state"]), (200, &json!("closed")), "{body}");
        assert_eq!(fleet.get("/breakers").await["breakers"], json!([]));
        let (status, _) = fleet.send(reqwest::Method::DELETE, path, "").await;
        assert_eq!(status.as_u16(), 404, "a closed breaker has nothing to reset");
        let (status, _) = fleet.send(reqwest::Method::DELETE, "/breakers/nonsense", "").await;
        assert_eq!(status.as_u16(), 404);
        fleet.end().await;
    }
}

/// OSSA `error_mapping`: an error of the tool that the document maps has that code, and is handled by it.
#[tokio::test]
async fn a_document_maps_errors_of_a_tool() {
    const MAPPED: &str = "  tools: [{type: http, capabilities: [{name: search, error_handling: {error_mapping: {'500': POLICY_VIOLATION}}}]}]";
    let fleet = desk(Fleet::builder(), MAPPED, &["search"]).await;
    fleet.tools.fail("search", 5);
    let (id, done) = run(&fleet).await;
    let call = attempts(&fleet, &id).await[0].clone();
    assert_eq!(call["outcome"]["ossa_code"], "POLICY_VIOLATION", "{call:#} {done:#}");
    assert_eq!(fleet.tools.calls().len(), 1, "a policy's no is not tried again");
    fleet.end().await;
}

/// One command closes all listed open breakers. It reports one that closed since the list, and closes the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_listed_breakers_are_closed_at_once() {
    let opens = "circuit_breaker: {enabled: true, failure_threshold: 1}, retry_policy: {max_attempts: 1}";
    let tools = ["broken", "search", "web_search"];
    let lines: String =
        tools.iter().map(|name| format!("    - {{type: http, name: {name}, {opens}}}\n")).collect();
    let fleet =
        desk(Fleet::builder(), &format!("  tools:\n{lines}"), &["broken", "search", "web_search"]).await;
    let folder = turnstone_tests::scratch::folder();
    let breaker = async |words: &[&str]| {
        run_program(folder.path(), &[&["breaker"], words, &["--url", &fleet.url]].concat(), &[]).await
    };
    let open_all = async || {
        tools[1..].iter().for_each(|name| fleet.tools.fail(name, 1));
        // For a fifth of a second the worker still refuses calls of a breaker that was just closed: no call, no
        // failure.
        fleet
            .until("all three are open", async || {
                run(&fleet).await;
                fleet.get("/breakers").await["breakers"].as_array().unwrap().len() == 3
            })
            .await;
        let listed = breaker(&["list", "-o", "ids"]).await;
        assert_eq!(listed.stdout.lines().count(), 3, "{listed:?}");
        listed.stdout
    };
    let listed = open_all().await;
    let (status, body) = fleet.send(reqwest::Method::DELETE, "/breakers/tool%2Fdesk%2Fsearch", "").await;
    assert_eq!(status.as_u16(), 200, "{body}");
    let words: Vec<&str> = std::iter::once("reset").chain(listed.lines()).collect();
    let reset = breaker(&words).await;
    assert_eq!(reset.code, Some(4), "{reset:?}");
    assert_eq!(reset.stdout.lines().count(), 2, "{reset:?}");
    assert!(reset.stderr.contains("tool/desk/search"), "{reset:?}");
    assert_eq!(fleet.get("/breakers").await["breakers"], json!([]));

    open_all().await;
    let pipe = format!(
        "'{program}' breaker list -o ids --url {url} | xargs '{program}' breaker reset --url {url}",
        program = binaries::turnstone().display(),
        url = fleet.url
    );
    let mut command = Command::new("sh");
    let piped = without_environment(&mut command).args(["-c", &pipe]).current_dir(folder.path()).output();
    let piped = piped.await.unwrap();
    assert!(piped.status.success(), "{piped:?}");
    assert_eq!(String::from_utf8_lossy(&piped.stdout).lines().count(), 3, "{piped:?}");
    assert_eq!(fleet.get("/breakers").await["breakers"], json!([]));
    fleet.end().await;
}
