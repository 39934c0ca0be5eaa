//! Discovery, descriptors, and the events of a run: polled, listed and streamed.

use super::{ask, fleet, kinds, led, request_events};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet};

async fn list(fleet: &Fleet, path: &str) -> Vec<Value> {
    fleet.get(path).await.as_array().unwrap_or_else(|| panic!("{path} is no list")).clone()
}

fn ids(events: &[Value]) -> Vec<i64> {
    events.iter().map(|event| event["id"].as_i64().unwrap()).collect()
}

/// AP-01, AP-02, AP §3.1: every registered agent is found by name and path. Its description lists the operation that
/// all agents have.
#[tokio::test]
async fn agents_are_found_and_describe_themselves() {
    let fleet = fleet(Backend::Sqlite).await;
    let places =
        json!([{"name": "lead", "path": "/agents/lead"}, {"name": "scout", "path": "/agents/scout"}]);
    for path in ["/", "/ap/"] {
        assert_eq!(fleet.get(path).await, places);
    }
    assert_eq!(fleet.get("/agents").await[0]["path"], "/agents/lead");
    let lead = fleet.get("/agents/lead/describe").await;
    assert_eq!((&lead["name"], &lead["purpose"]), (&json!("lead"), &json!("An agent that leads.")));
    assert_eq!(lead["tools"], json!(["book", "scout"]));
    let chat = &lead["operations"][0];
    assert_eq!(chat["name"], "chat");
    assert_eq!(chat["input_schema"]["properties"]["input"]["type"], "string");
    assert_eq!(chat["output_schema"]["properties"]["output"]["type"], "string");
    let (status, error) = fleet.send(Method::GET, "/agents/nobody/describe", "").await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{error}");
    fleet.end().await;
}

/// AP-06, AP-07, AP-08, AP-16, AP-17, AP-23, AP §3.4, §3.5: a run has all events of its request and of its delegates.
/// They are numbered without gaps, and every cause precedes its effects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_lists_every_event_once_and_in_order() {
    join_all(Backend::ALL.map(numbers_on)).await;
}

async fn numbers_on(backend: Backend) {
    let fleet = fleet(backend).await;
    let (request, run) = led(&fleet).await;
    let events = list(&fleet, &format!("/agents/lead/getevents/{run}")).await;
    assert_eq!(
        kinds(&events),
        [
            ("request_started", 0),
            ("chat_request", 0),
            ("completion_call", 0),
            ("completion_result", 0),
            ("tool_call", 0),
            ("tool_result", 0),
            ("completion_call", 0),
            ("completion_result", 0),
            ("tool_call", 0),
            ("completion_call", 1),
            ("completion_result", 1),
            ("tool_call", 1),
            ("tool_result", 1),
            ("completion_call", 1),
            ("completion_result", 1),
            ("text_output", 1),
            ("tool_result", 0),
            ("completion_call", 0),
            ("completion_result", 0),
            ("text_output", 0),
            ("request_completed", 0),
        ],
        "{events:#?}"
    );
    assert_eq!(ids(&events), (1..=21).collect::<Vec<_>>());
    for event in &events {
        assert_eq!((&event["run_id"], &event["request_id"]), (&json!(run), &json!(request)), "{event}");
        assert_eq!(event["agent"], if event["depth"] == 1 { "scout" } else { "lead" }, "{event}");
        assert!(event["role"].is_string() && event["timestamp"].is_string(), "{event}");
    }
    assert_eq!((&events[1]["input"], &events[1]["role"]), (&json!("go"), &json!("user")));
    assert_eq!((&events[4]["function_name"], &events[4]["args"]), (&json!("book"), &json!({"price": 1})));
    assert_eq!(events[5]["call_id"], events[4]["call_id"]);
    assert_eq!(events[15]["content"], "all quiet");
    let last = &events[20];
    assert_eq!(
        (&last["finish_reason"], &last["result"], &last["exposes"]),
        (&json!("success"), &json!("done"), &json!({"price": 1}))
    );
    let again = list(&fleet, &format!("/agents/lead/events/{run}")).await;
    assert_eq!(again, events, "every reader gets the same events");

    let child = fleet.get(&format!("/engagements/{run}")).await["children"][0]["engagement_id"].clone();
    let own = list(&fleet, &format!("/agents/scout/getevents/{}", child.as_str().unwrap())).await;
    assert_eq!(ids(&own), (1..=10).collect::<Vec<_>>(), "the scout's run is its own, with an end of its own");
    assert_eq!((&own[0]["type"], &own[9]["type"]), (&json!("request_started"), &json!("request_completed")));
    fleet.end().await;
}

