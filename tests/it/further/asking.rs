//! An agent asks its user: the job waits for the answer, which becomes the outcome of the call.

use super::{begin, post, register, said, send, state};
use futures::future::join_all;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

const MAY_ASK: &str = "capabilities: {ask-user: {}}\n";

/// Asks for a city and a day, then repeats the answers.
fn travel(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("ask-user", json!({"request_keys": {"city": "Where to?", "day": "When?"}})),
        _ => Reply::text(format!("booked: {}", said(request).pop().unwrap().1)),
    }
}

/// The job waits without a lease across killed processes. An incomplete answer names the missing keys and changes
/// nothing. One answer counts, and repeating it has no second effect.
#[tokio::test]
async fn a_question_survives_its_process_and_is_answered_once() {
    join_all(Backend::ALL.map(async |backend| {
        let mut fleet = Fleet::builder().on(backend).model(travel).start().await;
        register(&fleet, MAY_ASK).await;
        let (id, job) = begin(&fleet, "a trip").await;
        fleet.wait_for(&job, &[JobState::Pending]).await;
        fleet.stop_workers().await;
        let waiting = state(&fleet, &id).await;
        assert_eq!(waiting["status"], "waiting-for-input", "{waiting:#}");
        let awaiting = &waiting["awaiting"];
        assert_eq!(awaiting["kind"], "input");
        assert_eq!(awaiting["request_keys"], json!({"city": "Where to?", "day": "When?"}));
        assert_eq!(awaiting["prompt"], "city: Where to?\nday: When?");
        let path = format!("/engagements/{id}/answer");
        let answer = async |body: Value| {
            let (status, answer) = post(&fleet, &path, &body, &[]).await;
            (status, answer)
        };
        let (status, refused) = answer(json!({"answers": {"city": "Oslo"}})).await;
        assert_eq!((status, &refused["error"]["details"]["missing"]), (422, &json!(["day"])), "{refused:#}");
        assert_eq!(answer(json!({"answers": {"city": "Oslo", "day": 1}, "by": "bob"})).await.0, 403);
        assert_eq!(answer(json!({"answer": {}})).await.0, 400);
        assert_eq!(
            post(&fleet, &format!("/engagements/{id}"), &json!("Oslo"), &[]).await.0,
            409,
            "two keys are asked for"
        );
        let (status, _) = fleet.post(&format!("/ojs/v1/jobs/{job}/activate"), &json!({})).await;
        assert!(status.is_client_error(), "only an answer resumes it: {status}");
        assert_eq!(state(&fleet, &id).await["status"], "waiting-for-input");
        let right = json!({"answers": {"city": "Oslo", "day": 1, "more": "ignored"}});
        let (status, taken) = answer(right.clone()).await;
        assert_eq!((status, &taken["repeated"]), (200, &json!(false)), "{taken:#}");
        let (status, taken) = answer(right.clone()).await;
        assert_eq!((status, &taken["repeated"]), (200, &json!(true)));
        assert_eq!(answer(json!({"answers": {"city": "Rome", "day": 1}})).await.0, 409);
        fleet.add_worker(4);
        let done = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "booked: {\"city\":\"Oslo\",\"day\":1}", "{done:#}");
        let (status, taken) = post(&fleet, &path, &right, &[]).await;
        assert_eq!((status, &taken["repeated"]), (200, &json!(true)), "also when the job has ended");
        assert_eq!(fleet.models.calls().len(), 2, "no question was repeated");
        assert_eq!(fleet.engagement_events(&id, "input.requested").await.len(), 1);
        let received = fleet.engagement_events(&id, "input.received").await;
        assert_eq!(
            (received.len(), &received[0]["by"], &received[0]["keys"]),
            (1, &json!("ann"), &json!(["city", "day"]))
        );
        let audit = fleet.get(&format!("/engagements/{id}/audit")).await;
        let object = &audit["engagement"];
        let object = if object.is_null() { &audit } else { object };
        assert_eq!(object["history"]["_list"], json!(["ask-user"]), "the call is recorded once: {audit:#}");
        fleet.end().await;
    }))
    .await;
}

