//! Further inputs on the command line: `engagement list`, `send` and `answer`.

use super::{begin, register, state};
use crate::program::run;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Fleet, Reply, model_server};

/// Asks for the destination of a trip.
fn script(request: &Value) -> Reply {
    match (newest(request), model_server::outcomes(request)) {
        ("a trip", 0) => Reply::call("ask-user", json!({"question": "Where to?"})),
        ("a trip", _) => Reply::text("booked"),
        (text, _) => Reply::text(format!("re {text}")),
    }
}

#[tokio::test]
async fn an_engagement_is_listed_answered_and_continued() {
    let fleet = Fleet::builder().model(script).start().await;
    register(&fleet, "capabilities: {ask-user: {}}\n").await;
    let folder = turnstone_tests::scratch::folder();
    let command = async |arguments: &[&str]| {
        run(folder.path(), &[&["engagement"], arguments, &["--url", &fleet.url]].concat(), &[]).await
    };
    let (id, job) = begin(&fleet, "a trip").await;
    fleet.wait_for(&job, &[JobState::Pending]).await;
    let listed = command(&["list", "--agent", "desk", "-o", "ids"]).await;
    assert_eq!((listed.code, listed.stdout.trim()), (Some(0), id.as_str()), "{listed:?}");

    let missing = command(&["answer", &id, "city=Oslo"]).await;
    assert!(missing.code != Some(0) && missing.stderr.contains("`answer`"), "{missing:?}");
    assert_eq!(command(&["answer", &id, "Oslo"]).await.code, Some(2), "no key");
    let other = command(&["answer", &id, "answer=Oslo", "--call", "another"]).await;
    assert_eq!(other.code, Some(5), "it asks something else: {other:?}");
    let answered = command(&["answer", &id, "answer=Oslo"]).await;
    assert_eq!(
        (answered.code, answered.stdout.trim()),
        (Some(0), format!("{id} resumes").as_str()),
        "{answered:?}"
    );
    let done = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "booked", "{done:#}");
    let again = command(&["answer", &id, "answer=Oslo"]).await;
    assert_eq!(
        (again.code, again.stdout.trim()),
        (Some(0), format!("{id} was answered so before").as_str()),
        "{again:?}"
    );
    let late = command(&["answer", &id, "answer=Rome"]).await;
    assert_eq!(late.code, Some(5), "another answer than the one that counted: {late:?}");

    let ended = command(&["send", &id, "thanks"]).await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(command(&["send", "nobody", "thanks"]).await.code, Some(4));
    let sent = command(&["send", &id, "thanks", "--reopen", "-o", "json"]).await;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let second = sent.json()["job_id"].as_str().unwrap().to_owned();
    let done = fleet.wait_for(&second, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "re thanks", "{done:#}");
    assert_eq!(state(&fleet, &id).await["status"], "completed");
    let listed = command(&["list", "-o", "json"]).await.json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "it is one engagement: {listed:#}");
    fleet.end().await;
}
