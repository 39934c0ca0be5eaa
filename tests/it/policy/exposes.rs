//! The values that an agent exposes beside its answer.

use super::{fleet, on_every_store, run};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::Reply;
use turnstone_tests::documents::oas;

const BODY: &str = r#"
capabilities:
  search: {}
exposes:
  found: recent.search.outputs.echo.q
  calls: history._total
  who: user.email
  missing: recent["book"].outputs.id
"#;

/// OAS-47, OAS-55, OAS-48: the exposed keys are beside the text in every answer; a missing value is null with a
/// reason (OAS-A12).
#[tokio::test]
async fn the_exposed_keys_are_beside_the_text() {
    on_every_store(async |backend| {
        let fleet = fleet(backend, vec![Reply::call("search", json!({"q": "tides"})), Reply::text("done")]).await;
        fleet.register(oas("open", BODY)).await;
        for _ in 0..2 {
            let (job, engagement) = run(&fleet, "open").await;
            let exposed = json!({"text": "done", "found": "tides", "calls": 1, "who": "u@example.org", "missing": null});
            assert_eq!(job["result"], exposed);
            let state = fleet.get(&format!("/engagements/{engagement}")).await;
            assert_eq!(state["results"], exposed);
            let warnings = state["warnings"].as_array().unwrap();
            assert_eq!(warnings.len(), 1, "{state:#}");
            assert_eq!(warnings[0]["key"], "missing");
            assert!(warnings[0]["message"].as_str().unwrap().contains("there is no `book`"), "{state:#}");
            for hidden in ["recent", "history", "capabilities"] {
                assert!(state.get(hidden).is_none(), "{state:#}");
            }
        }
        fleet.end().await;
    })
    .await;
}

/// OAS-47, OAS-55: the exposed keys are beside a JSON answer, too, and on the Agent Protocol.
#[tokio::test]
async fn the_exposed_keys_are_beside_a_json_answer() {
    on_every_store(async |backend| {
        let replies = vec![Reply::call("search", json!({"q": "tides"})), Reply::text("{\"level\": 3}")];
        let fleet = fleet(backend, replies).await;
        fleet.register(oas("open", BODY)).await;
        let requested = json!({"type": "agent.policy", "args": ["go"], "meta": {"agent": "open", "user": {"id": "u-17"}},
                           "ext_agent_output_schema": {"type": "object", "required": ["level"]}});
        let id = fleet.push(&requested).await;
        let job = fleet.settled(&id).await;
        let engagement = fleet.engagement_of(&id).await;
        let exposed = json!({"text": "{\"level\":3}", "output": {"level": 3}, "found": "tides", "calls": 1,
                             "who": null, "missing": null});
        assert_eq!(job["result"], exposed);
        assert_eq!(fleet.get(&format!("/engagements/{engagement}")).await["results"], exposed);
        let beside = json!({"found": "tides", "calls": 1, "who": null, "missing": null});
        let status = fleet.get(&format!("/agents/open/request/{id}")).await;
        assert_eq!((&status["result"], &status["exposes"]), (&json!("{\"level\":3}"), &beside), "{status:#}");
        let events = fleet.get(&format!("/agents/open/getevents/{id}?since=0")).await;
        let end = events.as_array().unwrap().last().unwrap().clone();
        assert_eq!((&end["type"], &end["exposes"]), (&json!("request_completed"), &beside), "{end:#}");
        fleet.end().await;
    })
    .await;
}

