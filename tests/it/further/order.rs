//! The order of inputs and the memory of an engagement.

use super::{begin, post, register, said, send, state};
use futures::future::join_all;
use serde_json::json;
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Backend, Fleet, Gate, Reply};

fn user(text: &str) -> (String, String) {
    ("user".to_owned(), text.to_owned())
}

fn agent(text: &str) -> (String, String) {
    ("assistant".to_owned(), text.to_owned())
}

/// OAS-42: an input that arrives while the agent works waits for its turn, in order of arrival. The conversation and
/// the numbers of turns continue, and each input passes the guardrail before a model sees it.
#[tokio::test]
async fn inputs_run_one_after_the_other_with_their_history() {
    join_all(Backend::ALL.map(async |backend| {
        let gate = Gate::default();
        let held = gate.clone();
        let script = move |request: &serde_json::Value| {
            let text = newest(request);
            let reply = Reply::text(format!("re {text}"));
            if text == "one" { reply.behind(&held) } else { reply }
        };
        let fleet = Fleet::builder().on(backend).workers(2).model(script).start().await;
        register(&fleet, "guardrails: {input: {tool_name: search, assertion: 'tool == \"search\"'}}\n").await;
        let (id, first) = begin(&fleet, "one").await;
        fleet.models.seen(1).await;
        let second = send(&fleet, &id, "two", "").await;
        let third = send(&fleet, &id, "three", "").await;
        assert_eq!(fleet.job(&second).await["state"], "pending", "the first one is worked on");
        assert_eq!(fleet.job(&third).await["state"], "pending");
        let now = state(&fleet, &id).await;
        assert_eq!((&now["status"], &now["job_id"]), (&json!("running"), &json!(first)));
        gate.open();
        for (job, answer) in [(&first, "re one"), (&second, "re two"), (&third, "re three")] {
            let done = fleet.wait_for(job, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!(answer)), "{done:#}");
        }
        let calls = fleet.models.calls();
        assert_eq!(calls.len(), 3);
        let whole = [user("one"), agent("re one"), user("two"), agent("re two"), user("three")];
        for (at, call) in calls.iter().enumerate() {
            assert_eq!(said(&call.request), whole[..=2 * at], "input {at} on {backend:?}");
        }
        let checked: Vec<_> = fleet.tools.calls().iter().map(|call| call.input.to_string()).collect();
        assert_eq!(checked.len(), 3, "each input is checked once: {checked:?}");
        let ended = state(&fleet, &id).await;
        assert_eq!((&ended["status"], &ended["turns"]), (&json!("completed"), &json!(3)));
        assert_eq!((&ended["job_id"], &ended["results"]["text"]), (&json!(third), &json!("re three")));
        // In the one stream each input begins after the end of the one before it; their events do not interleave.
        let events = fleet.get(&format!("/engagements/{id}/events?limit=1000")).await;
        let events = events["events"].as_array().cloned().unwrap();
        let of_job = |job: &str, name: &str| {
            events.iter().position(|event| event["job_id"] == job && event["name"] == name).unwrap()
        };
        assert!(of_job(&first, "job.completed") < of_job(&second, "job.started"));
        assert!(of_job(&second, "job.completed") < of_job(&third, "job.started"));
        let seqs: Vec<i64> = events.iter().filter_map(|event| event["seq"].as_i64()).collect();
        assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seqs:?}");
        let turns: Vec<_> =
            events.iter().filter(|e| e["name"] == "job.completed").map(|e| &e["turn"]).collect();
        assert_eq!(turns, [&json!(1), &json!(2), &json!(3)]);
        fleet.end().await;
    }))
    .await;
}

