//! Runs with several requests: requests of one run wait for each other, share its history, and are numbered together.

use super::{ask, kinds, register, request_events};
use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet, Gate, Reply};

async fn later(fleet: &Fleet, run: &Value, id: &str, input: &str) {
    let body = json!({"input": input, "run_id": run, "request_id": id});
    let (status, answer) = fleet.post("/agents/lead/process", &body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
}

/// AP-04, AP-06, AP §3.5, §6.3.4, §6.3.5: requests of a run are served one after the other, are numbered without a
/// gap, and see the earlier conversation. Requests of another run do not wait and begin with an empty conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_a_run_wait_for_each_other() {
    for backend in Backend::ALL {
        let gate = Gate::default();
        let held = gate.clone();
        let script = move |request: &Value| match request["messages"]
            .as_array()
            .and_then(|all| all.last())
            .is_some_and(|last| last["content"] == "slowly")
        {
            true => Reply::text("one").behind(&held),
            false => Reply::text("quick"),
        };
        let fleet = Fleet::builder().on(backend).workers(1).model(script).start().await;
        register(&fleet).await;
        let first = ask(&fleet, &json!({"input": "slowly", "request_id": "a"})).await;
        let run = &first["run_id"];
        later(&fleet, run, "b", "second").await;
        later(&fleet, run, "c", "third").await;
        assert_eq!(fleet.get("/agents/lead/request/b").await["status"], "queued");
        let other = ask(&fleet, &json!({"input": "another run", "request_id": "o"})).await;
        assert_ne!(&other["run_id"], run);
        assert_eq!(
            request_events(&fleet, "o").await.last().unwrap()["result"],
            "quick",
            "another run does not wait"
        );
        gate.open();
        request_events(&fleet, "c").await;
        let all = fleet.get(&format!("/agents/lead/getevents/{}", run.as_str().unwrap())).await;
        let all = all.as_array().unwrap();
        let ids: Vec<i64> = all.iter().map(|event| event["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, (1..=18).collect::<Vec<_>>(), "{:?}", kinds(all));
        let requests: Vec<&str> = all.iter().map(|event| event["request_id"].as_str().unwrap()).collect();
        assert!(requests.is_sorted(), "turns never interleave: {requests:?}");
        let requested = fleet.models.calls().pop().unwrap().request["messages"].to_string();
        for said in ["slowly", "one", "second", "quick", "third"] {
            assert!(requested.contains(said), "{said} is remembered: {requested}");
        }
        fleet.end().await;
    }
}

/// AP-11, AP-A13: settings of a run apply to its later requests and to no other run. A cancelled request leaves its
/// run usable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_has_settings_of_its_own() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).workers(1).model(|_| Reply::text("ok")).start().await;
        register(&fleet).await;
        let first = ask(&fleet, &json!({"input": "go", "request_id": "a"})).await;
        request_events(&fleet, "a").await;
        let run = &first["run_id"];
        let configure = async |args: Value| {
            ask(&fleet, &json!({"args": args, "run_id": run})).await["finish_reason"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(configure(json!({"max_tokens": 55})).await, "success");
        assert_eq!(configure(json!({"token_budget": 5})).await, "error", "it was set when the run began");
        later(&fleet, run, "b", "again").await;
        request_events(&fleet, "b").await;
        assert_eq!(fleet.models.calls().pop().unwrap().request["max_tokens"], 55);
        ask(&fleet, &json!({"input": "go", "request_id": "new"})).await;
        request_events(&fleet, "new").await;
        assert_ne!(fleet.models.calls().pop().unwrap().request["max_tokens"], 55, "another run");
        fleet.end().await;
    }
}

/// An input that enters the run through another protocol has its own request id and trace. A request that continues a
/// run belongs to the trace of its own client, like one that begins a run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_input_of_a_run_has_its_own_name_and_trace() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let fleet = Fleet::builder().workers(1).model(|_| Reply::text("ok")).start().await;
    register(&fleet).await;
    let first = ask(&fleet, &json!({"input": "go", "request_id": "a"})).await;
    request_events(&fleet, "a").await;
    let run = first["run_id"].as_str().unwrap();
    let client = turnstone_tests::http::client();
    let body = json!({"input": "on", "run_id": run, "request_id": "b"});
    let sent =
        client.post(format!("{}/agents/lead/process", fleet.url)).header("content-type", "application/json");
    let sent = sent.header("traceparent", PARENT).header("x-request-id", "http-7").body(body.to_string());
    assert_eq!(sent.send().await.unwrap().status(), StatusCode::ACCEPTED);
    request_events(&fleet, "b").await;
    let state = fleet.get(&format!("/engagements/{run}")).await;
    let meta = fleet.job(state["job_id"].as_str().unwrap()).await["meta"].clone();
    assert_eq!((&meta["traceparent"], &meta["request_id"]), (&json!(PARENT), &json!("http-7")), "{meta:#}");

    let posted = client.post(format!("{}/engagements/{run}?reopen=true", fleet.url));
    let posted = posted.header("content-type", "application/json").body(json!("and now?").to_string());
    assert!(posted.send().await.unwrap().status().is_success());
    let job = fleet.get(&format!("/engagements/{run}")).await["job_id"].as_str().unwrap().to_owned();
    let events = request_events(&fleet, &job).await;
    assert!(events.iter().all(|event| event["request_id"] == job.as_str()), "{events:#?}");
    assert_eq!(fleet.get("/agents/lead/runs").await[0]["requests"], json!(["a", "b", job]));
    let meta = fleet.job(&job).await["meta"].clone();
    assert_eq!((meta.get("agent_protocol"), meta.get("traceparent")), (None, None), "{meta:#}");
    let nobody = json!({"input": "x", "request_metadata": {"user": "ada"}});
    let (status, error) = fleet.post("/agents/lead/process", &nobody).await;
    assert!(status.is_client_error(), "a user that cannot be read is not left out: {error}");
    fleet.end().await;
}

/// A request belongs to the trace of its sender, also when it continues a run, and not to the trace of the request
/// before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_keeps_its_trace() {
    let fleet = Fleet::builder().workers(1).model(|_| Reply::text("ok")).start().await;
    register(&fleet).await;
    let client = turnstone_tests::http::client();
    let mut run = Value::Null;
    for number in 1..=2 {
        let trace = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b{number}-01");
        let mut body = json!({"input": "go"});
        if run.is_string() {
            body["run_id"] = run.clone();
        }
        let sent = client.post(format!("{}/agents/lead/process", fleet.url)).json(&body);
        let sent = sent.header("traceparent", &trace).header("x-request-id", format!("http-{number}"));
        let answer = sent.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        run = answer.headers()["x-run-id"].to_str().unwrap().into();
        let meta = fleet.job(answer.headers()["x-request-id"].to_str().unwrap()).await["meta"].clone();
        assert_eq!(
            (&meta["traceparent"], &meta["request_id"]),
            (&json!(trace), &json!(format!("http-{number}"))),
            "{meta:#}"
        );
    }
    fleet.end().await;
}
