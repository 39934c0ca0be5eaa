//! Deliveries: their events, their receivers, and their signatures.

use super::super::events::{complete, job};
use super::super::on_sqlite_first;
use super::{deliveries, path, settled_deliveries, subscribe};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Method;
use ring::hmac::{HMAC_SHA256, Key, verify};
use serde_json::{Value, json};
use turnstone_tests::receiver::Received;
use turnstone_tests::{OjsServer, Receiver};

on_sqlite_first![
    an_event_arrives_signed,
    only_subscribed_events_are_delivered,
    a_queues_webhook_receives_workflows_with_jobs_in_it,
    events_before_or_while_disabled_are_not_delivered,
    a_tenants_webhook_receives_its_own_events,
    the_old_secret_signs_beside_the_new_one_for_a_while,
    a_test_arrives_and_is_no_event,
    a_delivery_is_sent_again_under_its_id,
    deleting_a_webhook_deletes_its_deliveries,
    old_deliveries_are_deleted,
];

/// Checks the signatures like a receiver that knows only the secret and the specifications.
fn is_signed_with(received: &Received, secret: &str) -> bool {
    let (id, timestamp) = (received.header("webhook-id"), received.header("webhook-timestamp"));
    let key = match secret.strip_prefix("whsec_").map(|rest| BASE64_STANDARD.decode(rest)) {
        Some(Ok(key)) => key,
        _ => secret.as_bytes().to_vec(),
    };
    let signed = format!("{id}.{timestamp}.{}", received.body);
    let standard = received.header("webhook-signature").split(' ').any(|signature| {
        let signature = BASE64_STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
        verify(&Key::new(HMAC_SHA256, &key), signed.as_bytes(), &signature).is_ok()
    });
    let signed = format!("{timestamp}.{}", received.body);
    let ojs = ["x-ojs-signature", "x-ojs-signature-previous"].iter().any(|header| {
        let Some(hex) = received.header(header).strip_prefix("sha256=") else { return false };
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        verify(&Key::new(HMAC_SHA256, secret.as_bytes()), signed.as_bytes(), &bytes).is_ok()
    });
    assert_eq!(standard, ojs, "the two kinds of signature disagree");
    standard
}

