//! A restriction with a reviewer parks the job; the answer resumes or ends it, in any process.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, Reply, model_server};

const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: booker
description: An agent that books.
intent: You book what you are asked to book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      assertion: recent["book"].inputs.price <= 800
      require_review: manager
"#;

fn script(price: i64) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": price})),
        _ => Reply::text("booked"),
    }
}

async fn parked(workers: usize, price: i64) -> (Fleet, String) {
    let fleet = Fleet::builder().workers(workers).model(script(price)).start().await;
    fleet.register(AGENT).await;
    let id =
        fleet.push(&json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}})).await;
    (fleet, id)
}

pub async fn review_of(fleet: &Fleet) -> Value {
    let reviews = fleet.get("/reviews?state=open").await;
    assert_eq!(reviews["items"].as_array().unwrap().len(), 1, "{reviews:#}");
    reviews["items"][0].clone()
}

async fn answer(fleet: &Fleet, review: &Value, verb: &str) -> (StatusCode, Value) {
    let path = format!("/reviews/{}/{verb}", review["id"].as_str().unwrap());
    fleet.post(&path, &json!({"by": "manager", "reason": "because"})).await
}

/// OAS-31, OAS-32: the reviewer sees the call and the whole Engagement object. No call is made before the answer, and
/// another process may make it afterwards.
#[tokio::test]
async fn an_approved_job_resumes_in_another_process() {
    let (mut fleet, id) = parked(1, 640).await;
    assert_eq!(fleet.settled(&id).await["state"], "pending");
    let review = review_of(&fleet).await;
    assert_eq!((&review["reviewer"], &review["kind"]), (&json!("manager"), &json!("input")));
    assert_eq!(review["question"]["inputs"]["price"], 640);
    assert_eq!(review["question"]["engagement"]["recent"]["book"]["inputs"]["price"], 640);
    assert!(fleet.tools.calls().is_empty(), "no call before the answer");
    fleet.stop_workers().await;
    let (status, body) = answer(&fleet, &review, "approve").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let other = crate::crash::spawn(&fleet, 1, None);
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    drop(other);
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("booked")), "{done:#}");
    assert_eq!(fleet.tools.calls().len(), 1);
    assert_eq!(fleet.models.calls().len(), 2, "the paid answer before the park was not bought again");
    assert!(done["errors"].as_array().is_none_or(Vec::is_empty), "parking is no failure");
    fleet.end().await;
}

/// The review of a cancelled job is cancelled, and not expired.
#[tokio::test]
async fn a_review_of_a_cancelled_job_is_cancelled() {
    let (fleet, id) = parked(1, 640).await;
    fleet.settled(&id).await;
    let review = review_of(&fleet).await;
    let (status, body) = fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    assert!(status.is_success(), "{body:#}");
    let over = fleet.get(&format!("/reviews/{}", review["id"].as_str().unwrap())).await;
    assert_eq!(
        (&over["state"], &over["reason"]),
        (&json!("expired"), &json!("its job ended first")),
        "{over:#}"
    );
    fleet.end().await;
}

/// OAS-32: without confirmation the engagement does not continue (OAS-A7).
#[tokio::test]
async fn a_rejection_ends_the_engagement_without_the_call() {
    let (fleet, id) = parked(1, 640).await;
    fleet.settled(&id).await;
    let review = review_of(&fleet).await;
    assert_eq!(answer(&fleet, &review, "reject").await.0, StatusCode::OK);
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_POLICY_VIOLATION"))
    );
    assert!(done["error"]["message"].as_str().unwrap().contains("because"));
    assert!(fleet.tools.calls().is_empty());
    fleet.end().await;
}

#[tokio::test]
async fn a_second_answer_is_too_late_and_changes_nothing() {
    let (fleet, id) = parked(1, 640).await;
    fleet.settled(&id).await;
    let review = review_of(&fleet).await;
    let (first, second) = tokio::join!(answer(&fleet, &review, "approve"), answer(&fleet, &review, "reject"));
    let statuses = [first.0, second.0];
    assert!(statuses.contains(&StatusCode::OK) && statuses.contains(&StatusCode::CONFLICT), "{statuses:?}");
    fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    fleet.end().await;
}