/// OAS-42, OAS-44: a question passes the output guardrail before the user sees it. Each value of the answer passes
/// the input guardrail before a model sees it. A plain question is answered by a further input.
#[tokio::test]
async fn questions_and_answers_pass_the_guardrails() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("ask-user", json!({"question": "Where to?"})),
        _ => Reply::text("booked"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let guardrails = "guardrails: {input: {tool_name: search, assertion: '!(\"input\" in echo) || echo.input != \"Mordor\"'}, \
                      output: {tool_name: book, assertion: 'tool == \"book\"'}}\n";
    register(&fleet, &format!("{MAY_ASK}{guardrails}")).await;
    let (id, job) = begin(&fleet, "a trip").await;
    fleet.wait_for(&job, &[JobState::Pending]).await;
    assert_eq!(fleet.tools.calls_of("book"), 1, "the question is checked");
    assert_eq!(state(&fleet, &id).await["awaiting"]["prompt"], "Where to?");
    assert_eq!(send(&fleet, &id, "Oslo", "").await, job, "it is the answer");
    let done = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!((fleet.tools.calls_of("search"), fleet.tools.calls_of("book")), (2, 2));
    let (id, job) = begin(&fleet, "another").await;
    fleet.wait_for(&job, &[JobState::Pending]).await;
    let requested = fleet.models.calls().len();
    send(&fleet, &id, "Mordor", "").await;
    let failed = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(failed["state"], "discarded", "{failed:#}");
    assert_eq!(fleet.models.calls().len(), requested, "no model has seen it");
    fleet.end().await;
}

/// A job that waits for its user is cancelled like any other. A later answer is refused, and the next input runs.
#[tokio::test]
async fn a_question_ends_with_its_job() {
    join_all(Backend::ALL.map(async |backend| {
        let script = |request: &Value| match newest(request) {
            "a trip" => Reply::call("ask_user", json!({"question": "Where to?"})),
            text => Reply::text(format!("re {text}")),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let job = json!({"type": "agent.ask", "args": ["a trip"], "ext_agent_model": "m", "ext_agent_tools": [{"name": "ask_user"}]});
        let job = fleet.push(&job).await;
        let id = fleet.engagement_of(&job).await;
        fleet.wait_for(&job, &[JobState::Pending]).await;
        let (status, _) = fleet.send(reqwest::Method::DELETE, &format!("/ojs/v1/jobs/{job}"), "").await;
        assert!(status.is_success());
        let late = json!({"answers": {"answer": "Oslo"}});
        assert_eq!(post(&fleet, &format!("/engagements/{id}/answer"), &late, &[]).await.0, 409);
        let second = send(&fleet, &id, "never mind", "?reopen=true").await;
        let done = fleet.wait_for(&second, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "re never mind", "{done:#}");
        // The unanswered question is left out: a model refuses a call without an outcome.
        let last = fleet.models.calls().pop().unwrap().request;
        let calls = last["messages"].as_array().unwrap().iter().filter(|m| m["tool_calls"].is_array()).count();
        assert_eq!(calls, 0, "{last:#}");
        fleet.end().await;
    }))
    .await;
}

/// RS-11: a manifest of OSSA names the tool like any function of the server.
#[tokio::test]
async fn an_agent_of_a_manifest_asks_its_user() {
    join_all(Backend::ALL.map(async |backend| {
        let script = |request: &Value| match model_server::outcomes(request) {
            0 => Reply::call("ask_user", json!({"question": "Where to?"})),
            _ => Reply::text(format!("booked: {}", said(request).pop().unwrap().1)),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: desk}\nspec:\n  role: You answer.\n  \
                        tools: [{type: function, name: ask_user}]\n";
        let (status, body) = fleet.send(reqwest::Method::PUT, "/agents/desk", manifest).await;
        assert!(status.is_success(), "{body:#}");
        let (id, job) = begin(&fleet, "a trip").await;
        fleet.wait_for(&job, &[JobState::Pending]).await;
        let waiting = state(&fleet, &id).await;
        assert_eq!((&waiting["status"], &waiting["awaiting"]["prompt"]), (&json!("waiting-for-input"), &json!("Where to?")));
        let answer = json!({"answers": {"answer": "Oslo"}});
        assert_eq!(post(&fleet, &format!("/engagements/{id}/answer"), &answer, &[]).await.0, 200);
        let done = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "booked: {\"answer\":\"Oslo\"}", "{done:#}");
        fleet.end().await;
    }))
    .await;
}

