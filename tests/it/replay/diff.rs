//! The first difference of two engagements.

use super::{calls, fork_ran, job, ran, trip};
use crate::stores::on_stores;
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet};

on_stores!(
    everywhere: [],
    sqlite_first: [two_runs_have_a_first_difference],
);

async fn diff(fleet: &Fleet, a: &str, b: &str) -> Value {
    fleet.get(&format!("/engagements/{a}/diff?with={b}")).await
}

async fn two_runs_have_a_first_difference(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let same = diff(&fleet, &engagement, &engagement).await;
    assert_eq!(same["parts_at"], Value::Null, "{same:#}");
    assert!(same["turns"].as_array().unwrap().iter().all(|turn| turn["shared"] == true));
    assert_eq!(same["total"]["a"]["tokens_in"], 12 * 3 + 10);

    let second = calls(&fleet, &engagement).await[1]["call_id"].as_str().unwrap().to_owned();
    for (body, turn, phase, what) in [
        (json!({"at_turn": 3, "set": {"prompt": "Be terse."}}), 3, "infer", "prompt"),
        (json!({"at_turn": 4, "set": {"model": "small"}}), 4, "infer", "model"),
        (
            json!({"at_turn": 2, "phase": "exec", "set": {"tool_results": {second.as_str(): 0}}}),
            2,
            "exec",
            "result",
        ),
    ] {
        let (fork, done) = fork_ran(&fleet, &engagement, body).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        let reported = diff(&fleet, &engagement, &fork).await;
        let at = &reported["parts_at"];
        assert_eq!(
            (&at["turn"], &at["phase"], &at["what"]),
            (&json!(turn), &json!(phase), &json!(what)),
            "{reported:#}"
        );
        let turns = reported["turns"].as_array().unwrap();
        assert_eq!(turns.iter().filter(|turn| turn["shared"] == true).count(), turn - 1, "{reported:#}");
        assert_eq!(turns[0]["a"], turns[0]["b"]);
        assert_eq!(turns[0]["a"]["tool_calls"], json!(["search"]));
    }
    let unknown = "01890000-0000-7000-8000-000000000000";
    let path = format!("/engagements/{engagement}/diff");
    for (query, status) in [("".to_owned(), 400), (format!("?with={unknown}"), 404)] {
        let (got, answer) = fleet.send(reqwest::Method::GET, &format!("{path}{query}"), "").await;
        assert_eq!(got.as_u16(), status, "{answer:#}");
    }
    fleet.end().await;
}
