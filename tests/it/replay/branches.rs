//! A branch shares its past as a fork does: it copies no turn, and what it reads stays.

use super::{calls, exported, imported, job, ran, runs_again, said, trip};
use crate::stores::on_stores;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::journal::{CHECKPOINTS, MESSAGES};
use turnstone_tests::{Backend, Fleet, Reply, model_server};

on_stores!(
    everywhere: [a_branch_of_a_long_engagement_copies_nothing, what_a_branch_reads_stays],
    sqlite_first: [a_branch_and_its_origin_move_in_any_order, a_call_of_a_shared_turn_is_its_origins],
);

const CALLS: &str = "SELECT count(*) FROM tool_calls";

/// Asks for an operation of agent control, which must succeed.
async fn asked(fleet: &Fleet, job: &str, verb: &str, body: Value) -> Value {
    let (status, answer) = fleet.post(&format!("/ojs/v1/agents/{job}/{verb}"), &body).await;
    assert_eq!(status.as_u16(), 200, "{verb}: {answer:#}");
    answer
}

/// Forks a job, and runs the branch to its end. Returns its engagement and its ended job.
async fn branch_ran(fleet: &Fleet, job: &str, body: Value) -> (String, Value) {
    let branch = asked(fleet, job, "fork", body).await;
    let done = fleet.wait_for(branch["job_id"].as_str().unwrap(), &[JobState::Completed]).await;
    (branch["branch_id"].as_str().unwrap().to_owned(), done)
}

/// Returns the job of an engagement.
async fn job_of(fleet: &Fleet, engagement: &str) -> String {
    fleet.get(&format!("/engagements/{engagement}")).await["job_id"].as_str().unwrap().to_owned()
}

async fn rows(fleet: &Fleet) -> [i64; 3] {
    [fleet.number(MESSAGES).await, fleet.number(CHECKPOINTS).await, fleet.number(CALLS).await]
}

/// The tables have this many rows, and a branch says what its origin said and runs again from its record.
async fn is_shared(fleet: &Fleet, branch: &str, past: &[(i64, String, String)], table: [i64; 3]) {
    assert_eq!(rows(fleet).await, table);
    assert_eq!(said(fleet, branch).await, *past);
    assert_eq!(runs_again(&exported(fleet, branch).await).await, (31, 7 * 31));
}

/// A branch of a whole engagement of 31 turns answers as one of its own.
async fn answers_as_its_own(fleet: &Fleet, branch: &str) {
    let page = fleet.get(&format!("/engagements/{branch}/checkpoints?per_page=100&page=3")).await;
    assert_eq!(page["checkpoints"].as_array().map(Vec::len), Some(7 * 31 - 200), "two pages and the last");
    let whole = fleet.get(&format!("/engagements/{branch}")).await;
    assert_eq!((&whole["turns"], &whole["forked_from"]), (&json!(31), &Value::Null), "{whole:#}");
}

/// Merges of equal branches copy nothing either.
async fn merges_share(
    fleet: &Fleet,
    root: &str,
    second: &Value,
    past: &[(i64, String, String)],
    table: [i64; 3],
) {
    for strategy in ["ours", "theirs", "union"] {
        let body = json!({"branch_a": "a", "branch_b": second, "strategy": strategy});
        let merged = asked(fleet, root, "merge", body).await;
        assert_eq!(merged["conflicts"], json!([]));
        assert_eq!(rows(fleet).await, table, "{strategy}");
        assert_eq!(said(fleet, merged["merged_id"].as_str().unwrap()).await, *past, "{strategy}");
        fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{}", merged["job_id"].as_str().unwrap()), "").await;
    }
}

