//! Humans in the loop: a request waits for its user without a worker slot, and resumes with the answer.

use super::{ask, every_result_follows_its_call, request_events};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

const ASKING: &str = r#"
kind: "openagentspec:v1/agent"
name: lead
description: An agent that asks.
intent: You are lead.
owner: tests
capabilities:
  ask-user: {}
  book:
    user_identity: false
    input_restriction: {require_review: ada}
"#;

/// Asks for a city and a day, books after ada's approval, and repeats the answers.
fn script(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("ask-user", json!({"request_keys": {"city": "Where to?", "day": "When?"}})),
        1 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("booked"),
    }
}

async fn fleet(backend: Backend) -> Fleet {
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    fleet.register(ASKING).await;
    fleet
}

fn resume(keys: Value) -> Value {
    json!({"type": "ResumeWithInput", "request_id": "r", "request_keys": keys})
}

async fn send(fleet: &Fleet, body: Value) -> (StatusCode, Value) {
    fleet.post("/agents/lead/process?wait=true", &body).await
}

/// AP-09, AP §3.4, §3.5, §6.3.6: the stream ends with the question. A wrong answer leaves it open; one answer counts,
/// also when it is repeated or sent twice at once. The request and its stream resume in another worker. A review of
/// the caller arrives in the same way. A waiting request can be cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_waits_for_its_user_and_resumes() {
    join_all(Backend::ALL.map(async |backend| {
        let mut fleet = fleet(backend).await;
        let user = json!({"user": {"id": "ada"}});
        let job = json!({"input": "a trip", "request_id": "r", "request_metadata": user});
        ask(&fleet, &job).await;
        let requested = request_events(&fleet, "r").await;
        let question = requested.last().unwrap();
        assert_eq!(question["type"], "wait_for_input", "the stream ends: it is the caller's turn");
        assert_eq!(question["request_keys"], json!({"city": "Where to?", "day": "When?"}));
        assert_eq!(fleet.get("/agents/lead/request/r").await["status"], "waiting_for_input");
        fleet.stop_workers().await;
        let (status, error) = send(&fleet, resume(json!({"city": "Oslo"}))).await;
        assert_eq!(
            (status, &error["error"]["details"]["missing"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!(["day"]))
        );
        let stranger = json!({"type": "resume", "request_id": "r", "request_keys": {"city": "x", "day": "y"},
                              "request_metadata": {"user": {"id": "bob"}}});
        assert_eq!(send(&fleet, stranger).await.0, StatusCode::FORBIDDEN);
        assert_eq!(fleet.get("/agents/lead/request/r").await["status"], "waiting_for_input");
        let right = resume(json!({"city": "Oslo", "day": "Monday", "more": "ignored"}));
        let (one, two) = tokio::join!(send(&fleet, right.clone()), send(&fleet, right.clone()));
        assert_eq!((one.0, two.0), (StatusCode::OK, StatusCode::OK), "{} {}", one.1, two.1);
        assert_eq!(one.1["type"], "request_started");
        assert_eq!(send(&fleet, resume(json!({"city": "Rome", "day": "x"}))).await.0, StatusCode::CONFLICT);
        fleet.add_worker(2);
        let url = format!("{}/agents/lead/getevents/r?stream=true", fleet.url);
        let since = question["id"].to_string();
        let next = turnstone_tests::sse::read(&url, Some(&since), |_| false).await;
        let next: Vec<Value> = next.iter().map(|frame| serde_json::from_str(&frame.data).unwrap()).collect();
        let review = next.last().unwrap();
        assert_eq!(review["type"], "wait_for_input", "ada is the reviewer: {review}");
        assert!(review["request_keys"]["approve"].is_string(), "{review}");
        assert_eq!(fleet.get("/agents/lead/request/r").await["status"], "waiting_for_review");
        assert_eq!(
            send(&fleet, resume(json!({"approve": "perhaps"}))).await.0,
            StatusCode::UNPROCESSABLE_ENTITY
        );
        assert_eq!(send(&fleet, resume(json!({}))).await.0, StatusCode::UNPROCESSABLE_ENTITY);
        for _ in 0..2 {
            let (status, answer) = send(&fleet, resume(json!({"approve": true}))).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
        }
        assert_eq!(send(&fleet, resume(json!({"approve": false}))).await.0, StatusCode::CONFLICT);
        let since = review["id"].to_string();
        let rest = turnstone_tests::sse::read(&url, Some(&since), |_| false).await;
        let last: Value = serde_json::from_str(&rest.last().unwrap().data).unwrap();
        assert_eq!((&last["type"], &last["result"]), (&json!("request_completed"), &json!("booked")));
        assert_eq!(fleet.tools.calls_of("book"), 1, "one effect");
        let all = request_events(&fleet, "r").await;
        every_result_follows_its_call(&all);
        let ids: Vec<i64> = all.iter().map(|event| event["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, (1..=i64::try_from(all.len()).unwrap()).collect::<Vec<_>>());
        assert!(send(&fleet, resume(json!({"other": 1}))).await.0.is_client_error(), "it waits no more");

        let waiting = json!({"input": "a trip", "request_id": "c", "request_metadata": user});
        let id = ask(&fleet, &waiting).await["run_id"].as_str().unwrap().to_owned();
        fleet
            .until("it waits", async || {
                fleet.get("/agents/lead/request/c").await["status"] == "waiting_for_input"
            })
            .await;
        let (status, ended) = send(&fleet, json!({"type": "cancel", "request_id": "c"})).await;
        assert_eq!((status, &ended["finish_reason"]), (StatusCode::OK, &json!("canceled")));
        let job = fleet.get(&format!("/engagements/{id}")).await;
        assert_eq!(job["status"], JobState::Cancelled.as_str(), "{job:#}");
        fleet.end().await;
    }))
    .await;
}

/// Waits until the request waits for its user after so many model calls, without reading its question.
async fn asks_after(fleet: &Fleet, calls: usize) {
    fleet
        .until("it asks", async || {
            fleet.models.count() == calls
                && fleet.get("/agents/lead/request/r").await["status"] == "waiting_for_input"
        })
        .await;
}

/// AP §6.3.6: an answer that is repeated because its reply was lost does not answer the next question, even when both
/// questions have the same key. An answer without a question id goes to a displayed question only; one with an id
/// goes to that question only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_answer_does_not_answer_the_next_question() {
    join_all(Backend::ALL.map(async |backend| {
        let script = |request: &Value| match model_server::outcomes(request) {
            0 => Reply::call("ask-user", json!({"question": "Name?"})),
            1 => Reply::call("ask-user", json!({"question": "Delete all?"})),
            2 => Reply::call("book", json!({"price": 1})),
            3 => Reply::call("book", json!({"price": 2})),
            _ => Reply::text("booked"),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        fleet.register(ASKING).await;
        let user = json!({"user": {"id": "ada"}});
        let job = json!({"input": "a trip", "request_id": "r", "request_metadata": user});
        ask(&fleet, &job).await;
        let named = |call: &Value, answer: &str| {
            let mut request = resume(json!({"answer": answer}));
            request["call_id"] = call.clone();
            request
        };
        let first = request_events(&fleet, "r").await.pop().unwrap();
        let yes = || resume(json!({"answer": "yes"}));
        assert_eq!(send(&fleet, yes()).await.0, StatusCode::OK);
        asks_after(&fleet, 2).await;
        for again in [yes(), named(&first["call_id"], "yes")] {
            let (status, answer) = send(&fleet, again).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
        }
        for other in [named(&first["call_id"], "no"), named(&json!("nothing"), "yes")] {
            assert_eq!(send(&fleet, other).await.0, StatusCode::CONFLICT);
        }
        asks_after(&fleet, 2).await;
        let second = request_events(&fleet, "r").await.pop().unwrap();
        assert_eq!(
            (&second["type"], &second["request_keys"]["answer"]),
            (&json!("wait_for_input"), &json!("Delete all?"))
        );
        assert_eq!(
            send(&fleet, yes()).await.0,
            StatusCode::OK,
            "the question was displayed, so the same answer is valid"
        );
        let review = async |other: &Value| {
            let waits = async || {
                let open = fleet.get("/reviews?state=open").await;
                open["items"][0]["id"].is_string() && open["items"][0]["id"] != *other
            };
            fleet.until("it waits for ada", waits).await;
            fleet.get("/reviews?state=open").await["items"][0]["id"].clone()
        };
        let agree = || resume(json!({"approve": true}));
        let one = review(&Value::Null).await;
        request_events(&fleet, "r").await;
        assert_eq!(send(&fleet, agree()).await.0, StatusCode::OK);
        let two = review(&one).await;
        assert_eq!(send(&fleet, agree()).await.0, StatusCode::OK, "the earlier answer");
        assert_eq!(fleet.get(&format!("/reviews/{}", two.as_str().unwrap())).await["state"], "open");
        let mut by_name = agree();
        by_name["review_id"] = two;
        assert_eq!(send(&fleet, by_name).await.0, StatusCode::OK);
        let last = request_events(&fleet, "r").await.pop().unwrap();
        assert_eq!((&last["type"], &last["result"]), (&json!("request_completed"), &json!("booked")));
        assert_eq!((fleet.models.count(), fleet.tools.calls_of("book")), (5, 2));
        fleet.end().await;
    }))
    .await;
}

/// OAS-32: a review with several reviewers is displayed to the one whose request it is. The answer is one vote, and
/// the request then waits for the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caller_is_one_of_several_reviewers() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("booked"),
    };
    let rules =
        json!({"users": ["ada", "ben"], "groups": {"auditors": {"members": ["ada", "ben"], "quorum": 2}}});
    let fleet = Fleet::builder().model(script).reviews(rules).start().await;
    let document = ASKING.replace("require_review: ada", "require_review: auditors");
    fleet.register(document).await;
    let user = json!({"user": {"id": "ada"}});
    ask(&fleet, &json!({"input": "a trip", "request_id": "r", "request_metadata": user})).await;
    let requested = request_events(&fleet, "r").await.pop().unwrap();
    assert_eq!(requested["type"], "wait_for_input", "{requested}");
    let agree = |by: &str| {
        let mut request = resume(json!({"approve": true}));
        request["request_metadata"] = json!({"user": {"id": by}});
        request
    };
    assert_eq!(send(&fleet, agree("ben")).await.0, StatusCode::FORBIDDEN, "ada is the request's user");
    for _ in 0..2 {
        let (status, answer) = send(&fleet, agree("ada")).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    assert_eq!(send(&fleet, resume(json!({"approve": false}))).await.0, StatusCode::CONFLICT, "it was a yes");
    let path = format!("/reviews/{}", requested["review_id"].as_str().unwrap());
    let review = fleet.get(&path).await;
    assert_eq!((&review["state"], &review["quorum"]["approvals"]), (&json!("open"), &json!(1)), "{review:#}");
    let (status, _) = fleet.post(&format!("{path}/approve"), &json!({"by": "ben"})).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(request_events(&fleet, "r").await.last().unwrap()["result"], "booked");
    fleet.end().await;
}

/// Requests of a deleted agent continue: they can be answered, cancelled and read. New requests are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_a_deleted_agent_continue() {
    let fleet = fleet(Backend::Sqlite).await;
    for id in ["r", "c"] {
        ask(&fleet, &json!({"input": "a trip", "request_id": id})).await;
        assert_eq!(request_events(&fleet, id).await.last().unwrap()["type"], "wait_for_input");
    }
    let (status, body) = fleet.send(Method::DELETE, "/agents/lead?allow_unresolved=1", "").await;
    assert!(status.is_success(), "{body:#}");
    let (status, ended) = send(&fleet, json!({"type": "cancel", "request_id": "c"})).await;
    assert_eq!((status, &ended["finish_reason"]), (StatusCode::OK, &json!("canceled")));
    let (status, answer) = send(&fleet, resume(json!({"city": "Oslo", "day": "Monday"}))).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    fleet.until("it continued", async || fleet.models.count() == 3).await;
    assert_eq!(fleet.get("/agents/lead/runs").await.as_array().unwrap().len(), 2);
    for new in [
        json!({"input": "x"}),
        json!({"args": {"temperature": 0}}),
        json!({"type": "cancel", "request_id": "none"}),
    ] {
        assert_eq!(send(&fleet, new).await.0, StatusCode::NOT_FOUND);
    }
    let (status, _) = send(&fleet, json!({"type": "cancel", "request_id": "r"})).await;
    assert_eq!(status, StatusCode::OK);
    fleet.end().await;
}