/// Asks twice for one key each, then repeats the answers.
fn twice(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("ask-user", json!({"question": "Name?"})),
        1 => Reply::call("ask-user", json!({"question": "Delete all?"})),
        _ => {
            let said: Vec<String> = said(request).into_iter().map(|(_, text)| text).collect();
            Reply::text(said.join("|"))
        }
    }
}

async fn asks(fleet: &Fleet, id: &str, prompt: &str) -> Value {
    let mut awaiting = Value::Null;
    fleet
        .until(prompt, async || {
            awaiting = state(fleet, id).await["awaiting"].clone();
            awaiting["prompt"] == prompt
        })
        .await;
    awaiting
}

/// An answer is repeated under its key, or with its question's id, because its reply was lost. It answers that
/// question only: neither the next question nor as a further input.
#[tokio::test]
async fn a_repeated_answer_does_not_answer_the_next_question() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = Fleet::builder().on(backend).model(twice).start().await;
        register(&fleet, MAY_ASK).await;
        let (id, job) = begin(&fleet, "begin").await;
        let first = asks(&fleet, &id, "Name?").await;
        let (path, by_call) = (format!("/engagements/{id}"), format!("/engagements/{id}/answer"));
        let say = async |text: &str, key: &str| {
            post(&fleet, &path, &json!(text), &[("idempotency-key", key)]).await
        };
        let (status, taken) = say("ann", "k-1").await;
        assert_eq!((status, &taken["job_id"]), (303, &json!(job)), "{taken:#}");
        let second = asks(&fleet, &id, "Delete all?").await;
        assert_ne!(first["call_id"], second["call_id"]);
        let (status, again) = say("ann", "k-1").await;
        assert_eq!((status, &again["engagement_id"]), (303, &json!(id)), "{again:#}");
        assert_eq!(say("yes", "k-1").await.0, 409, "the key gave another answer");
        let named = json!({"answers": {"answer": "ann"}, "call_id": first["call_id"]});
        let (status, again) = post(&fleet, &by_call, &named, &[]).await;
        assert_eq!((status, &again["repeated"]), (200, &json!(true)), "{again:#}");
        let keyed = json!({"answers": {"answer": "ann"}});
        let (status, again) = post(&fleet, &by_call, &keyed, &[("idempotency-key", "k-1")]).await;
        assert_eq!((status, &again["repeated"]), (200, &json!(true)), "{again:#}");
        assert_eq!(asks(&fleet, &id, "Delete all?").await, second, "it is open");
        assert_eq!(say("no", "k-2").await.0, 303);
        let done = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        assert!(done["result"].as_str().unwrap().ends_with("{\"answer\":\"no\"}"), "{done:#}");
        for (text, key) in [("ann", "k-1"), ("no", "k-2")] {
            assert_eq!(say(text, key).await.0, 303, "also without an open question");
        }
        assert_eq!(state(&fleet, &id).await["job_id"], json!(job), "it began no further input");
        assert_eq!(fleet.models.calls().len(), 3);
        fleet.end().await;
    }))
    .await;
}

/// An input that is repeated after the agent has asked something is the same input, and no answer.
#[tokio::test]
async fn a_repeated_input_is_no_answer() {
    let script = |request: &Value| match (newest(request), model_server::outcomes(request)) {
        ("ask me", 0) => Reply::call("ask-user", json!({"question": "Delete all?"})),
        (text, _) => Reply::text(format!("re {text}")),
    };
    let fleet = Fleet::builder().model(script).start().await;
    register(&fleet, MAY_ASK).await;
    let (id, job) = begin(&fleet, "begin").await;
    fleet.wait_for(&job, &[JobState::Completed]).await;
    let path = format!("/engagements/{id}?reopen=true");
    let say = async || post(&fleet, &path, &json!("ask me"), &[("idempotency-key", "k")]).await;
    let (status, taken) = say().await;
    assert_eq!(status, 303, "{taken:#}");
    let requested = asks(&fleet, &id, "Delete all?").await;
    assert_eq!(say().await.0, 303);
    assert_eq!(asks(&fleet, &id, "Delete all?").await, requested, "it is open");
    send(&fleet, &id, "no", "").await;
    let second = taken["job_id"].as_str().unwrap();
    let done = fleet.wait_for(second, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "re ask me", "{done:#}");
    fleet.end().await;
}