/// OAS-47: the exposed values are available while the agent waits for its user, at the engagement and on the Agent
/// Protocol.
#[tokio::test]
async fn the_exposed_keys_are_available_during_a_question() {
    on_every_store(async |backend| {
        let replies = vec![
            Reply::call("search", json!({"q": "tides"})),
            Reply::call("ask-user", json!({"question": "Where?"})),
            Reply::text("done"),
        ];
        let fleet = fleet(backend, replies).await;
        let body = "capabilities: {search: {}, ask-user: {}}\nexposes: {found: recent.search.outputs.echo.q, calls: history._total}";
        fleet.register(oas("open", body)).await;
        let id = super::ask(&fleet, "open").await;
        fleet.wait_for(&id, &[JobState::Pending]).await;
        let engagement = fleet.engagement_of(&id).await;
        let beside = json!({"found": "tides", "calls": 1});
        let state = fleet.get(&format!("/engagements/{engagement}")).await;
        assert_eq!((&state["status"], &state["results"]), (&json!("waiting-for-input"), &beside), "{state:#}");
        let status = fleet.get(&format!("/agents/open/request/{id}")).await;
        assert_eq!((&status["status"], &status["exposes"]), (&json!("waiting_for_input"), &beside));
        let events = fleet.get(&format!("/agents/open/getevents/{id}?since=0")).await;
        let asks = events.as_array().unwrap().last().unwrap().clone();
        assert_eq!((&asks["type"], &asks["exposes"]), (&json!("wait_for_input"), &beside), "{asks:#}");
        let answer = json!({"answers": {"answer": "Oslo"}});
        assert!(fleet.post(&format!("/engagements/{engagement}/answer"), &answer).await.0.is_success());
        fleet.wait_for(&id, &[JobState::Completed]).await;
        fleet.end().await;
    })
    .await;
}

/// OAS-47: a failed engagement exposes nothing (OAS-A13).
#[tokio::test]
async fn a_failure_exposes_nothing() {
    on_every_store(async |backend| {
        let replies = vec![Reply::call("search", json!({"q": "tides"})); 9];
        let fleet = fleet(backend, replies).await;
        fleet.register(oas("looping", &format!("{BODY}lifespan: {{short_circuit: 2}}\n"))).await;
        let (job, engagement) = run(&fleet, "looping").await;
        assert_eq!(job["state"], "discarded");
        let state = fleet.get(&format!("/engagements/{engagement}")).await;
        assert_eq!((&state["results"], &state["status"]), (&Value::Null, &json!("failed")), "{state:#}");
        assert!(!state.to_string().contains("u@example.org\",\"missing"), "{state:#}");
        fleet.end().await;
    })
    .await;
}

/// OAS-48: an exposed value that is no CEL expression is refused when the document is registered; so is the key of
/// the answer itself.
#[tokio::test]
async fn a_broken_expression_is_refused_at_once() {
    on_every_store(async |backend| {
        let fleet = fleet(backend, vec![Reply::text("done")]).await;
        for (exposes, rule) in [
            ("found: \"recent[\"", "OAS-48"),
            ("found: ticket_id", "OAS-48"),
            ("text: history._total", "OAS-47"),
        ] {
            let text = oas("open", &format!("exposes:\n  {exposes}\n"));
            let (status, refusal) = fleet.send(Method::POST, "/agents", text).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refusal:#}");
            assert!(refusal.to_string().contains(rule), "{refusal:#}");
        }
        fleet.end().await;
    })
    .await;
}

/// OAS-49, OAS-50: `lifespan` may be left out. With `retain_memory: false` and without it, the model of a second
/// engagement receives nothing of the first one.
#[tokio::test]
async fn a_second_engagement_begins_with_nothing() {
    on_every_store(async |backend| {
        let replies = vec![Reply::call("search", json!({"q": "tides"})), Reply::text("done")];
        let fleet = fleet(backend, replies).await;
        for (name, lifespan) in [("fresh", "lifespan: {retain_memory: false}"), ("plain", "")] {
            let text = oas(name, &format!("capabilities: {{search: {{}}}}\n{lifespan}\n"));
            let body = fleet.register(text).await;
            assert!(!body["warnings"].to_string().contains("OAS-51"), "{body:#}");
            let before = fleet.models.calls().len();
            run(&fleet, name).await;
            run(&fleet, name).await;
            let calls = fleet.models.calls();
            let second = calls[before + 2].request["messages"].to_string();
            assert!(!second.contains("tides") && !second.contains("done"), "{second}");
        }
        fleet.end().await;
    })
    .await;
}
