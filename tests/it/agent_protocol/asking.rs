//! Requests: sent, named, configured, streamed, and refused.

use super::{ask, fleet, kinds, request_events};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet, Gate, Reply};

async fn send(fleet: &Fleet, path: &str, body: &Value, tenant: &str) -> reqwest::Response {
    let request = turnstone_tests::http::client().post(format!("{}{path}", fleet.url));
    let request = request.header("content-type", "application/json").header("x-ojs-tenant", tenant);
    request.body(body.to_string()).send().await.unwrap()
}

/// AP-03, AP-05, AP-15, AP-21, AP §3.3, AP-A2: a client that waits receives `request_started` while the agent works.
/// A client that does not wait receives 202 without a body, and the ids in headers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_returns_its_first_event_or_202() {
    let gate = Gate::default();
    let held = gate.clone();
    let fleet = Fleet::builder().model(move |_| Reply::text("hello").behind(&held)).start().await;
    super::register(&fleet).await;
    let started = ask(&fleet, &json!({"type": "ChatRequest", "input": "hi", "request_id": "r-1"})).await;
    assert_eq!((&started["type"], &started["id"]), (&json!("request_started"), &json!(1)));
    assert_eq!((&started["request_id"], &started["role"]), (&json!("r-1"), &json!("system")));
    let body = json!({"input": "hi", "request_metadata": {"user_id": "u"}, "run_context": {"a": 1}});
    let answer = send(&fleet, "/agents/lead/process", &body, "acme").await;
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    let (request, run) = (header("x-request-id"), header("x-run-id"));
    assert_eq!(header("location"), format!("/agents/lead/getevents/{request}"));
    assert!(answer.text().await.unwrap().is_empty());
    gate.open();
    let events = request_events(&fleet, &request).await;
    assert_eq!((&events[0]["run_id"], &events[1]["input"]), (&json!(run), &json!("hi")));
    assert_eq!(
        kinds(&events).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>(),
        [
            "request_started",
            "chat_request",
            "completion_call",
            "completion_result",
            "text_output",
            "request_completed"
        ]
    );
    assert_eq!((&events[5]["finish_reason"], &events[5]["result"]), (&json!("success"), &json!("hello")));
    let status = fleet.get(&format!("/agents/lead/request/{request}")).await;
    assert_eq!(
        (&status["request_metadata"]["user_id"], &status["run_context"]["a"]),
        (&json!("u"), &json!(1))
    );
    let engagement = fleet.get(&format!("/engagements/{run}")).await;
    assert_eq!(engagement["user"]["id"], "u", "seed: the metadata names the user");
    request_events(&fleet, "r-1").await;
    fleet.end().await;
}

