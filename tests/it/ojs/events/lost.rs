//! Cursors whose events the database lost, as a promoted standby or an older copy does.

use super::super::on_every_store;
use super::{events, job, page};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;
use turnstone_tests::{OjsServer, sse, wait};

on_every_store![
    a_cursor_of_lost_events_is_refused,
    a_stream_of_all_events_is_reset,
    an_open_stream_of_all_events_is_reset,
    a_stream_of_a_job_is_reset,
    a_number_above_the_newest_event_is_refused,
];

/// Enqueues a job, and returns its id and the cursor behind its event.
async fn pushed(server: &OjsServer, after: &str) -> (String, String) {
    let id = server.push(&job("q")).await;
    let page = page(server, &format!("after={after}"), 1).await;
    assert_eq!(events(&page).last().unwrap()["subject"], id);
    (id, page["cursor"].as_str().unwrap().to_owned())
}

/// Removes a job with its commit, as if it had never been.
async fn forget(server: &OjsServer, id: &str) {
    let sql = format!(
        "DELETE FROM journal WHERE job_seq = (SELECT seq FROM jobs WHERE id = '{id}'); \
         DELETE FROM job_envelopes WHERE job_seq = (SELECT seq FROM jobs WHERE id = '{id}'); \
         DELETE FROM commits WHERE id NOT IN (SELECT commit_id FROM journal); DELETE FROM jobs WHERE id = '{id}'"
    );
    server.fleet.place.change(&sql).await;
}

fn subjects(page: &Value) -> Vec<&str> {
    events(page).iter().map(|event| event["subject"].as_str().unwrap()).collect()
}

async fn a_cursor_of_lost_events_is_refused(server: &OjsServer) {
    let (kept, before) = pushed(server, "evt_0.0.0").await;
    let (lost, cursor) = pushed(server, &before).await;
    forget(server, &lost).await;
    let new = server.push(&job("q")).await;
    let event = cursor.rsplit_once('.').unwrap().0;
    for after in [cursor.as_str(), event] {
        let refused = server.get(&format!("/ojs/v1/events?after={after}")).await.expect(409);
        assert_eq!(refused.code(), "cursor_lost");
        let details = &refused.json()["error"]["details"];
        assert_eq!(details["begin"], "evt_0.0.0");
        let newest = details["newest"].as_str().unwrap();
        assert_eq!(subjects(&page(server, &format!("after={newest}"), 0).await), [""; 0]);
    }
    assert_eq!(subjects(&page(server, &format!("after={before}"), 1).await), [&new], "both lives have it");
    assert_eq!(subjects(&page(server, "after=evt_0.0.0", 2).await), [&kept, &new]);
}

async fn a_stream_of_all_events_is_reset(server: &OjsServer) {
    let (kept, before) = pushed(server, "evt_0.0.0").await;
    let (lost, cursor) = pushed(server, &before).await;
    forget(server, &lost).await;
    let url = format!("{}/ojs/v1/events/stream", server.fleet.url);
    let reading = sse::read(&url, Some(&cursor), |seen| seen.len() >= 2);
    let seen = wait::output("the events after a reset", reading).await;
    assert_eq!((seen[0].event.as_str(), seen[0].id.as_str()), ("reset", "evt_0.0.0"));
    let data = sse::data(&seen[0]);
    assert_eq!((&data["code"], &data["begin"]), (&json!("cursor_lost"), &json!("evt_0.0.0")));
    assert!(data["newest"].as_str().unwrap().starts_with("evt_"), "{data}");
    assert_eq!(sse::data(&seen[1])["subject"], kept);
}

async fn an_open_stream_of_all_events_is_reset(server: &OjsServer) {
    let (kept, before) = pushed(server, "evt_0.0.0").await;
    let seen_one = Arc::new(Notify::new());
    let url = format!("{}/ojs/v1/events/stream?after={before}", server.fleet.url);
    let one = Arc::clone(&seen_one);
    let live = tokio::spawn(async move {
        sse::read(&url, None, |seen| {
            if seen.len() == 1 {
                one.notify_one();
            }
            seen.len() >= 4
        })
        .await
    });
    let lost = server.push(&job("q")).await;
    wait::output("the stream has the event", seen_one.notified()).await;
    forget(server, &lost).await;
    let new = server.push(&job("q")).await;
    let seen = wait::output("the events after a reset", live).await.unwrap();
    let reported: Vec<_> = seen.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(reported, ["job.enqueued", "reset", "job.enqueued", "job.enqueued"]);
    let subjects: Vec<_> = seen.iter().map(|event| sse::data(event)["subject"].clone()).collect();
    assert_eq!([&subjects[0], &subjects[2], &subjects[3]], [&json!(lost), &json!(kept), &json!(new)]);
}

/// Another commit wrote the event with the same number.
async fn a_stream_of_a_job_is_reset(server: &OjsServer) {
    let id = server.push(&job("q")).await;
    server.delete(&format!("/ojs/v1/jobs/{id}")).await.expect(200);
    let path = format!("/ojs/v1/jobs/{id}/events");
    let read = server.get(&path).await.expect(200).json();
    let (number, cursor) = (&read["cursor"], read["cursor_id"].as_str().unwrap());
    assert_eq!((number, cursor.starts_with("2.")), (&json!(2), true), "{read}");
    let known = server.get(&format!("{path}?since={cursor}")).await.expect(200).json();
    assert_eq!(known["events"], json!([]));
    server.fleet.place.change("UPDATE journal SET commit_id = commit_id + 1 WHERE last_event = 2").await;
    let refused = server.get(&format!("{path}?since={cursor}")).await.expect(409);
    assert_eq!(refused.code(), "cursor_lost");
    let details = &refused.json()["error"]["details"];
    assert_eq!(details["begin"], "0");
    assert!(details["newest"].as_str().unwrap().starts_with("2."), "{details}");
    let url = format!("{}{path}", server.fleet.url);
    let seen = wait::output("the events after a reset", sse::read(&url, Some(cursor), |_| false)).await;
    let reported: Vec<_> = seen.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(reported, ["reset", "job.enqueued", "job.cancelled"]);
    assert_eq!(seen[0].id, "0");
}

async fn a_number_above_the_newest_event_is_refused(server: &OjsServer) {
    let id = server.push(&job("q")).await;
    let path = format!("/ojs/v1/jobs/{id}/events");
    assert_eq!(server.get(&format!("{path}?since=1")).await.expect(200).json()["events"], json!([]));
    let refused = server.get(&format!("{path}?since=2")).await.expect(409);
    assert_eq!(refused.code(), "cursor_lost");
}
