//! Two branches of one root become a third.

use super::{agent_job, control, granted};
use crate::stores::on_stores;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::journal::MESSAGES;
use turnstone_tests::{Backend, Fleet, Reply};

on_stores!(
    everywhere: [],
    sqlite_first: [
        a_merged_branch_follows_its_strategy,
        labels_name_a_job_that_never_ran,
        branches_of_different_roots_and_unknown_ones_are_refused,
    ],
);

/// Returns the text of each turn of an engagement.
async fn turns(fleet: &Fleet, engagement: &str) -> Vec<String> {
    let messages = fleet.get(&format!("/engagements/{engagement}/messages")).await;
    let mut turns: Vec<String> = Vec::new();
    for message in messages["messages"].as_array().unwrap() {
        let turn = usize::try_from(message["turn"].as_i64().unwrap()).unwrap();
        turns.resize(turns.len().max(turn), String::new());
        turns[turn - 1] += message["content"].as_str().unwrap();
    }
    turns
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_merged_branch_follows_its_strategy(backend: Backend) {
    // Every second answer differs.
    let calls = AtomicUsize::new(0);
    let script = move |_: &Value| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::call("search", json!({"q": 1})),
        n => Reply::text(format!("answer {n}")),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    let id = fleet.push(&agent_job("go")).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    let mut branches = Vec::new();
    for name in ["a", "b"] {
        let fork = granted(&fleet, &id, "fork", json!({"at_turn": 2, "branch_name": name})).await;
        fleet.wait_for(fork["job_id"].as_str().unwrap(), &[JobState::Completed]).await;
        branches.push(fork["branch_id"].as_str().unwrap().to_owned());
    }
    let (a, b) = (turns(&fleet, &branches[0]).await, turns(&fleet, &branches[1]).await);
    assert_eq!((a[0] == b[0], a[1].as_str(), b[1].as_str()), (true, "answer 2", "answer 3"));
    let union = [a.clone(), b[1..].to_vec()].concat();
    for (strategy, said) in [("ours", &a), ("theirs", &b), ("union", &union)] {
        // By name and by id.
        let body = json!({"branch_a": "a", "branch_b": branches[1], "strategy": strategy});
        let before = fleet.number(MESSAGES).await;
        let merged = granted(&fleet, &id, "merge", body).await;
        assert_eq!(merged["conflicts"], json!([{"turn": 2}]), "{merged}");
        let copied = fleet.number(MESSAGES).await - before;
        assert_eq!(
            copied,
            i64::from(strategy == "union"),
            "{strategy}: only a turn with another number is copied"
        );
        assert_eq!(&turns(&fleet, merged["merged_id"].as_str().unwrap()).await, said, "{strategy}");
        assert_eq!(fleet.job(merged["job_id"].as_str().unwrap()).await["state"], "available");
    }
    assert_eq!(fleet.models.calls().len(), 4, "a merge costs nothing");
    assert_eq!(fleet.number("SELECT count(*) FROM jobs WHERE held = 1").await, 3);
    // The original is a branch, too; equal branches have no conflicts.
    let body = json!({"branch_a": id, "branch_b": id, "strategy": "union"});
    let merged = granted(&fleet, &id, "merge", body).await;
    assert_eq!(merged["conflicts"], json!([]));
    assert_eq!(turns(&fleet, merged["merged_id"].as_str().unwrap()).await.len(), 2);
    let job = merged["job_id"].as_str().unwrap();
    granted(&fleet, job, "resume", json!({})).await;
    fleet.wait_for(job, &[JobState::Completed]).await;
    fleet.end().await;
}

async fn labels_name_a_job_that_never_ran(backend: Backend) {
    let fleet = Fleet::builder().on(backend).workers(0).start().await;
    for job in [json!({"type": "agent.test", "args": []}), agent_job("go")] {
        let id = fleet.push(&job).await;
        let body = json!({"branch_a": "one", "branch_b": "two", "strategy": "union"});
        let merged = granted(&fleet, &id, "merge", body).await;
        assert!(merged["merged_id"].is_string(), "{merged}");
        assert_eq!(merged["conflicts"], json!([]));
    }
    fleet.end().await;
}

async fn branches_of_different_roots_and_unknown_ones_are_refused(backend: Backend) {
    let fleet = Fleet::builder().on(backend).start().await;
    let id = fleet.push(&agent_job("go")).await;
    let other = fleet.push(&agent_job("go")).await;
    for id in [&id, &other] {
        fleet.wait_for(id, &[JobState::Completed]).await;
    }
    let unknown = "01890000-0000-7000-8000-000000000000";
    for (target, body, status) in [
        (id.as_str(), json!({"branch_a": id, "branch_b": other}), 409),
        (&id, json!({"branch_a": id, "branch_b": "nothing"}), 404),
        (unknown, json!({"branch_a": id, "branch_b": id}), 404),
        (&id, json!({"branch_a": id}), 400),
        (&id, json!({"branch_a": id, "branch_b": id, "strategy": "both"}), 400),
    ] {
        let (got, answer) = control(&fleet, target, "merge", body.clone()).await;
        assert_eq!(got.as_u16(), status, "{body}: {answer}");
    }
    assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 2);
    fleet.end().await;
}
