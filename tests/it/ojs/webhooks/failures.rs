//! Failing receivers and killed schedulers.

use super::super::events::job;
use super::super::on_sqlite_first;
use super::{deliveries, path, settled_deliveries, subscribe};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use turnstone_scheduler::SchedulerOptions;
use turnstone_tests::servers::Port;
use turnstone_tests::{OjsServer, Receipt, Receiver};

/// After this time another scheduler repeats the deliveries of a dead one: the minute that a receiver may take, and a
/// margin of another minute.
const TAKEN_MS: i64 = 121_000;
/// The timeout of a receiver that never answers.
const SHORT: Duration = Duration::from_millis(100);

on_sqlite_first![
    a_failed_delivery_is_repeated_for_a_day,
    a_receiver_that_recovers_gets_it,
    a_receiver_that_is_gone_ends_its_webhook,
    a_redirect_is_not_followed,
    an_endless_answer_is_not_read,
    a_receiver_that_hangs_delays_no_other,
    a_receiver_that_is_down_is_retried,
    a_scheduler_that_dies_after_the_post_repeats_it_under_the_same_id,
];

/// Moves the time to when the delivery is due, and posts it.
async fn pass_until_due(server: &OjsServer, delivery: &Value) -> i64 {
    let due = delivery["next_attempt_at"].as_str().unwrap();
    let due = turnstone_domain::Timestamp::parse_rfc3339(due).unwrap();
    let wait = due.since(server.fleet.now());
    server.fleet.clock.advance_ms(wait - 1);
    server.fleet.tick().await;
    let early = deliveries_of(server, delivery).await;
    assert_eq!(early["attempts"], delivery["attempts"], "it was posted too early");
    server.pass_ms(1).await;
    wait
}