/// An answer without a question id or key goes to the displayed question. Repeated because its reply was lost, it
/// answers neither the next question, even with the same key, nor becomes a further input.
#[tokio::test]
async fn an_answer_without_an_id_goes_to_the_displayed_question() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = Fleet::builder().on(backend).model(twice).start().await;
        register(&fleet, MAY_ASK).await;
        let (id, job) = begin(&fleet, "begin").await;
        let first = asks(&fleet, &id, "Name?").await;
        let by_answer = format!("/engagements/{id}/answer");
        let yes = json!({"answers": {"answer": "yes"}});
        let (status, taken) = post(&fleet, &by_answer, &yes, &[]).await;
        assert_eq!((status, &taken["repeated"]), (200, &json!(false)), "{taken:#}");
        // The agent asks again, and the question is not displayed.
        fleet
            .until("the next question", async || {
                fleet.models.count() == 2 && fleet.job(&job).await["state"] == "pending"
            })
            .await;
        let late = json!({"answers": {"answer": "no"}});
        assert_eq!(
            post(&fleet, &by_answer, &late, &[]).await.0,
            409,
            "it is too late for the first question"
        );
        assert_eq!(post(&fleet, &format!("/engagements/{id}"), &json!("no"), &[]).await.0, 409);
        let (status, again) = post(&fleet, &by_answer, &yes, &[]).await;
        assert_eq!(
            (status, &again["repeated"], &again["call_id"]),
            (200, &json!(true), &first["call_id"]),
            "{again:#}"
        );
        let (status, again) = post(&fleet, &format!("/engagements/{id}"), &json!("yes"), &[]).await;
        assert_eq!((status, &again["job_id"]), (303, &Value::Null), "{again:#}");
        let second = asks(&fleet, &id, "Delete all?").await;
        assert_ne!(first["call_id"], second["call_id"]);
        let (status, taken) = post(&fleet, &by_answer, &yes, &[]).await;
        assert_eq!(
            (status, &taken["repeated"], &taken["call_id"]),
            (200, &json!(false), &second["call_id"]),
            "the question was displayed, so the same answer is valid: {taken:#}"
        );
        let done = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!((state(&fleet, &id).await["job_id"].clone(), fleet.models.count()), (json!(job), 3));
        fleet.end().await;
    }))
    .await;
}

/// A delegate's question is displayed and answered at the engagement of the agent that called it.
#[tokio::test]
async fn a_delegates_question_is_answered_at_its_parents_engagement() {
    let script = |request: &Value| {
        let scout = request["messages"][0]["content"].as_str().unwrap_or_default().contains("scout");
        match (scout, model_server::outcomes(request)) {
            (true, 0) => Reply::call("ask-user", json!({"request_keys": {"city": "Where to?"}})),
            (false, 0) => Reply::call("scout", json!({"input": "a trip"})),
            _ => Reply::text(said(request).pop().unwrap().1),
        }
    };
    let fleet = Fleet::builder().model(script).start().await;
    let scout = "kind: \"openagentspec:v1/agent\"\nname: scout\ndescription: It looks.\nintent: You are the scout.\n\
                 owner: tests\ncapabilities: {ask-user: {}}\n";
    fleet.register(scout).await;
    register(&fleet, "capabilities: {scout: {}}\n").await;
    let (id, job) = begin(&fleet, "a trip").await;
    fleet
        .until("the delegate asks", async || state(&fleet, &id).await["status"] == "waiting-for-input")
        .await;
    let awaiting = state(&fleet, &id).await["awaiting"].clone();
    assert_eq!(awaiting["request_keys"], json!({"city": "Where to?"}), "{awaiting:#}");
    let answer = json!({"answers": {"city": "Oslo"}, "call_id": awaiting["call_id"]});
    for repeated in [false, true] {
        let (status, taken) = post(&fleet, &format!("/engagements/{id}/answer"), &answer, &[]).await;
        assert_eq!((status, &taken["repeated"]), (200, &json!(repeated)), "{taken:#}");
    }
    let done = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
    assert!(done["result"].as_str().unwrap().contains("Oslo"), "{done:#}");
    fleet.end().await;
}