/// The next input runs after every end of the one before it: it is a request of its own.
#[tokio::test]
async fn the_next_input_runs_after_a_cancelled_and_after_a_failed_one() {
    join_all(Backend::ALL.map(async |backend| {
        let script = |request: &serde_json::Value| match newest(request) {
            "hang" => Reply::Hang,
            "fail" => Reply::Status(400),
            text => Reply::text(format!("re {text}")),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        register(&fleet, "").await;
        let (id, first) = begin(&fleet, "hang").await;
        fleet.models.seen(1).await;
        let failing = send(&fleet, &id, "fail", "").await;
        let withdrawn = send(&fleet, &id, "never", "").await;
        let last = send(&fleet, &id, "last", "").await;
        // A waiting input is cancelled; those before and behind it keep their places.
        let (status, body) =
            fleet.send(reqwest::Method::DELETE, &format!("/ojs/v1/jobs/{withdrawn}"), "").await;
        assert!(status.is_success(), "{body:#}");
        assert_eq!(fleet.job(&failing).await["state"], "pending");
        assert_eq!(fleet.job(&first).await["state"], "active");
        let (status, body) = fleet.send(reqwest::Method::DELETE, &format!("/ojs/v1/jobs/{first}"), "").await;
        assert!(status.is_success(), "{body:#}");
        let failed = fleet.wait_for(&failing, &[JobState::Discarded, JobState::Completed]).await;
        assert_eq!(failed["state"], "discarded", "{failed:#}");
        let done = fleet.wait_for(&last, &[JobState::Discarded, JobState::Completed]).await;
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("re last")), "{done:#}");
        let calls = fleet.models.calls();
        assert!(
            calls.iter().all(|call| newest(&call.request) != "never"),
            "a cancelled input reached the model"
        );
        assert_eq!(said(&calls.last().unwrap().request), [user("hang"), user("fail"), user("last")]);
        let events = fleet.get(&format!("/engagements/{id}/events?limit=1000")).await;
        let events = events["events"].as_array().cloned().unwrap();
        let began: Vec<_> =
            events.iter().filter(|e| e["name"] == "job.available").map(|e| &e["data"]["reason"]).collect();
        assert_eq!(began, [&json!("next_input"), &json!("next_input")]);
        // The conversation has continued without it, so the failed input cannot be retried.
        let (status, _) = fleet.post(&format!("/ojs/v1/dead-letter/{failing}/retry"), &json!({})).await;
        assert!(status.is_client_error(), "{status}");
        fleet.end().await;
    }))
    .await;
}

/// An ended engagement continues with its memory when its caller asks for it. Its budget and its count of turns
/// continue as well.
#[tokio::test]
async fn an_engagement_that_has_ended_is_reopened_on_request() {
    join_all(Backend::ALL.map(async |backend| {
        let script = |request: &serde_json::Value| Reply::text(format!("re {}", newest(request)));
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        register(&fleet, "").await;
        let (id, first) = begin(&fleet, "one").await;
        fleet.settled(&first).await;
        let path = format!("/engagements/{id}");
        let (status, refused) = post(&fleet, &path, &json!("two"), &[]).await;
        assert_eq!(
            (status, &refused["error"]["details"]["state"]),
            (409, &json!("completed")),
            "{refused:#}"
        );
        let key = [("idempotency-key", "k")];
        let (status, taken) = post(&fleet, &format!("{path}?reopen=true"), &json!("two"), &key).await;
        assert_eq!((status, &taken["state"]), (303, &json!("available")), "{taken:#}");
        let second = taken["job_id"].as_str().unwrap().to_owned();
        let (status, again) = post(&fleet, &format!("{path}?reopen=true"), &json!("two"), &key).await;
        assert_eq!((status, &again["engagement_id"]), (303, &json!(id)));
        let (status, _) = post(&fleet, &format!("{path}?reopen=true"), &json!("other"), &key).await;
        assert_eq!(status, 409, "the key was used for another input");
        let done = fleet.settled(&second).await;
        assert_eq!(done["result"], "re two", "{done:#}");
        assert_eq!(
            said(&fleet.models.calls().last().unwrap().request),
            [user("one"), agent("re one"), user("two")]
        );
        let ended = state(&fleet, &id).await;
        assert_eq!((&ended["turns"], &ended["tokens"]["used"]), (&json!(2), &json!(30)));
        assert_eq!(fleet.models.calls().len(), 2, "the repeated request had no second effect");
        fleet.end().await;
    }))
    .await;
}