async fn an_event_arrives_signed(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let made = subscribe(server, &receiver.url, &json!({"events": ["job.completed"]})).await;
    let id = complete(server, &job("mail"), r#"{"sent":"ü"}"#).await;
    let delivery = settled_deliveries(server, &made, 1).await.remove(0);
    assert_eq!(
        (&delivery["state"], &delivery["attempts"], &delivery["status"]),
        (&json!("delivered"), &json!(1), &json!(204))
    );
    assert_eq!((&delivery["error"], &delivery["next_attempt_at"]), (&Value::Null, &Value::Null));
    assert!(delivery["ended_at"].is_string());

    let received = receiver.received();
    assert_eq!(received.len(), 1);
    let event = received[0].json();
    let feed = server.get("/ojs/v1/events?types=job.completed").await.json();
    assert_eq!(event, feed["events"][0], "the same event as in the feed");
    assert_eq!((&event["subject"], &event["data"]["result"]["sent"]), (&json!(id), &json!("ü")));
    assert_eq!((&delivery["event_id"], &delivery["event"]), (&event["id"], &json!("job.completed")));
    let seconds = (server.fleet.now().0 / 1_000).to_string();
    for (header, value) in [
        ("webhook-id", delivery["id"].as_str().unwrap()),
        ("x-ojs-delivery-id", delivery["id"].as_str().unwrap()),
        ("x-ojs-event", "job.completed"),
        ("webhook-timestamp", &seconds),
        ("x-ojs-timestamp", &seconds),
        ("content-type", "application/json"),
        ("x-ojs-signature-previous", ""),
    ] {
        assert_eq!(received[0].header(header), value, "{header}");
    }
    assert!(is_signed_with(&received[0], made["secret"].as_str().unwrap()));
    assert!(!is_signed_with(&received[0], "another"));

    let own = subscribe(server, &receiver.url, &json!({"secret": "whsec_of my own".replace(' ', "_")})).await;
    server.push(&job("mail")).await;
    settled_deliveries(server, &own, 1).await;
    assert!(is_signed_with(&receiver.received()[1], "whsec_of_my_own"));
}

async fn only_subscribed_events_are_delivered(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let everything = subscribe(server, &receiver.url, &json!({})).await;
    let by_prefix =
        subscribe(server, &receiver.url, &json!({"events": ["review.*", "job.st*".replace('*', "arted")]}))
            .await;
    let by_queue =
        subscribe(server, &receiver.url, &json!({"filter": {"queues": ["mail"]}, "events": ["job.*"]})).await;
    let by_type = subscribe(server, &receiver.url, &json!({"filter": {"job_types": ["c.d"]}})).await;
    let nothing = subscribe(server, &receiver.url, &json!({"events": ["no.such"]})).await;
    complete(server, &job("mail"), "1").await;
    complete(server, &json!({"type": "c.d", "args": []}), "1").await;
    settled_deliveries(server, &everything, 6).await;
    let events = async |made: &Value| {
        let mut events: Vec<String> =
            deliveries(server, made).await.iter().map(|d| d["event"].as_str().unwrap().to_owned()).collect();
        events.sort_unstable();
        events
    };
    assert_eq!(events(&everything).await.len(), 6);
    assert_eq!(events(&by_prefix).await, ["job.started", "job.started"]);
    assert_eq!(events(&by_queue).await, ["job.completed", "job.enqueued", "job.started"]);
    assert_eq!(events(&by_type).await, ["job.completed", "job.enqueued", "job.started"]);
    assert_eq!(events(&nothing).await, [""; 0]);
    assert_eq!(receiver.count(), 6 + 2 + 3 + 3);
    server.fleet.tick().await;
    assert_eq!(receiver.count(), 14, "delivered once");
}

async fn a_queues_webhook_receives_workflows_with_jobs_in_it(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let of_queue = |queue: &str| json!({"events": ["workflow.*"], "filter": {"queues": [queue]}});
    let (mail, night) = (
        subscribe(server, &receiver.url, &of_queue("mail")).await,
        subscribe(server, &receiver.url, &of_queue("night")).await,
    );
    let step = |queue: &str| json!({"type": "a.b", "args": [], "options": {"queue": queue}});
    let body = json!({"type": "chain", "steps": [step("other"), step("mail")]});
    server.post("/ojs/v1/workflows", &body).await.expect(201);
    for queue in ["other", "mail"] {
        let fetched =
            server.post("/ojs/v1/workers/fetch", &json!({"queues": [queue]})).await.expect(200).json();
        let ack = json!({"job_id": fetched["jobs"][0]["id"], "result": 1});
        server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
    }
    let mut events: Vec<String> = settled_deliveries(server, &mail, 4)
        .await
        .iter()
        .map(|d| d["event"].as_str().unwrap().to_owned())
        .collect();
    events.sort_unstable();
    let steps = ["workflow.step_completed"; 2];
    assert_eq!(events, [&["workflow.completed", "workflow.started"][..], &steps].concat());
    assert!(deliveries(server, &night).await.is_empty());
    let feed = server.get("/ojs/v1/events?types=workflow.completed&queues=mail").await.expect(200).json();
    assert_eq!(feed["events"][0]["data"]["queues"], json!(["mail", "other"]), "{feed:#}");
    let feed = server.get("/ojs/v1/events?types=workflow.completed&queues=night").await.expect(200).json();
    assert_eq!(feed["events"], json!([]));
}

async fn events_before_or_while_disabled_are_not_delivered(server: &OjsServer) {
    let receiver = Receiver::start().await;
    server.push(&job("before")).await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("first")).await;
    settled_deliveries(server, &made, 1).await;
    server.patch(&path(&made, ""), &json!({"active": false})).await.expect(200);
    server.push(&job("meanwhile")).await;
    server.fleet.tick().await;
    server.post(&path(&made, "/test"), &json!({})).await.expect(409);
    server.patch(&path(&made, ""), &json!({"active": true})).await.expect(200);
    server.push(&job("second")).await;
    settled_deliveries(server, &made, 2).await;
    let queues: Vec<Value> = receiver.received().iter().map(|r| r.json()["data"]["queue"].clone()).collect();
    assert_eq!(queues, ["first", "second"]);
}

async fn a_tenants_webhook_receives_its_own_events(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let body = json!({"url": receiver.url, "events": ["*"]}).to_string();
    let alpha = [("x-ojs-tenant", "alpha")];
    let made = server.send(Method::POST, super::SUBSCRIPTIONS, &alpha, body).await.expect(201).json();
    let everybodys = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("nobodys")).await;
    for tenant in ["beta", "alpha"] {
        let headers = [("x-ojs-tenant", tenant)];
        server.send(Method::POST, "/ojs/v1/jobs", &headers, job(tenant).to_string()).await.expect(201);
    }
    settled_deliveries(server, &everybodys, 3).await;
    assert_eq!(deliveries(server, &made).await.len(), 1);
    let own = deliveries(server, &made).await.remove(0)["id"].clone();
    let received = receiver.received();
    let of_alpha = received.iter().find(|r| r.header("webhook-id") == own).unwrap();
    assert_eq!(of_alpha.json()["data"]["queue"], "alpha");
}

