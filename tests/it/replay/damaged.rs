//! A damaged checkpoint of an earlier turn is noticed where it is read, with an error that names it.

use super::{forked, job, ran, trip};
use crate::program::run;
use crate::stores::on_stores;
use serde_json::json;
use turnstone_tests::{Backend, Fleet, scratch};

on_stores!(
    everywhere: [a_damaged_checkpoint_is_named_by_fork_export_and_replay],
    sqlite_first: [],
);

async fn a_damaged_checkpoint_is_named_by_fork_export_and_replay(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let other = ran(&fleet, &job("go")).await;
    let of_turn = "turn = 2 AND phases > 0 AND stream = (SELECT min(seq) FROM jobs)";
    let rows = fleet.number(&format!("SELECT count(*) FROM journal WHERE {of_turn}")).await;
    assert!(rows > 0, "turn 2 has rows");
    fleet.place.change(&format!("UPDATE journal SET body = '[{{' WHERE {of_turn}")).await;
    let names = |text: &str| text.contains("column body of journal ") && text.contains("doctor --data");

    let fork = format!("/engagements/{engagement}/fork");
    let (status, answer) = fleet.post(&fork, &json!({"at_turn": 2, "phase": "exec"})).await;
    assert_eq!(status.as_u16(), 500, "{answer:#}");
    assert!(names(&answer.to_string()), "{answer:#}");
    let client = turnstone_tests::http::client();
    let export = client.get(format!("{}/engagements/{engagement}/export", fleet.url)).send().await.unwrap();
    let (status, answer) = (export.status().as_u16(), export.text().await.unwrap());
    assert_eq!(status, 500, "{answer}");
    assert!(names(&answer), "{answer}");
    let folder = scratch::folder();
    let replay = ["engagement", "replay", &engagement, "--url", &fleet.url];
    let ran = run(folder.path(), &replay, &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("column body of journal "), "{ran:?}");

    // Neither a turn whose checkpoints are whole nor another engagement is refused.
    forked(&fleet, &other, json!({"at_turn": 2, "phase": "exec"})).await;
    forked(&fleet, &engagement, json!({"at_turn": 4, "phase": "infer"})).await;
    fleet.end().await;
}
