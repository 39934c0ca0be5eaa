//! Entries are made, replaced, changed and deleted.

use super::super::on_sqlite_first;
use super::{entry, every_minute};
use reqwest::Method;
use serde_json::json;
use turnstone_tests::OjsServer;

on_sqlite_first![
    an_entry_is_made_listed_and_deleted,
    a_second_registration_replaces_the_first_and_keeps_its_counts,
    aliases_and_zones_are_shown_as_they_were_sent,
    wrong_entries_are_refused_and_nothing_is_stored,
    a_change_leaves_other_fields,
    a_disabled_entry_never_fires,
    entries_of_one_tenant_are_hidden_from_another,
];

async fn an_entry_is_made_listed_and_deleted(server: &OjsServer) {
    let made = every_minute(server, "nightly", json!({"description": "d"})).await;
    assert_eq!(made["job_template"]["args"], json!(["nightly", 1]));
    for (field, value) in [
        ("name", json!("nightly")),
        ("expression", json!("* * * * *")),
        ("cron", json!("* * * * *")),
        ("timezone", json!("UTC")),
        ("overlap_policy", json!("skip")),
        ("missed_policy", json!("once")),
        ("enabled", json!(true)),
        ("description", json!("d")),
        ("run_count", json!(0)),
        ("last_run_at", json!(null)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    assert!(made["next_run_at"].as_str().unwrap() > made["created_at"].as_str().unwrap());
    let list = server.get("/ojs/v1/cron").await.expect(200).json();
    assert_eq!((&list["count"], &list["crons"][0], &list["cron_jobs"][0]), (&json!(1), &made, &made));
    assert_eq!(server.get("/ojs/v1/cron?enabled=false").await.expect(200).json()["crons"], json!([]));
    let gone = server.delete("/ojs/v1/cron/nightly").await.expect(200).json();
    assert_eq!((&gone["deleted"], &gone["name"], &gone["cron"]), (&json!(true), &json!("nightly"), &made));
    assert_eq!(server.get("/ojs/v1/cron").await.expect(200).json()["crons"], json!([]));
    for reply in [
        server.get("/ojs/v1/cron/nightly").await,
        server.delete("/ojs/v1/cron/nightly").await,
        server.patch("/ojs/v1/cron/nightly", &json!({"enabled": true})).await,
        server.post("/ojs/v1/cron/nightly/trigger", &json!({})).await,
        server.get("/ojs/v1/cron/nightly/history").await,
    ] {
        assert_eq!(reply.expect(404).code(), "not_found");
    }
}

async fn a_second_registration_replaces_the_first_and_keeps_its_counts(server: &OjsServer) {
    let first = every_minute(server, "n", json!({})).await;
    server.post("/ojs/v1/cron/n/trigger", &json!({})).await.expect(201);
    server.fleet.clock.advance_ms(5_000);
    let body = json!({"name": "n", "cron": "@hourly", "type": "other.work", "args": []});
    let second = server.post("/ojs/v1/cron", &body).await.expect(200).json()["cron"].clone();
    assert_eq!((&second["expression"], &second["type"]), (&json!("@hourly"), &json!("other.work")));
    assert_eq!((&second["created_at"], &second["run_count"]), (&first["created_at"], &json!(1)));
    assert_ne!(second["updated_at"], first["updated_at"]);
}

async fn aliases_and_zones_are_shown_as_they_were_sent(server: &OjsServer) {
    for (name, expression) in [("a", "@daily"), ("b", "@every 90m"), ("c", "0 30 9 * * MON#1")] {
        let body =
            json!({"name": name, "expression": expression, "timezone": "America/New_York", "type": "a.b"});
        let made = server.post("/ojs/v1/cron", &body).await.expect(201).json()["cron"].clone();
        assert_eq!(
            (&made["expression"], &made["timezone"]),
            (&json!(expression), &json!("America/New_York"))
        );
        assert!(made["next_run_at"].is_string());
    }
}

async fn wrong_entries_are_refused_and_nothing_is_stored(server: &OjsServer) {
    let template = json!({"type": "a.b", "args": []});
    for (body, field) in [
        (json!({"expression": "@daily", "job_template": template}), "name"),
        (json!({"name": "n", "job_template": template}), "expression"),
        (json!({"name": "n", "expression": "soon", "job_template": template}), "expression"),
        (json!({"name": "n", "expression": "0 0 0 1 1 * 2030", "job_template": template}), "expression"),
        (json!({"name": "n", "expression": "61 * * * *", "job_template": template}), "expression"),
        (json!({"name": "n", "expression": "0 0 31 2 *", "job_template": template}), "expression"),
        (
            json!({"name": "n", "expression": "@daily", "timezone": "+02:00", "job_template": template}),
            "timezone",
        ),
        (
            json!({"name": "n", "expression": "@daily", "overlap_policy": "x", "job_template": template}),
            "overlap_policy",
        ),
        (json!({"name": "n", "expression": "@daily"}), "job_template"),
        (
            json!({"name": "n", "expression": "@daily", "job_template": {"type": "A b", "args": []}}),
            "job_template.type",
        ),
    ] {
        let reply = server.post("/ojs/v1/cron", &body).await.expect(400);
        let error = reply.json()["error"].clone();
        assert_eq!(
            (&error["code"], &error["details"]["field"]),
            (&json!("invalid_request"), &json!(field)),
            "{body}"
        );
    }
    assert_eq!(server.post_text("/ojs/v1/cron", "{").await.expect(400).code(), "invalid_payload");
    assert_eq!(server.fleet.number("SELECT count(*) FROM crons").await, 0);
}

async fn a_change_leaves_other_fields(server: &OjsServer) {
    let made = every_minute(server, "n", json!({})).await;
    let change = json!({"expression": "0 0 * * *", "overlap_policy": "allow"});
    let changed = server.patch("/ojs/v1/cron/n", &change).await.expect(200).json()["cron"].clone();
    assert_eq!((&changed["expression"], &changed["overlap_policy"]), (&json!("0 0 * * *"), &json!("allow")));
    assert_eq!((&changed["job_template"], &changed["timezone"]), (&made["job_template"], &made["timezone"]));
    assert_ne!(changed["next_run_at"], made["next_run_at"]);
    assert_eq!(entry(server, "n").await, changed);
    for wrong in [json!({"expression": "x"}), json!({"name": "m"}), json!({"enabled": 1})] {
        server.patch("/ojs/v1/cron/n", &wrong).await.expect(400);
    }
    assert_eq!(entry(server, "n").await, changed);
}

async fn a_disabled_entry_never_fires(server: &OjsServer) {
    every_minute(server, "n", json!({"enabled": false})).await;
    assert_eq!(entry(server, "n").await["next_run_at"], json!(null));
    assert_eq!(server.fleet.store.upkeep.next_due().await.unwrap(), None);
    server.pass_ms(10 * super::MINUTE).await;
    assert_eq!(server.stored_jobs().await, 0);
    let on = server.patch("/ojs/v1/cron/n", &json!({"enabled": true})).await.expect(200).json();
    let next = server.fleet.store.upkeep.next_due().await.unwrap().unwrap();
    assert_eq!(on["cron"]["next_run_at"], next.to_rfc3339(), "the scheduler waits for it");
    assert!((1..=super::MINUTE).contains(&next.since(server.fleet.now())));
}

async fn entries_of_one_tenant_are_hidden_from_another(server: &OjsServer) {
    let (a, b) = ([("x-ojs-tenant", "alpha")], [("x-ojs-tenant", "beta")]);
    let body = json!({"name": "n", "cron": "* * * * *", "type": "a.b", "args": []}).to_string();
    for headers in [&a, &b] {
        server.send(Method::POST, "/ojs/v1/cron", headers, body.clone()).await.expect(201);
    }
    server.send(Method::DELETE, "/ojs/v1/cron/n", &a, "").await.expect(200);
    server.send(Method::GET, "/ojs/v1/cron/n", &a, "").await.expect(404);
    server.send(Method::GET, "/ojs/v1/cron/n", &b, "").await.expect(200);
    let all = server.get("/ojs/v1/cron").await.expect(200).json();
    assert_eq!((&all["count"], &all["crons"][0]["tenant_id"]), (&json!(1), &json!("beta")));
    server.pass_ms(super::MINUTE).await;
    assert_eq!(server.fleet.number("SELECT count(*) FROM jobs WHERE tenant = 'beta'").await, 1);
}