/// AP-A5, §6.3.9: a repeated request id with the same body is the same request; with another body it is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_id_identifies_one_request() {
    let fleet = fleet(Backend::Sqlite).await;
    let body = json!({"input": "go", "request_id": "mine"});
    let first = ask(&fleet, &body).await;
    let again = ask(&fleet, &json!({"request_id": "mine", "type": "chat", "input": "go"})).await;
    assert_eq!(first, again);
    let (status, error) =
        fleet.post("/agents/lead/process", &json!({"input": "other", "request_id": "mine"})).await;
    assert_eq!((status, &error["error"]["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    request_events(&fleet, "mine").await;
    assert_eq!(fleet.get("/agents/lead/runs").await.as_array().unwrap().len(), 1, "one run, one request");
    let run = first["run_id"].as_str().unwrap();
    let (status, _) = fleet.post("/agents/lead/process", &json!({"input": "go", "request_id": run})).await;
    assert_eq!(status, StatusCode::CONFLICT, "a run has this id");
    fleet.end().await;
}

/// AP-24: issue 7, "Bad input": a request is refused without effect when its target is unknown, is of another tenant,
/// or is in the wrong state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_request_is_refused_without_effect() {
    let fleet = fleet(Backend::Sqlite).await;
    let body = json!({"input": "go", "request_id": "theirs"});
    let run = send(&fleet, "/agents/lead/process", &body, "acme").await.headers()["x-run-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let none = "01890000-0000-7000-8000-000000000000";
    for (request, status) in [
        (json!({"type": "DanceRequest", "input": "x"}), 422),
        (json!({"input": "x", "args": {}}), 422),
        (json!({"type": "ResumeWithInput", "request_id": "nobody", "request_keys": {}}), 404),
        (json!({"type": "CancelRequest", "request_id": "nobody"}), 404),
        (json!({"request_id": none}), 404),
        (json!({"input": "x", "run_id": none}), 404),
        (json!({"args": {}, "run_id": none}), 404),
        (json!([1]), 400),
    ] {
        let answer = send(&fleet, "/agents/lead/process", &request, "other").await;
        assert_eq!(answer.status().as_u16(), status, "{request}");
    }
    // Another tenant sees neither the request nor the run, and cannot cancel or continue it.
    for request in [
        json!({"type": "CancelRequest", "request_id": "theirs"}),
        json!({"input": "x", "run_id": run}),
        json!({"args": {"temperature": 0}, "run_id": run}),
    ] {
        assert_eq!(send(&fleet, "/agents/lead/process", &request, "other").await.status(), 404, "{request}");
    }
    let client = turnstone_tests::http::client();
    for path in [format!("getevents/{run}"), "getevents/theirs".into(), "request/theirs".into()] {
        let url = format!("{}/agents/lead/{path}", fleet.url);
        let answer = client.get(url).header("x-ojs-tenant", "other").send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
    for path in ["/agents/lead/process", "/agents/lead/stream_request"] {
        assert_eq!(fleet.send(Method::GET, path, "").await.0, StatusCode::METHOD_NOT_ALLOWED, "AP-A14");
    }
    assert_eq!(fleet.post("/agents/nobody/process", &json!({"input": "x"})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        fleet.post("/agents/lead/process?wait=maybe", &json!({"input": "x"})).await.0,
        StatusCode::BAD_REQUEST
    );
    // The request continues undisturbed.
    let url = format!("{}/agents/lead/getevents/theirs?stream=1", fleet.url);
    let answer = client.get(url).header("x-ojs-tenant", "acme").send().await.unwrap();
    assert!(answer.text().await.unwrap().contains("\"finish_reason\":\"success\""));
    assert_eq!(fleet.get("/agents/lead/runs").await.as_array().unwrap().len(), 1);
    let resume = json!({"type": "resume", "request_id": "theirs", "request_keys": {"a": 1}});
    assert_eq!(send(&fleet, "/agents/lead/process", &resume, "acme").await.status(), 409, "it does not wait");
    fleet.end().await;
}

/// AP-11, AP §3.5, AP-A13: settings apply to later requests. An unknown setting or an invalid value is an error and
/// changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_apply_to_later_requests() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(|_| Reply::text("ok")).start().await;
        super::register(&fleet).await;
        let configure =
            async |args: Value| ask(&fleet, &json!({"type": "ConfigureRequest", "args": args})).await;
        let done = configure(json!({"temperature": 0.25, "max_tokens": 77})).await;
        assert_eq!((&done["type"], &done["finish_reason"]), (&json!("request_completed"), &json!("success")));
        for wrong in
            [json!({"temperatur": 1}), json!({"temperature": 9}), json!({"max_tokens": 5, "nonsense": 1})]
        {
            let failed = configure(wrong.clone()).await;
            assert_eq!(failed["finish_reason"], "error", "{wrong}");
            assert!(failed["error"]["message"].is_string(), "{failed}");
        }
        configure(json!({"temperature": null})).await;
        let started = ask(&fleet, &json!({"input": "go"})).await;
        request_events(&fleet, started["request_id"].as_str().unwrap()).await;
        let requested = fleet.models.calls().pop().unwrap().request;
        assert_eq!(
            (requested["max_tokens"].as_i64(), requested.get("temperature")),
            (Some(77), None),
            "{requested}"
        );
        fleet.end().await;
    }
}

/// AP-06, AP-11, AP-12, AP-13, AP-15, AP-A13: a ConfigureRequest is a request: it has an id, a status, and events that
/// are polled and streamed. Of an agent it has a run of its own; of a run its events are among those of the run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configure_request_has_an_id_and_events() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(|_| Reply::text("ok")).start().await;
        super::register(&fleet).await;
        let body = json!({"type": "ConfigureRequest", "request_id": "c-1", "args": {"max_tokens": 77}});
        let (status, sent) = fleet.post("/agents/lead/process", &body).await;
        assert_eq!((status, sent), (StatusCode::ACCEPTED, json!("")));
        let done = ask(&fleet, &body).await;
        assert_eq!(
            (&done["request_id"], &done["id"]),
            (&json!("c-1"), &json!(2)),
            "the same request: {done}"
        );
        let other = json!({"type": "ConfigureRequest", "request_id": "c-1", "args": {"max_tokens": 78}});
        for taken in [other, json!({"input": "hi", "request_id": "c-1"})] {
            let (status, body) = fleet.post("/agents/lead/process", &taken).await;
            assert_eq!(status, StatusCode::CONFLICT, "{body}");
        }
        let events = fleet.get("/agents/lead/getevents/c-1?since=0").await;
        let kinds: Vec<_> = events.as_array().unwrap().iter().map(|event| event["type"].clone()).collect();
        assert_eq!(kinds, ["request_started", "request_completed"]);
        assert_eq!(fleet.get("/agents/lead/getevents/c-1").await.as_array().map(Vec::len), Some(2));
        assert_eq!(fleet.get("/agents/lead/getevents/c-1").await, json!([]), "they were polled");
        let url = format!("{}/agents/lead/getevents/c-1?stream=true", fleet.url);
        let streamed = turnstone_tests::http::client().get(url).send().await.unwrap().text().await.unwrap();
        assert_eq!(streamed.matches("data: ").count(), 2, "{streamed}");
        let status = fleet.get("/agents/lead/request/c-1").await;
        assert_eq!((&status["status"], &status["finish_reason"]), (&json!("completed"), &json!("success")));
        assert_eq!(
            fleet.get(&format!("/agents/lead/getevents/{}", status["run_id"].as_str().unwrap())).await,
            events
        );
        // Within a run.
        let first = ask(&fleet, &json!({"input": "go", "request_id": "a"})).await;
        request_events(&fleet, "a").await;
        let run = first["run_id"].as_str().unwrap();
        let wrong = ask(&fleet, &json!({"args": {"token_budget": 1}, "run_id": run})).await;
        assert_eq!((&wrong["finish_reason"], &wrong["run_id"]), (&json!("error"), &json!(run)), "{wrong}");
        let id = wrong["request_id"].as_str().unwrap();
        let own = fleet.get(&format!("/agents/lead/getevents/{id}?since=0")).await;
        let all = fleet.get(&format!("/agents/lead/getevents/{run}")).await;
        assert_eq!(own[1], wrong);
        assert_eq!(
            all.as_array().unwrap().iter().rev().take(2).rev().cloned().collect::<Vec<_>>(),
            own.as_array().unwrap()[..]
        );
        ask(&fleet, &json!({"input": "again", "request_id": "b", "run_id": run})).await;
        let later = request_events(&fleet, "b").await;
        assert_eq!(later[0]["id"].as_i64(), wrong["id"].as_i64().map(|id| id + 1), "{later:#?}");
        fleet.end().await;
    }
}