/// AP-12, AP §3.4: without `since`, a poll returns each event once. With `since`, the position of the poll does not
/// move.
#[tokio::test]
async fn a_poll_advances_and_since_does_not() {
    let fleet = fleet(Backend::Sqlite).await;
    let (request, run) = led(&fleet).await;
    let poll = format!("/agents/lead/getevents/{request}");
    let later = list(&fleet, &format!("{poll}?since=19")).await;
    assert_eq!(ids(&later), [20, 21]);
    let all = list(&fleet, &format!("/agents/lead/getevents?request_id={request}")).await;
    assert_eq!(ids(&all).len(), 21);
    assert!(list(&fleet, &poll).await.is_empty());
    assert!(list(&fleet, &format!("{poll}?since=21")).await.is_empty());
    let (status, lost) = fleet.send(Method::GET, &format!("{poll}?since=99"), "").await;
    assert_eq!(status, StatusCode::CONFLICT, "{lost}");
    assert_eq!(list(&fleet, &format!("{poll}?since=0")).await.len(), 21);
    let (status, _) = fleet.send(Method::GET, &format!("{poll}?since=x"), "").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    for path in [format!("/agents/scout/getevents/{request}"), "/agents/lead/getevents/none".to_owned()] {
        assert_eq!(fleet.send(Method::GET, &path, "").await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let status = fleet.get(&format!("/agents/lead/request/{request}")).await;
    assert_eq!((&status["status"], &status["finish_reason"]), (&json!("completed"), &json!("success")));
    assert_eq!((&status["result"], &status["last_event_id"]), (&json!("done"), &json!(21)));
    let runs = fleet.get("/agents/lead/runs").await;
    assert_eq!((&runs[0]["run_id"], &runs[0]["requests"]), (&json!(run), &json!([request])));
    fleet.end().await;
}

/// AP-13, AP §3.4: a stream replays the request and ends with it. A client that reconnects misses nothing and
/// receives nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_resumes_where_its_client_stopped() {
    let fleet = fleet(Backend::Sqlite).await;
    let job = json!({"type": "agent.lead", "args": ["go"], "meta": {"agent": "lead"}});
    let request = fleet.push(&job).await;
    let url = format!("{}/agents/lead/getevents/{request}?stream=True", fleet.url);
    let first = turnstone_tests::sse::read(&url, None, |seen| seen.len() == 5).await;
    let rest = turnstone_tests::sse::read(&url, Some(&first[4].id), |_| false).await;
    let seen: Vec<Value> =
        first.iter().chain(&rest).map(|event| serde_json::from_str(&event.data).unwrap()).collect();
    assert_eq!(ids(&seen), (1..=21).collect::<Vec<_>>());
    assert_eq!(seen[20]["type"], "request_completed");
    assert!(first.iter().all(|event| event.event == "message"), "frames have no name of their own");
    let whole = turnstone_tests::sse::read(&url, None, |_| false).await;
    assert_eq!(whole.len(), 21, "a reader after the end gets every event and the end");
    fleet.end().await;
}

/// AP §3.3: a model call names the model of the agent that calls. The model of a job applies
/// to its own agent and to no delegate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_to_a_model_names_the_model_of_its_agent() {
    let fleet = fleet(Backend::Sqlite).await;
    let job = json!({"type": "agent.lead", "args": ["go"], "meta": {"agent": "lead"}, "ext_agent_model": "leads-own"});
    let request = fleet.push(&job).await;
    fleet.wait_for(&request, &[JobState::Completed, JobState::Discarded]).await;
    let events = list(&fleet, &format!("/agents/lead/getevents/{request}?since=0")).await;
    let calls = events.iter().filter(|event| event["type"] == "completion_call");
    let labels: Vec<_> =
        calls.map(|event| (event["depth"].as_i64().unwrap(), event["model"].as_str())).collect();
    let own = (0, Some("leads-own"));
    assert_eq!(labels, [own, own, (1, None), (1, None), own]);
    fleet.end().await;
}

/// AP-22, AP §3.4: `logging_level: debug` adds the data of the phase to the events of model calls; others have none.
#[tokio::test]
async fn a_request_for_more_detail_gets_it_in_the_events_of_model_calls() {
    let fleet = fleet(Backend::Sqlite).await;
    for (level, expected) in [(json!("debug"), true), (Value::Null, false)] {
        let chat = json!({"type": "ChatRequest", "input": "go", "logging_level": level});
        let started = ask(&fleet, &chat).await;
        let events = request_events(&fleet, started["request_id"].as_str().unwrap()).await;
        let calls: Vec<_> = events
            .iter()
            .filter(|event| event["type"].as_str().unwrap().starts_with("completion_"))
            .collect();
        assert!(!calls.is_empty());
        for event in calls {
            let detailed = event["detail"]["phase"].is_string();
            assert_eq!(detailed, expected && event["depth"] == 0, "{level}: {event}");
        }
    }
    fleet.end().await;
}
