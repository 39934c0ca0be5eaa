//! Several approvals of one turn are asked for at once, and a call of unknown outcome may be answered with its result.

use super::{ENDED, answer, attempts, desk, push};
use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Gate, model_server};

const ALL: &str = "  autonomy: {approval_required: true, escalation_policy: {target: ann}}\n  tools:\n    \
                   - {type: http, name: search}\n    - {type: http, name: book}\n    - {type: http, name: web_search}";

async fn open(fleet: &Fleet) -> Vec<Value> {
    fleet.get("/reviews?state=open").await["items"].as_array().cloned().unwrap()
}

fn tools(reviews: &[Value]) -> Vec<&str> {
    reviews.iter().map(|review| review["question"]["name"].as_str().unwrap()).collect()
}

/// All reviews of a turn are open at once. The job waits until each has an answer, in any order and in any process, and the
/// calls run in the order of the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvals_of_one_turn_are_asked_at_once() {
    for backend in Backend::ALL {
        let mut fleet = desk(Fleet::builder().on(backend), ALL, &["search", "book", "web_search"]).await;
        let id = push(&fleet).await;
        assert_eq!(fleet.settled(&id).await["state"], "pending");
        let reviews = open(&fleet).await;
        assert_eq!(tools(&reviews), ["search", "book", "web_search"], "{reviews:#?}");
        let parked = fleet.events_named(&id, "job.parked").await;
        assert_eq!(parked[0]["reviews"].as_array().map(Vec::len), Some(3), "{parked:#?}");
        // The worker that asked is gone when the answers come.
        fleet.stop_workers().await;
        answer(&fleet, &reviews[2], "approve").await;
        answer(&fleet, &reviews[0], "approve").await;
        assert_eq!((&fleet.job(&id).await["state"], open(&fleet).await.len()), (&json!("pending"), 1));
        answer(&fleet, &reviews[1], "approve").await;
        let other = crate::crash::spawn(&fleet, 2, None);
        let done = fleet.wait_for(&id, &ENDED).await;
        drop(other);
        assert_eq!(done["state"], "completed", "{done:#}");
        let called: Vec<String> = fleet.tools.calls().into_iter().map(|call| call.tool).collect();
        assert_eq!(called, ["search", "book", "web_search"]);
        assert_eq!(fleet.models.calls().len(), 2, "the answer was not bought again");
        let all = fleet.get("/reviews").await["items"].as_array().map(Vec::len);
        assert_eq!(all, Some(3), "each was asked once");
        fleet.end().await;
    }
}

/// A rejection ends the engagement as soon as the calls before it have their answers. The other reviews are closed.
#[tokio::test]
async fn a_rejection_does_not_wait_for_later_approvals() {
    let fleet = desk(Fleet::builder(), ALL, &["search", "book", "web_search"]).await;
    let id = push(&fleet).await;
    fleet.settled(&id).await;
    let reviews = open(&fleet).await;
    answer(&fleet, &reviews[1], "reject").await;
    assert_eq!(fleet.job(&id).await["state"], "pending", "the call before it may still run");
    answer(&fleet, &reviews[0], "approve").await;
    let done = fleet.wait_for(&id, &ENDED).await;
    assert_eq!(done["error"]["code"], "OSSA_POLICY_VIOLATION", "{done:#}");
    assert_eq!((fleet.tools.calls().len(), open(&fleet).await.len()), (1, 0));
    fleet.end().await;
}

/// Only the calls that need an approval wait for one, and the calls before them run.
#[tokio::test]
async fn calls_before_the_first_approval_run() {
    let spec = "  autonomy: {escalation_policy: {target: ann}}\n  tools:\n    - {type: http, name: search}\n    \
                - {type: http, name: book, approval_required: true}\n    - {type: http, name: web_search}";
    let fleet = desk(Fleet::builder(), spec, &["search", "book", "web_search", "book"]).await;
    let id = push(&fleet).await;
    assert_eq!(fleet.settled(&id).await["state"], "pending");
    let reviews = open(&fleet).await;
    assert_eq!((tools(&reviews), fleet.tools.calls().len()), (vec!["book", "book"], 1));
    for review in &reviews {
        answer(&fleet, review, "approve").await;
    }
    let done = fleet.wait_for(&id, &ENDED).await;
    assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 4), "{done:#}");
    fleet.end().await;
}

/// Design §4: after a crash the outcome of two calls is unknown. Both are asked about at once. One is answered with its
/// result, so it is not made again, and the model receives the result; the other is made once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_unknown_outcome_is_answered_with_its_result() {
    for backend in Backend::ALL {
        let spec = "  tools:\n    - {type: http, name: book, parallel: true}\n";
        let fleet = desk(Fleet::builder().on(backend).workers(0), spec, &["book", "book"]).await;
        let gate = Gate::default();
        fleet.tools.hold(&gate);
        let id = push(&fleet).await;
        let mut worker = crate::crash::spawn(&fleet, 2, None);
        fleet.tools.seen(2).await;
        worker.start_kill().unwrap();
        crate::crash::killed(worker).await;
        gate.open();
        fleet.release_all().await;
        let second = crate::crash::spawn(&fleet, 2, None);
        fleet.wait_for(&id, &[JobState::Pending, JobState::Completed]).await;
        let reviews = open(&fleet).await;
        assert_eq!(tools(&reviews), ["book", "book"], "{reviews:#?}");
        let path = |review: &Value, verb: &str| format!("/reviews/{}/{verb}", review["id"].as_str().unwrap());
        let made = json!({"by": "ann", "reason": "it is on the list", "result": {"seat": "12A"}});
        let (status, refusal) = fleet.post(&path(&reviews[0], "reject"), &made).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refusal:#}");
        let (folder, review) = (turnstone_tests::scratch::folder(), reviews[0]["id"].as_str().unwrap());
        let made =
            ["review", "answer", review, "--result", r#"{"seat": "12A"}"#, "--by", "ann", "-o", "json"];
        let ran = crate::program::run(folder.path(), &made, &[("TURNSTONE_URL", &fleet.url)]).await;
        assert_eq!((ran.code, &ran.json()["result"]["seat"]), (Some(0), &json!("12A")), "{ran:?}");
        answer(&fleet, &reviews[1], "approve").await;
        let done = fleet.wait_for(&id, &ENDED).await;
        drop(second);
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!(fleet.tools.calls_of("book"), 3, "one of the two was repeated");
        let call = attempts(&fleet, &id).await[0].clone();
        assert_eq!(
            (&call["name"], &call["outcome"]["status"], &call["sends"]),
            (&json!("book"), &json!("success"), &json!(1)),
            "{call:#}"
        );
        let request = fleet.models.calls()[1].request.clone();
        assert_eq!(model_server::outcomes(&request), 2);
        assert!(request["messages"].to_string().contains("12A"), "{request:#}");
        fleet.end().await;
    }
}

/// A result is only for a call of unknown outcome.
#[tokio::test]
async fn an_approval_of_a_call_takes_no_result() {
    let fleet = desk(Fleet::builder(), ALL, &["search"]).await;
    let id = push(&fleet).await;
    fleet.settled(&id).await;
    let path = format!("/reviews/{}/approve", open(&fleet).await[0]["id"].as_str().unwrap());
    for result in [json!(1), Value::Null] {
        let (status, refusal) = fleet.post(&path, &json!({"by": "ann", "result": result})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refusal:#}");
        assert!(refusal["error"]["message"].as_str().unwrap().contains("unknown_outcome"), "{refusal:#}");
    }
    assert!(fleet.tools.calls().is_empty());
    fleet.end().await;
}
