//! Questions of delegates: the caller finds them in the run that it follows, and answers there.

use super::request_events;
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet, Reply, model_server};

const LEAD: &str = "kind: \"openagentspec:v1/agent\"\nname: lead\ndescription: It leads.\nintent: You are lead.\nowner: tests\n\
                    capabilities:\n  oagent://scout: {}\n";
const SCOUT: &str = "kind: \"openagentspec:v1/agent\"\nname: scout\ndescription: It looks.\nintent: You are scout.\nowner: tests\n\
                     capabilities:\n  ask-user: {}\n  book:\n    user_identity: false\n    input_restriction: {require_review: ada}\n";

/// The lead delegates to the scout. The scout asks for a city, books after ada's approval, and answers.
fn script(request: &Value) -> Reply {
    let scout = request["messages"][0]["content"].as_str().unwrap_or_default().contains("You are scout");
    match (scout, model_server::outcomes(request)) {
        (false, 0) => Reply::call("scout", json!({"input": "a trip"})),
        (false, _) => Reply::text("the scout is back"),
        (true, 0) => Reply::call("ask-user", json!({"request_keys": {"city": "Where to?"}})),
        (true, 1) => Reply::call("book", json!({"price": 1})),
        (true, _) => Reply::text("booked"),
    }
}

async fn send(fleet: &Fleet, body: Value) -> (StatusCode, Value) {
    fleet.post("/agents/lead/process", &body).await
}

fn resume(keys: Value, call: &Value) -> Value {
    json!({"type": "ResumeWithInput", "request_id": "r", "request_keys": keys, "request_metadata": {"call_id": call}})
}

/// AP-09, AP-23: issue 7, "Human in the loop", AP-A16: a delegate's question and a review addressed to the caller
/// arrive in the caller's own run with depth 1. Each is answered once, in that run. An answer to another question has
/// no effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegates_question_reaches_the_caller() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = Fleet::builder().on(backend).workers(1).model(script).start().await;
        for document in [SCOUT, LEAD] {
            fleet.register(document).await;
        }
        let user = json!({"user": {"id": "ada"}});
        let requested = json!({"input": "a trip", "request_id": "r", "request_metadata": user});
        assert_eq!(send(&fleet, requested).await.0, StatusCode::ACCEPTED);
        let events = request_events(&fleet, "r").await;
        let question = events.last().unwrap();
        assert_eq!(
            (&question["type"], &question["agent"], &question["depth"]),
            (&json!("wait_for_input"), &json!("scout"), &json!(1)),
            "the stream ends: it is the caller's turn"
        );
        assert_eq!(question["request_keys"], json!({"city": "Where to?"}));
        assert_eq!(fleet.get("/agents/lead/request/r").await["status"], "waiting_for_input");
        let nothing = send(&fleet, resume(json!({}), &Value::Null)).await;
        assert_eq!(
            (nothing.0, &nothing.1["error"]["details"]["missing"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!(["city"]))
        );
        let other = send(&fleet, resume(json!({"city": "Oslo"}), &json!("another"))).await;
        assert_eq!(other.0, StatusCode::CONFLICT, "{}", other.1);
        for _ in 0..2 {
            let answer = send(&fleet, resume(json!({"city": "Oslo"}), &question["call_id"])).await;
            assert!(answer.0.is_success(), "{} {}", answer.0, answer.1);
        }
        let url = format!("{}/agents/lead/getevents/r?stream=true", fleet.url);
        let since = question["id"].to_string();
        let next = turnstone_tests::sse::read(&url, Some(&since), |_| false).await;
        let review: Value = serde_json::from_str(&next.last().unwrap().data).unwrap();
        assert_eq!((&review["type"], &review["depth"]), (&json!("wait_for_input"), &json!(1)), "{review}");
        assert!(review["request_keys"]["approve"].is_string(), "{review}");
        assert_eq!(fleet.get("/agents/lead/request/r").await["status"], "waiting_for_review");
        for _ in 0..2 {
            let answer = send(&fleet, resume(json!({"approve": true}), &review["review_id"])).await;
            assert!(answer.0.is_success(), "{} {}", answer.0, answer.1);
        }
        let since = review["id"].to_string();
        let rest = turnstone_tests::sse::read(&url, Some(&since), |_| false).await;
        let last: Value = serde_json::from_str(&rest.last().unwrap().data).unwrap();
        assert_eq!(
            (&last["type"], &last["result"]),
            (&json!("request_completed"), &json!("the scout is back"))
        );
        assert_eq!(fleet.tools.calls_of("book"), 1, "one effect");
        assert_eq!(send(&fleet, resume(json!({"city": "Rome"}), &Value::Null)).await.0, StatusCode::CONFLICT);
        fleet.end().await;
    }))
    .await;
}