#[tokio::test]
async fn a_denied_assertion_opens_no_review_and_reaches_the_model() {
    let (fleet, id) = parked(1, 900).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["state"], "completed", "a denied call is not the end (OAS-A4)");
    assert!(fleet.tools.calls().is_empty());
    assert_eq!(done["ext_agent_tool_results"][0]["error"]["code"], "OSSA_POLICY_VIOLATION");
    fleet.end().await;
}

#[tokio::test]
async fn a_parked_job_can_be_cancelled() {
    let (fleet, id) = parked(1, 640).await;
    fleet.settled(&id).await;
    let review = review_of(&fleet).await;
    let (status, _) = fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(answer(&fleet, &review, "approve").await.0, StatusCode::CONFLICT);
    assert_eq!(fleet.job(&id).await["state"], "cancelled");
    fleet.end().await;
}

/// OAS-32: only the document's reviewer can confirm. A second answer is a conflict without effect.
#[tokio::test]
async fn only_the_reviewer_can_confirm() {
    let (fleet, id) = parked(1, 640).await;
    fleet.settled(&id).await;
    let review = review_of(&fleet).await;
    let path = format!("/reviews/{}/approve", review["id"].as_str().unwrap());
    for body in [json!({"by": "mallory"}), json!({"by": "Manager"}), json!({"by": "anonymous"})] {
        let (status, refusal) = fleet.post(&path, &body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{body}: {refusal:#}");
    }
    for body in [json!({}), json!({"by": ""}), json!({"reason": "because"})] {
        let (status, refusal) = fleet.post(&path, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {refusal:#}");
        assert!(refusal["error"]["message"].as_str().unwrap().contains("by is missing"), "{refusal:#}");
    }
    assert!(fleet.tools.calls().is_empty());
    assert_eq!(answer(&fleet, &review, "approve").await.0, StatusCode::OK);
    let done = fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(answer(&fleet, &review, "reject").await.0, StatusCode::CONFLICT);
    assert_eq!(fleet.job(&id).await["result"], done["result"]);
    let events = fleet.event_names(&id).await;
    assert_eq!(events.last().map(String::as_str), Some("job.completed"), "{events:?}");
    fleet.end().await;
}

/// A model that books, and another one that reviews with this verdict.
fn reviewed(verdict: &'static str) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| {
        let system = request["messages"][0]["content"].as_str().unwrap_or_default();
        match (system.starts_with("You review"), model_server::outcomes(request)) {
            (true, _) => Reply::text(verdict),
            (false, 0) => Reply::call("book", json!({"price": 640})),
            _ => Reply::text("booked"),
        }
    }
}

const REVIEWER: &str = "kind: \"openagentspec:v1/agent\"\nname: auditor\ndescription: An agent that reviews.\nintent: You \
                        review.\nowner: tests\n";

/// OAS-30, OAS-31, OAS-32: an agent reviews in an engagement of its own and sees the whole Engagement object. Only
/// its clear approval allows the call, and its engagement is no part of the history.
#[tokio::test]
async fn an_agent_reviews() {
    for backend in turnstone_tests::Backend::ALL {
        for (word, verdict, confirmed) in [
            ("oagent://auditor", "{\"approve\": true, \"reason\": \"cheap\"}", true),
            ("oagent://auditor", "```json\n{\"approve\": true}\n```", true),
            ("oagent://auditor", "{\"approve\": false, \"reason\": \"too dear\"}", false),
            ("oagent://auditor", "it looks fine to me", false),
        ] {
            let fleet = Fleet::builder().on(backend).model(reviewed(verdict)).start().await;
            for document in [
                REVIEWER.to_owned(),
                AGENT.replace("require_review: manager", &format!("require_review: {word}")),
            ] {
                fleet.register(document).await;
            }
            let job = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
            let id = fleet.push(&job).await;
            let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!(fleet.tools.calls().len(), usize::from(confirmed), "{verdict}: {done:#}");
            let requested = fleet.models.calls()[1].request["messages"].to_string();
            for seen in ["started_at", "history", "_total", "640"] {
                assert!(requested.contains(seen), "the reviewer sees {seen}: {requested}");
            }
            let engagement = fleet.engagement_of(&id).await;
            let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
            assert_eq!(audit["engagement"]["history"]["_total"], i32::from(confirmed), "{audit:#}");
            // The caller does not receive a reviewer's answer about an output (AP-A16, §6.1.3).
            let reported = fleet.get(&format!("/agents/booker/getevents/{engagement}")).await;
            let reported = reported.as_array().unwrap();
            assert!(reported.len() > 2 && reported.iter().all(|event| event["depth"] == 0), "{reported:#?}");
            match confirmed {
                true => assert_eq!(done["result"], "booked"),
                false => assert_eq!(done["error"]["details"]["oas_rule"], "OAS-32", "{done:#}"),
            }
            fleet.end().await;
        }
    }
}

/// OAS-32: an answer of a reviewing agent that is not exactly the documented object approves nothing. The call is not
/// made, and the audit says why.
#[tokio::test]
async fn only_the_exact_form_of_a_reviewing_agent_approves() {
    for backend in turnstone_tests::Backend::ALL {
        for verdict in [
            "{\"approve\": false, \"approve\": true}",
            "{\"approve\": true, \"reason\": {\"a\": 1, \"a\": 2}}",
            "APPROVE? never",
            "APPROVE",
            "{\"approve\": \"true\"}",
            "{\"approve\": 1}",
            "{\"Approve\": true}",
            "{\"approve\": true} for 5 EUR, not for this",
        ] {
            let fleet = Fleet::builder().on(backend).model(reviewed(verdict)).start().await;
            fleet.register(REVIEWER).await;
            fleet
                .register(AGENT.replace("require_review: manager", "require_review: oagent://auditor"))
                .await;
            let job = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
            let id = fleet.push(&job).await;
            let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            assert!(fleet.tools.calls().is_empty(), "{verdict}: {done:#}");
            assert_eq!(done["error"]["details"]["oas_rule"], "OAS-32", "{verdict}: {done:#}");
            let engagement = fleet.engagement_of(&id).await;
            let review = &fleet.get(&format!("/engagements/{engagement}/audit")).await["reviews"][0];
            assert_eq!(review["state"], "rejected", "{verdict}: {review:#}");
            assert!(review["reason"].as_str().unwrap().contains("not exactly"), "{verdict}: {review:#}");
            fleet.end().await;
        }
    }
}

/// OAS-30: a reviewer that does not exist is refused when the document is registered.
#[tokio::test]
async fn a_reviewer_who_does_not_exist_is_refused() {
    let fleet = Fleet::builder().start().await;
    for word in ["oagent://nobody", "oagent://other.example/auditor", "\"no body\"", "3"] {
        let document = AGENT.replace("require_review: manager", &format!("require_review: {word}"));
        let (status, refusal) = fleet.send(Method::POST, "/agents", document).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{word}: {refusal:#}");
        assert!(refusal.to_string().contains("OAS-30"), "{word}: {refusal:#}");
    }
    assert_eq!(fleet.send(Method::GET, "/agents/booker", "").await.0, StatusCode::NOT_FOUND);
    fleet.end().await;
}

/// OAS-31, OAS-32: a review by the engagement's user needs a known user. Without one the call is refused, for input
/// and output restrictions, and the model receives the reason. A known user is asked.
#[tokio::test]
async fn an_unknown_user_is_not_asked() {
    for backend in turnstone_tests::Backend::ALL {
        for side in ["input_restriction", "output_restriction"] {
            let fleet = Fleet::builder().on(backend).model(script(640)).start().await;
            let document = format!(
                "{}  book:\n    user_identity: false\n    {side}:\n      require_review: user\n",
                AGENT.split_once("  book:").unwrap().0
            );
            fleet.register(document).await;
            let job = |meta: Value| json!({"type": "agent.book", "args": ["book it"], "meta": meta});
            for meta in [json!({"agent": "booker"}), json!({"agent": "booker", "user": {"id": "anonymous"}})]
            {
                let id = fleet.push(&job(meta)).await;
                let done = fleet.settled(&id).await;
                assert_eq!(done["state"], "completed", "the model continues without it: {done:#}");
                let error = &done["ext_agent_tool_results"][0]["error"];
                assert_eq!(error["code"], "OSSA_POLICY_VIOLATION", "{done:#}");
                assert!(error["message"].as_str().unwrap().contains("no such reviewer"), "{done:#}");
            }
            assert!(fleet.tools.calls().is_empty(), "{side}");
            assert_eq!(fleet.get("/reviews").await["items"], json!([]), "{side}");
            let id = fleet.push(&job(json!({"agent": "booker", "user": {"id": "u-17"}}))).await;
            assert_eq!(fleet.settled(&id).await["state"], "pending");
            assert_eq!(review_of(&fleet).await["reviewer"], "u-17");
            assert_eq!(fleet.tools.calls().len(), usize::from(side == "output_restriction"));
            fleet.end().await;
        }
    }
}

/// OAS-32: retrying a job after a rejection or after silence opens a new review, by a person or an agent. The paid
/// answer is not bought again.
#[tokio::test]
async fn a_retried_job_opens_a_new_review() {
    for backend in turnstone_tests::Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(script(640)).start().await;
        fleet.register(AGENT).await;
        let job = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
        let id = fleet.push(&job).await;
        fleet.settled(&id).await;
        let first = review_of(&fleet).await;
        assert_eq!(answer(&fleet, &first, "reject").await.0, StatusCode::OK);
        fleet.wait_for(&id, &[JobState::Discarded]).await;
        let (status, again) = fleet.post(&format!("/ojs/v1/admin/jobs/{id}/retry"), &json!({})).await;
        assert_eq!(status, StatusCode::OK, "{again:#}");
        fleet.wait_for(&id, &[JobState::Pending]).await;
        let second = review_of(&fleet).await;
        assert_ne!(first["id"], second["id"]);
        assert_eq!(answer(&fleet, &first, "approve").await.0, StatusCode::CONFLICT, "a no stays a no");
        assert!(fleet.tools.calls().is_empty());
        assert_eq!(answer(&fleet, &second, "approve").await.0, StatusCode::OK);
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 1), "{done:#}");
        assert_eq!(fleet.models.calls().len(), 2);
        let states: Vec<_> = fleet.get("/reviews").await["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|review| review["state"].clone())
            .collect();
        assert_eq!(states, [json!("rejected"), json!("approved")]);
        fleet.end().await;
    }
}

/// The same with an agent as reviewer that rejects the first time.
#[tokio::test]
async fn a_retried_job_calls_its_reviewing_agent_again() {
    for backend in turnstone_tests::Backend::ALL {
        let requested = std::sync::atomic::AtomicUsize::new(0);
        let script = move |request: &Value| {
            let system = request["messages"][0]["content"].as_str().unwrap_or_default();
            let verdicts = [
                "{\"approve\": false, \"reason\": \"not now\"}",
                "{\"approve\": true, \"reason\": \"it is cheap\"}",
            ];
            match (system.starts_with("You review"), model_server::outcomes(request)) {
                (true, _) => {
                    Reply::text(verdicts[requested.fetch_add(1, std::sync::atomic::Ordering::SeqCst).min(1)])
                }
                (false, 0) => Reply::call("book", json!({"price": 640})),
                _ => Reply::text("booked"),
            }
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        for document in [
            REVIEWER.to_owned(),
            AGENT.replace("require_review: manager", "require_review: oagent://auditor"),
        ] {
            fleet.register(document).await;
        }
        let job = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
        let id = fleet.push(&job).await;
        fleet.wait_for(&id, &[JobState::Discarded]).await;
        assert!(fleet.tools.calls().is_empty());
        let (status, again) = fleet.post(&format!("/ojs/v1/admin/jobs/{id}/retry"), &json!({})).await;
        assert_eq!(status, StatusCode::OK, "{again:#}");
        let done = fleet.wait_for(&id, &[JobState::Completed]).await;
        assert_eq!((&done["result"], fleet.tools.calls().len()), (&json!("booked"), 1), "{done:#}");
        fleet.end().await;
    }
}