async fn deliveries_of(server: &OjsServer, delivery: &Value) -> Value {
    let subscription = json!({"id": delivery["subscription_id"]});
    let all = deliveries(server, &subscription).await;
    all.into_iter().find(|one| one["id"] == delivery["id"]).unwrap()
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_failed_delivery_is_repeated_for_a_day(server: &OjsServer) {
    let receiver = Receiver::answering(|_| Receipt::Status(503, "down for\nrepair".to_owned())).await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    let mut delivery = settled_deliveries(server, &made, 1).await.remove(0);
    let mut waits = Vec::new();
    while delivery["state"] == "pending" {
        assert_eq!((&delivery["status"], &delivery["ended_at"]), (&json!(503), &Value::Null));
        let error = delivery["error"].as_str().unwrap();
        assert!(error.contains("503") && error.contains("down forrepair"), "{error}");
        waits.push(pass_until_due(server, &delivery).await);
        delivery = deliveries_of(server, &delivery).await;
    }
    assert_eq!((&delivery["state"], &delivery["attempts"]), (&json!("failed"), &json!(8)));
    assert!(delivery["ended_at"].is_string() && delivery["next_attempt_at"].is_null());
    assert_eq!((receiver.count(), waits.len()), (8, 7));
    let least = [30, 120, 480, 1_920, 7_680, 21_600, 21_600].map(|seconds: i64| seconds * 1_000);
    for (wait, least) in waits.iter().zip(least) {
        assert!((least..=2 * least).contains(wait), "{waits:?}");
    }
    let received = receiver.received();
    assert!(received.iter().all(|r| r.header("webhook-id") == delivery["id"] && r.body == received[0].body));
    assert!(received[0].header("webhook-timestamp") < received[7].header("webhook-timestamp"));
    server.pass_ms(24 * 60 * 60 * 1_000).await;
    assert_eq!(receiver.count(), 8, "given up is given up");
    let failed = server.get(&path(&made, "/deliveries?state=failed")).await.expect(200).json();
    assert_eq!(failed["pagination"]["total"], 1);
    assert_eq!(server.get(&path(&made, "/deliveries?state=pending")).await.json()["deliveries"], json!([]));
    let id = delivery["id"].as_str().unwrap();
    server.post_text(&path(&made, &format!("/deliveries/{id}/redeliver")), "").await.expect(202);
    server.fleet.tick().await;
    assert_eq!(receiver.count(), 9, "a manual repetition is one more");
}

async fn a_receiver_that_recovers_gets_it(server: &OjsServer) {
    let receiver = Receiver::answering(|nth| Receipt::status(if nth < 2 { 500 } else { 200 })).await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    let mut delivery = settled_deliveries(server, &made, 1).await.remove(0);
    for _ in 0..2 {
        pass_until_due(server, &delivery).await;
        delivery = deliveries_of(server, &delivery).await;
    }
    assert_eq!(
        (&delivery["state"], &delivery["attempts"], &delivery["error"]),
        (&json!("delivered"), &json!(3), &Value::Null)
    );
}

async fn a_receiver_that_is_gone_ends_its_webhook(server: &OjsServer) {
    let receiver = Receiver::answering(|_| Receipt::status(410)).await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    let delivery = settled_deliveries(server, &made, 1).await.remove(0);
    assert_eq!(
        (&delivery["state"], &delivery["status"], &delivery["attempts"]),
        (&json!("failed"), &json!(410), &json!(1))
    );
    assert_eq!(server.get(&path(&made, "")).await.json()["subscription"]["active"], false);
    server.push(&job("q")).await;
    server.pass_ms(3_600_000).await;
    assert_eq!(receiver.count(), 1, "no receiver listens");
}

async fn a_redirect_is_not_followed(server: &OjsServer) {
    let elsewhere = Receiver::start().await;
    let place = elsewhere.url.clone();
    let receiver = Receiver::answering(move |_| Receipt::Redirect(place.clone())).await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    let delivery = settled_deliveries(server, &made, 1).await.remove(0);
    assert_eq!((&delivery["state"], &delivery["status"]), (&json!("pending"), &json!(307)));
    assert!(delivery["error"].as_str().unwrap().contains("not followed"), "{delivery}");
    assert_eq!(elsewhere.count(), 0);
}

async fn an_endless_answer_is_not_read(server: &OjsServer) {
    let receiver = Receiver::answering(|_| Receipt::Endless).await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    let delivery = settled_deliveries(server, &made, 1).await.remove(0);
    let error = delivery["error"].as_str().unwrap();
    assert!(error.contains("xxx") && error.len() < 500, "{} bytes: {error}", error.len());
    assert_eq!(delivery["status"], 500);
}

async fn a_receiver_that_hangs_delays_no_other(server: &OjsServer) {
    let (hanging, quick) = (Receiver::answering(|_| Receipt::Hang).await, Receiver::start().await);
    let slow = subscribe(server, &hanging.url, &json!({})).await;
    let fast = subscribe(server, &quick.url, &json!({})).await;
    for _ in 0..20 {
        server.push(&job("q")).await;
    }
    let running =
        tokio::spawn(server.fleet.scheduler(SchedulerOptions::alone()).run(CancellationToken::new()));
    server
        .fleet
        .until("the quick one has everything while the slow one is waited for", async || {
            deliveries(server, &fast).await.iter().filter(|d| d["state"] == "delivered").count() == 20
        })
        .await;
    // The scheduler performs its duties meanwhile.
    let delayed =
        server.push(&json!({"type": "a.b", "args": [], "options": {"delay_until": "+PT60S"}})).await;
    server.fleet.clock.advance_ms(60_000);
    server
        .fleet
        .until("the duties are done", async || server.job(&delayed).await["state"] == "available")
        .await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    // Another scheduler repeats the deliveries in progress, with a shorter timeout.
    server.fleet.clock.advance_ms(TAKEN_MS);
    server.fleet.scheduler_with(SchedulerOptions::alone(), SHORT).tick().await.unwrap();
    let slow = deliveries(server, &slow).await;
    assert!(slow.iter().any(|d| d["error"].as_str().is_some_and(|why| why.contains("in time"))), "{slow:#?}");
    assert!(slow.iter().all(|d| d["state"] == "pending"), "{slow:#?}");
}

async fn a_receiver_that_is_down_is_retried(server: &OjsServer) {
    let silent = Port::reserve();
    let made = subscribe(server, &format!("http://{}/", silent.addr()), &json!({})).await;
    server.push(&job("q")).await;
    let delivery = settled_deliveries(server, &made, 1).await.remove(0);
    assert_eq!((&delivery["state"], &delivery["status"]), (&json!("pending"), &Value::Null));
    let error = delivery["error"].as_str().unwrap();
    assert!(error.contains("cannot be reached") && !error.contains("http://"), "{error}");
}

async fn a_scheduler_that_dies_after_the_post_repeats_it_under_the_same_id(server: &OjsServer) {
    // The first post is never answered, so it is never settled: the scheduler is killed while it waits.
    let receiver =
        Receiver::answering(|nth| if nth == 0 { Receipt::Hang } else { Receipt::status(200) }).await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    let first = tokio::spawn(server.fleet.scheduler(SchedulerOptions::alone()).run(CancellationToken::new()));
    server.fleet.until("it is posted", async || receiver.count() == 1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let taken = deliveries(server, &made).await.remove(0);
    assert_eq!((&taken["state"], &taken["attempts"]), (&json!("pending"), &json!(1)));
    server.fleet.tick().await;
    assert_eq!(receiver.count(), 1, "the first scheduler may still post it");
    server.pass_ms(TAKEN_MS).await;
    let delivery = deliveries(server, &made).await.remove(0);
    assert_eq!((&delivery["state"], &delivery["attempts"]), (&json!("delivered"), &json!(2)));
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    assert_eq!(received[0].body, received[1].body);
}