/// AP-14, AP §3.4: a request and its events in one call. Only chat requests can be streamed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_streamed_as_it_is_sent() {
    let fleet = fleet(Backend::Sqlite).await;
    let answer =
        send(&fleet, "/agents/lead/stream_request", &json!({"input": "go", "request_id": "s"}), "acme").await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert_eq!(answer.headers()["x-request-id"], "s");
    let text = answer.text().await.unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: ").or_else(|| line.strip_prefix("data:")))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!(events[0]["type"], "request_started");
    assert_eq!(events.last().unwrap()["type"], "request_completed");
    assert!(!text.lines().any(|line| line.starts_with("event:")), "frames have no names");
    for body in
        [json!({"args": {}}), json!({"request_id": "s"}), json!({"request_id": "s", "request_keys": {}})]
    {
        assert_eq!(
            fleet.post("/agents/lead/stream_request", &body).await.0,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{body}"
        );
    }
    fleet.end().await;
}

/// AP-A17: an answer that has to pass a check is streamed only after it passes. AP §6.3.10: line ends, control
/// characters and U+2028 stay within one line of data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_answer_is_streamed_after_it_passes() {
    const GUARDED: &str = r#"
kind: "openagentspec:v1/agent"
name: lead
description: An agent whose answers are checked.
intent: You are lead.
owner: tests
capabilities:
  book: {user_identity: false}