async fn the_old_secret_signs_beside_the_new_one_for_a_while(server: &OjsServer) {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let receiver = Receiver::start().await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    let rotated = server.post_text(&path(&made, "/rotate-secret"), "").await.expect(200).json();
    let (old, new) = (made["secret"].as_str().unwrap(), rotated["subscription"]["secret"].as_str().unwrap());
    assert_ne!(old, new);
    let until = server.fleet.now().plus_ms(DAY_MS).to_rfc3339();
    assert_eq!(rotated["old_secret_until"], until);
    server.push(&job("q")).await;
    settled_deliveries(server, &made, 1).await;
    server.fleet.clock.advance_ms(DAY_MS);
    server.push(&job("q")).await;
    settled_deliveries(server, &made, 2).await;
    let rotated =
        server.post(&path(&made, "/rotate-secret"), &json!({"grace_seconds": 0})).await.expect(200).json();
    assert_eq!(rotated.get("old_secret_until"), None);
    let newest = rotated["subscription"]["secret"].as_str().unwrap();
    server.push(&job("q")).await;
    settled_deliveries(server, &made, 3).await;
    let received = receiver.received();
    let signers = |received: &Received| [old, new, newest].map(|secret| is_signed_with(received, secret));
    assert_eq!(signers(&received[0]), [true, true, false]);
    assert_eq!(signers(&received[1]), [false, true, false], "a day is over");
    assert_eq!(signers(&received[2]), [false, false, true], "no grace");
}

async fn a_test_arrives_and_is_no_event(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let made = subscribe(server, &receiver.url, &json!({"events": ["job.completed"]})).await;
    let sent = server.post(&path(&made, "/test"), &json!({})).await.expect(202).json()["delivery"].clone();
    assert_eq!((&sent["state"], &sent["event"]), (&json!("pending"), &json!("webhook.test")));
    server.fleet.tick().await;
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    assert_eq!(
        (received[0].header("webhook-id"), received[0].header("x-ojs-event")),
        (sent["id"].as_str().unwrap(), "webhook.test")
    );
    assert_eq!(
        (&received[0].json()["type"], &received[0].json()["subject"]),
        (&json!("webhook.test"), &made["id"])
    );
    assert!(is_signed_with(&received[0], made["secret"].as_str().unwrap()));
    assert_eq!(server.get("/ojs/v1/events").await.json()["events"], json!([]));
}

async fn a_delivery_is_sent_again_under_its_id(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    let delivery = settled_deliveries(server, &made, 1).await.remove(0);
    let id = delivery["id"].as_str().unwrap();
    let again =
        server.post_text(&path(&made, &format!("/deliveries/{id}/redeliver")), "").await.expect(202).json();
    assert_eq!((&again["delivery"]["id"], &again["delivery"]["state"]), (&json!(id), &json!("pending")));
    server.fleet.tick().await;
    let received = receiver.received();
    let ids: Vec<&str> = received.iter().map(|r| r.header("webhook-id")).collect();
    assert_eq!((ids, received[0].body == received[1].body), (vec![id, id], true));
    assert_eq!(deliveries(server, &made).await[0]["state"], "delivered");
    server.post_text(&path(&made, "/deliveries/msg_none/redeliver"), "").await.expect(404);
    let other = subscribe(server, &receiver.url, &json!({})).await;
    server.post_text(&path(&other, &format!("/deliveries/{id}/redeliver")), "").await.expect(404);
}

async fn deleting_a_webhook_deletes_its_deliveries(server: &OjsServer) {
    let receiver = Receiver::answering(|_| turnstone_tests::Receipt::status(503)).await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    settled_deliveries(server, &made, 1).await;
    server.delete(&path(&made, "")).await.expect(200);
    assert_eq!(server.fleet.number("SELECT count(*) FROM deliveries").await, 0);
    server.pass_ms(3_600_000).await;
    assert_eq!(receiver.count(), 1);
}

async fn old_deliveries_are_deleted(server: &OjsServer) {
    const DAYS_31: i64 = 31 * 24 * 60 * 60 * 1_000;
    let receiver = Receiver::start().await;
    let made = subscribe(server, &receiver.url, &json!({})).await;
    server.push(&job("q")).await;
    settled_deliveries(server, &made, 1).await;
    server.fleet.clock.advance_ms(DAYS_31 / 2);
    server.push(&job("q")).await;
    settled_deliveries(server, &made, 2).await;
    server.pass_ms(DAYS_31 / 2).await;
    assert_eq!(deliveries(server, &made).await.len(), 1, "younger deliveries stay");
}
