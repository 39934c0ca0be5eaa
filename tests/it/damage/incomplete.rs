//! A record that lacks a phase or a turn is named by everything that reads it, with what is missing.

use super::doctor::inspected;
use crate::program::run;
use crate::stores::on_stores;
use serde_json::{Value, json};
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::{JobState, Phase};
use turnstone_tests::earlier::Earlier;
use turnstone_tests::model_server::trip;
use turnstone_tests::{Backend, Fleet, scratch};
use turnstone_worker::rerun;

on_stores!(
    everywhere: [a_missing_phase_and_a_missing_turn_are_named_by_doctor_export_replay_and_reads],
    sqlite_first: [sound_records_of_every_kind_are_called_complete],
);

fn job() -> Value {
    json!({"type": "agent.trip", "args": ["go"], "ext_agent_model": "m", "ext_agent_token_budget": 50_000,
           "ext_agent_tools": [{"name": "search"}, {"name": "book"}],
           "options": {"retry": {"max_attempts": 1}}})
}

async fn ran(fleet: &Fleet) -> (String, String) {
    let id = fleet.push(&job()).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    let engagement = fleet.engagement_of(&id).await;
    (id, engagement)
}

async fn exported(fleet: &Fleet, engagement: &str) -> (u16, String) {
    let export =
        turnstone_tests::http::client().get(format!("{}/engagements/{engagement}/export", fleet.url));
    let answer = export.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Returns what `doctor --data` says of the record of each engagement that lacks something.
async fn doctored(fleet: &Fleet) -> Vec<(String, String)> {
    let found = inspected(&fleet.place).await;
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let of_records = found.iter().filter(|one| one["table"] == "journal" && one["column"] == "phase");
    of_records.map(|one| (text(one, "id"), text(one, "reason"))).collect()
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_missing_phase_and_a_missing_turn_are_named_by_doctor_export_replay_and_reads(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let (hole, by_hole) = ran(&fleet).await;
    let (tail, by_tail) = ran(&fleet).await;
    let (_, whole) = ran(&fleet).await;
    let (status, document) = exported(&fleet, &whole).await;
    assert_eq!(status, 200, "{document}");
    assert_eq!(doctored(&fleet).await, []);
    let earlier = Earlier::keep(&fleet.place).await;
    let of = |id: &str| format!("stream = (SELECT seq FROM jobs WHERE id = '{id}') AND phases > 0");
    let infer = Phase::Infer.number();
    let row = format!("turn = 2 AND phase <= {infer} AND phase + phases > {infer} AND {}", of(&hole));
    fleet.place.change(&format!("DELETE FROM journal WHERE {row}")).await;
    fleet.place.change(&format!("DELETE FROM journal WHERE turn = 4 AND {}", of(&tail))).await;

    let found = doctored(&fleet).await;
    let says = |id: &str, reason: &str| found.contains(&(id.to_owned(), reason.to_owned()));
    assert!(says(&by_hole, "turn 2, phase infer is missing"), "{found:#?}");
    assert!(says(&by_tail, "turn 4 is missing"), "{found:#?}");
    assert!(found.iter().all(|(id, _)| [&by_hole, &by_tail].contains(&id)), "{found:#?}");

    for (engagement, missing) in [(&by_hole, "turn 2, phase infer"), (&by_tail, "turn 4")] {
        let (status, answer) = exported(&fleet, engagement).await;
        assert!(
            status == 500 && answer.contains(missing) && answer.contains("incomplete_record"),
            "{answer}"
        );
        let folder = scratch::folder();
        let replay = ["engagement", "replay", engagement.as_str(), "--url", &fleet.url];
        let ran = run(folder.path(), &replay, &[]).await;
        assert!(ran.code == Some(1) && ran.stderr.contains(missing), "{ran:?}");
    }
    let read = async |engagement: &str| {
        fleet.get(&format!("/engagements/{engagement}/checkpoints?per_page=100")).await
    };
    let (a, b, c) = (read(&by_hole).await, read(&by_tail).await, read(&whole).await);
    assert!(a["missing"].as_array().unwrap().contains(&json!({"turn": 2, "phase": "infer"})), "{a:#}");
    assert_eq!(b["missing"], json!([{"turn": 4}]), "{b:#}");
    assert!(c["missing"].is_null() && !c["checkpoints"].as_array().unwrap().is_empty(), "{c:#}");
    assert!(!a["checkpoints"].as_array().unwrap().is_empty(), "the rest is returned");

    // A document that was made of such a record, by a server that did not notice.
    let mut record = EngagementRecord::read(&document).unwrap();
    record.checkpoints.retain(|done| (done.turn, done.phase) != (2, Phase::Infer));
    let difference = rerun(&record).await.unwrap().difference.unwrap();
    assert_eq!((difference.turn, difference.phase), (2, Some(Phase::Infer)), "{difference:?}");
    earlier.restore().await;
    earlier.drop().await;
    assert_eq!(doctored(&fleet).await, []);
    fleet.end().await;
}

/// Unfinished turns, forks at every phase, copies and further inputs are no gaps.
async fn sound_records_of_every_kind_are_called_complete(backend: Backend) {
    let mut fleet = Fleet::builder().on(backend).model(trip).start().await;
    let (_, engagement) = ran(&fleet).await;
    let mut forks = Vec::new();
    for phase in Phase::ALL {
        let body = json!({"at_turn": 2, "phase": phase});
        let (status, fork) = fleet.post(&format!("/engagements/{engagement}/fork"), &body).await;
        assert_eq!(status.as_u16(), 201, "{fork:#}");
        forks.push(fork["job_id"].as_str().unwrap().to_owned());
    }
    for fork in &forks {
        fleet.wait_for(fork, &[JobState::Completed]).await;
    }
    let (_, document) = exported(&fleet, &fleet.engagement_of(&forks[4]).await).await;
    let other = Fleet::builder().on(backend).workers(0).start().await;
    let (status, answer) = other.send(reqwest::Method::POST, "/engagements/import", document).await;
    assert_eq!(status.as_u16(), 201, "{answer:#}");
    assert_eq!(doctored(&other).await, []);
    other.end().await;
    fleet.stop_workers().await;
    let body = json!({"at_turn": 3, "phase": "exec"});
    fleet.post(&format!("/engagements/{engagement}/fork"), &body).await;
    assert_eq!(doctored(&fleet).await, []);
    fleet.add_worker(4);
    fleet
        .until("the last fork ends", async || {
            fleet.number("SELECT count(*) FROM jobs WHERE state <> 'completed'").await == 0
        })
        .await;
    assert_eq!(doctored(&fleet).await, []);
    fleet.end().await;
}
