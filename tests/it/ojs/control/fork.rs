//! A fork resumes from a turn with everything before it, and leaves the original unchanged.

use super::{agent_job, control, granted, reserved};
use crate::stores::on_stores;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

on_stores!(
    everywhere: [a_fork_has_the_same_messages_up_to_its_turn],
    sqlite_first: [
        a_fork_of_a_job_that_never_ran_is_that_job_from_its_beginning,
        a_fork_of_a_plain_job_is_a_copy_that_waits,
        an_unknown_turn_and_a_taken_name_are_refused,
    ],
);

/// A model that searches twice and then answers.
fn two_searches(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        n @ (0 | 1) => Reply::call("search", json!({"q": n})),
        _ => Reply::text("done"),
    }
}

/// Returns the messages of an engagement, without ids.
async fn said(fleet: &Fleet, engagement: &str) -> Vec<(i64, Value, Value)> {
    let messages = fleet.get(&format!("/engagements/{engagement}/messages")).await;
    let messages = messages["messages"].as_array().cloned().unwrap_or_default();
    let line = |m: &Value| (m["turn"].as_i64().unwrap(), m["role"].clone(), m["content"].clone());
    messages.iter().map(line).collect()
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_fork_has_the_same_messages_up_to_its_turn(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(two_searches).start().await;
    let id = fleet.push(&agent_job("find it")).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    let (before, past) = (fleet.job(&id).await, said(&fleet, &fleet.engagement_of(&id).await).await);
    assert_eq!((fleet.models.calls().len(), fleet.tools.calls().len()), (3, 2));

    let fork = granted(&fleet, &id, "fork", json!({"at_turn": 3, "branch_name": "again"})).await;
    assert_eq!((&fork["at_turn"], &fork["state"]), (&json!(3), &json!("running")), "{fork}");
    let child = fork["job_id"].as_str().unwrap();
    let done = fleet.wait_for(child, &[JobState::Completed]).await;
    assert_eq!(done["ext_agent_engagement_id"], fork["branch_id"]);
    assert_eq!(said(&fleet, fork["branch_id"].as_str().unwrap()).await, past, "another conversation");
    // One model call for the last turn, and no recorded tool call is repeated.
    assert_eq!((fleet.models.calls().len(), fleet.tools.calls().len()), (4, 2));
    assert_eq!(fleet.models.calls()[3].request["messages"].as_array().unwrap().len(), 5);
    assert_eq!(done["ext_agent_tokens_used"], before["ext_agent_tokens_used"], "settled tokens count");
    let spent = "SELECT CAST(sum(settled) AS BIGINT) FROM totals";
    assert_eq!(fleet.number(spent).await, 2 * (19 + 19 + 15));
    assert_eq!(reserved(&fleet).await, 0);
    let mut after = fleet.job(&id).await;
    assert_eq!(after, before, "the original changed: {after:#}");
    after.take();

    // Equal branches have equal content ids, different ones have not; a branch can be forked in turn.
    let same = granted(&fleet, child, "fork", json!({"at_turn": 3})).await;
    assert_eq!(same["content_id"], fork["content_id"]);
    let other = granted(&fleet, &id, "fork", json!({"at_turn": 2})).await;
    assert_ne!(other["content_id"], fork["content_id"]);
    fleet.wait_for(other["job_id"].as_str().unwrap(), &[JobState::Completed]).await;
    fleet.wait_for(same["job_id"].as_str().unwrap(), &[JobState::Completed]).await;
    assert_eq!(fleet.tools.calls().len(), 3, "turn 2 and its call are made anew");
    fleet.end().await;
}

async fn a_fork_of_a_job_that_never_ran_is_that_job_from_its_beginning(backend: Backend) {
    let mut fleet = Fleet::builder().on(backend).workers(0).start().await;
    let id = fleet.push(&agent_job("go")).await;
    let fork = granted(&fleet, &id, "fork", json!({"at_turn": 0, "branch_name": "a"})).await;
    assert!(fork["branch_id"].is_string() && fork["content_id"].is_string(), "{fork}");
    fleet.add_worker(4);
    for id in [&id, fork["job_id"].as_str().unwrap()] {
        let done = fleet.wait_for(id, &[JobState::Completed]).await;
        assert_eq!(done["args"], json!(["go"]));
    }
    let names = fleet.event_names(&id).await;
    assert!(names.iter().any(|name| name == "agent.forked"), "{names:?}");
    fleet.end().await;
}

async fn a_fork_of_a_plain_job_is_a_copy_that_waits(backend: Backend) {
    let fleet = Fleet::builder().on(backend).workers(0).start().await;
    let options = json!({"queue": "mail", "rate_limit": {"key": "smtp", "concurrency": 1}, "unique": {"keys": ["type"]}});
    let job = json!({"type": "mail.send", "args": [1.50], "x_own": {"a": 1}, "options": options});
    let id = fleet.push(&job).await;
    let fork = granted(&fleet, &id, "fork", json!({"at_turn": 0})).await;
    assert_eq!((&fork["state"], &fork["branch_id"]), (&json!("paused"), &fork["job_id"]), "{fork}");
    let copy = fleet.job(fork["job_id"].as_str().unwrap()).await;
    for field in ["type", "args", "x_own", "queue", "state"] {
        assert_eq!(copy[field], fleet.job(&id).await[field], "{field}");
    }
    assert_eq!(fleet.number("SELECT count(*) FROM jobs WHERE held = 1").await, 1);
    // The fork waits for the same limit, and is an intended duplicate of its origin.
    let terms = "SELECT count(*) FROM jobs WHERE limit_key = 'smtp' AND (held = 0 OR unique_key IS NULL)";
    assert_eq!(fleet.number(terms).await, 2);
    granted(&fleet, fork["job_id"].as_str().unwrap(), "resume", json!({})).await;
    fleet.end().await;
}

async fn an_unknown_turn_and_a_taken_name_are_refused(backend: Backend) {
    let fleet = Fleet::builder().on(backend).workers(0).start().await;
    let id = fleet.push(&agent_job("go")).await;
    let plain = fleet.push(&json!({"type": "mail.send", "args": []})).await;
    granted(&fleet, &id, "fork", json!({"branch_name": "a"})).await;
    granted(&fleet, &plain, "fork", json!({"branch_name": "a"})).await;
    let unknown = "01890000-0000-7000-8000-000000000000";
    for (id, body, status) in [
        (id.as_str(), json!({"at_turn": 2}), 422),
        (&plain, json!({"at_turn": 2}), 422),
        (&id, json!({"at_turn": -1}), 400),
        (&id, json!({"at_turn": "1"}), 400),
        (&id, json!({"branch_name": "a"}), 409),
        (unknown, json!({}), 404),
    ] {
        let (got, answer) = control(&fleet, id, "fork", body.clone()).await;
        assert_eq!(got.as_u16(), status, "{body}: {answer}");
    }
    assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 4);
    fleet.end().await;
}