guardrails:
  output: {tool_name: search, assertion: "tool == 'search'"}
"#;
    const SAID: &str = "one\ntwo 🐦 \u{2028}three";
    let fleet = Fleet::builder()
        .model(|request| match turnstone_tests::model_server::outcomes(request) {
            0 => Reply::call("book", json!({"price": 1})),
            _ => Reply::text(SAID),
        })
        .start()
        .await;
    fleet.register(GUARDED).await;
    let started = ask(&fleet, &json!({"input": "go"})).await;
    let events = request_events(&fleet, started["request_id"].as_str().unwrap()).await;
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[kinds.len() - 2..], ["text_output", "request_completed"], "{kinds:?}");
    let last = events.last().unwrap();
    assert_eq!((&last["finish_reason"], &last["result"]), (&json!("success"), &json!(SAID)), "{last}");
    assert_eq!(events[events.len() - 2]["content"], SAID);
    fleet.end().await;
}

/// AP-19, AP §3.2: an operation of a manifest is listed, and its input is validated. When the answer does not match
/// the output schema, the model is called again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_validate_their_input_and_output() {
    const MANIFEST: &str = r#"
apiVersion: ossa/v0.2.9
kind: Agent
metadata: {name: lead, version: 1.0.0, description: Adds.}
spec:
  role: You are lead.
extensions:
  agent_protocol:
    operations:
      - name: sum
        description: Adds numbers.
        input_schema: {type: object, required: [numbers], properties: {numbers: {type: array}}}
        output_schema: {type: object, required: [total], properties: {total: {type: integer}}}
"#;
    let fleet = Fleet::builder()
        .model(|request| match request["messages"].as_array().map(Vec::len) {
            Some(2) => Reply::text("about three"),
            _ => Reply::text(r#"{"total": 3}"#),
        })
        .start()
        .await;
    fleet.register(MANIFEST).await;
    let operations = fleet.get("/agents/lead/describe").await["operations"].clone();
    assert_eq!((&operations[0]["name"], &operations[1]["name"]), (&json!("chat"), &json!("sum")));
    assert_eq!(operations[1]["output_schema"]["required"], json!(["total"]));
    let (status, error) =
        fleet.post("/agents/lead/process", &json!({"type": "sum", "input": {"n": 1}})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{error}");
    let started = ask(&fleet, &json!({"type": "sum", "input": {"numbers": [1, 2]}, "request_id": "s"})).await;
    let last = request_events(&fleet, "s").await.pop().unwrap();
    assert_eq!(
        (&last["finish_reason"], &last["result"]),
        (&json!("success"), &json!(r#"{"total":3}"#)),
        "{last}"
    );
    assert_eq!(fleet.models.count(), 2, "the first answer had not the form");
    let again = json!({"type": "sum", "input": {"numbers": []}, "run_id": started["run_id"]});
    assert_eq!(fleet.post("/agents/lead/process", &again).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    fleet.end().await;
}