async fn a_branch_of_a_long_engagement_copies_nothing(backend: Backend) {
    let script = |request: &Value| match model_server::outcomes(request) {
        n @ 0..30 => Reply::call("search", json!({"q": n})),
        _ => Reply::text("found"),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let id = job_of(&fleet, &engagement).await;
    let (past, made) = (said(&fleet, &engagement).await, calls(&fleet, &engagement).await);
    assert_eq!(rows(&fleet).await, [62, 7 * 31, 30]);
    let (branch, done) = branch_ran(&fleet, &id, json!({"at_turn": 31, "branch_name": "a"})).await;
    // The last turn is its own, and nothing else.
    is_shared(&fleet, &branch, &past, [62 + 1, 7 * 32, 30]).await;
    answers_as_its_own(&fleet, &branch).await;
    assert_eq!(calls(&fleet, &branch).await, made);
    assert_eq!(done["ext_agent_tokens_used"], fleet.job(&id).await["ext_agent_tokens_used"]);
    // A branch of a branch reads both.
    let (second, done) = branch_ran(&fleet, done["id"].as_str().unwrap(), json!({"at_turn": 31})).await;
    let table = [62 + 2, 7 * 33, 30];
    is_shared(&fleet, &second, &past, table).await;
    merges_share(&fleet, &id, &done["id"], &past, table).await;
    fleet.end().await;
}

async fn what_a_branch_reads_stays(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let (id, past) = (job_of(&fleet, &engagement).await, said(&fleet, &engagement).await);
    fleet.tick().await;
    // The branch begins when its origin is old enough to be pruned.
    fleet.clock.advance_ms(40 * 24 * 3_600_000);
    let (branch, done) = branch_ran(&fleet, &id, json!({"at_turn": 3})).await;
    fleet.tick().await;
    fleet.tick().await;
    assert_eq!((said(&fleet, &branch).await, said(&fleet, &engagement).await), (past.clone(), past.clone()));
    let queue = format!("/ojs/v1/admin/queues/{}/jobs?confirm=true", done["queue"].as_str().unwrap());
    let purge = async |query: &str| {
        let (status, answer) = fleet.send(Method::DELETE, &format!("{queue}{query}"), "").await;
        assert!(status.is_success(), "{answer:#}");
        (answer["purged_count"].as_i64().unwrap(), answer["failed"].as_i64().unwrap())
    };
    // Only the origin is old enough. It is deleted after its last reader.
    assert_eq!(purge("&older_than=P1D").await, (0, 1));
    assert_eq!(purge("").await, (1, 1));
    assert_eq!(said(&fleet, &engagement).await, past);
    assert_eq!(purge("").await, (1, 0));
    for table in ["jobs", "engagements", "journal", "tool_calls", "branches", "inheritances"] {
        assert_eq!(fleet.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    fleet.end().await;
}

async fn ids(fleet: &Fleet, engagement: &str) -> Vec<Value> {
    calls(fleet, engagement).await.iter().map(|call| call["call_id"].clone()).collect()
}

/// Two servers have the same engagement and the same branch of it.
async fn are_the_same(from: &Fleet, to: &Fleet, engagement: &str, branch: &str) {
    for id in [engagement, branch] {
        assert_eq!(said(to, id).await, said(from, id).await);
        assert_eq!(runs_again(&exported(to, id).await).await, (4, 28));
    }
    assert_eq!(ids(to, engagement).await, ids(from, engagement).await, "the origin keeps its ids");
    assert_ne!(ids(to, branch).await, ids(from, branch).await, "an id names one call");
    let used = async |fleet: &Fleet| {
        fleet.get(&format!("/engagements/{branch}/cost")).await["tokens"]["used"].clone()
    };
    assert_eq!(used(to).await, used(from).await);
}

async fn a_branch_and_its_origin_move_in_any_order(backend: Backend) {
    let from = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&from, &job("go")).await;
    let id = job_of(&from, &engagement).await;
    let (branch, _) = branch_ran(&from, &id, json!({"at_turn": 3})).await;
    let all = [exported(&from, &engagement).await, exported(&from, &branch).await];
    for order in [[0, 1], [1, 0]] {
        let to = Fleet::builder().on(backend).workers(0).start().await;
        for at in order {
            let (status, answer) = imported(&to, &all[at]).await;
            assert_eq!(status, 201, "{order:?}: {at}: {answer:#}");
        }
        are_the_same(&from, &to, &engagement, &branch).await;
        to.end().await;
    }
    from.end().await;
}

async fn a_call_of_a_shared_turn_is_its_origins(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let (id, made) = (job_of(&fleet, &engagement).await, calls(&fleet, &engagement).await);
    let merged =
        asked(&fleet, &id, "merge", json!({"branch_a": id, "branch_b": id, "strategy": "ours"})).await;
    let merged = merged["job_id"].as_str().unwrap();
    let body = json!({"tool_call_id": made[0]["call_id"]});
    let (status, answer) = fleet.post(&format!("/ojs/v1/agents/{merged}/tool-retry"), &body).await;
    assert_eq!(status.as_u16(), 404, "{answer:#}");
    assert_eq!(calls(&fleet, &engagement).await, made);
    fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{merged}"), "").await;
    fleet.end().await;
}
