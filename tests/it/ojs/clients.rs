//! The expectations of OJS's own tools beyond the conformance cases: other paths, versions, request ids.

use super::on_sqlite_first;
use super::operate::dead;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    cron_entries_answer_at_the_admin_pages_paths,
    the_registry_answers_at_its_own_paths,
    a_version_in_the_type_finds_its_schema,
    jobs_answer_at_the_paths_of_the_command_line,
    a_request_id_is_stored_with_its_jobs,
];

async fn cron_entries_answer_at_the_admin_pages_paths(server: &OjsServer) {
    let body = json!({"name": "n", "expression": "0 3 * * *", "job_template": {"type": "a.b", "args": []}});
    let made = server.post("/ojs/v1/crons", &body).await.expect(201).json();
    assert_eq!((&made["cron"]["id"], &made["cron"]["name"]), (&json!("n"), &json!("n")));
    assert_eq!(server.get("/ojs/v1/crons").await.expect(200).json()["count"], 1);
    assert_eq!(server.get("/ojs/v1/crons/n").await.expect(200).json(), made);
    let changed = server.patch("/ojs/v1/crons/n", &json!({"id": "n", "enabled": false})).await.expect(200);
    assert_eq!(changed.json()["cron"]["enabled"], false);
    assert_eq!(server.delete("/ojs/v1/crons/n").await.expect(200).json()["deleted"], true);
    server.get("/ojs/v1/crons/n").await.expect(404);
}

async fn the_registry_answers_at_its_own_paths(server: &OjsServer) {
    let schemas = "/ojs/v1/schemas";
    let post =
        |version: Value| json!({"job_type": "mail.send", "version": version, "schema": {"type": "array"}});
    let made = server.post(schemas, &post(json!("2.0.0"))).await.expect(201).json();
    assert_eq!((&made["schema"]["job_type"], &made["schema"]["version"]), (&json!("mail.send"), &json!(2)));
    assert_eq!(made["schema"]["schema"], json!({"type": "array"}));
    server.post(schemas, &post(json!(3))).await.expect(201);
    assert_eq!(server.post(schemas, &post(json!("3.0"))).await.expect(409).code(), "conflict");
    for wrong in [json!("2.1.0"), json!(0), json!("new"), Value::Null] {
        server.post(schemas, &post(wrong)).await.expect(400);
    }
    assert_eq!(server.get(&format!("{schemas}/mail.send")).await.expect(200).json()["schema"]["version"], 3);
    let versions = server.get(&format!("{schemas}/mail.send/versions")).await.expect(200).json();
    let listed: Vec<_> = versions["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["version"].clone(), v["is_latest"].clone()))
        .collect();
    assert_eq!(listed, [(json!(3), json!(true)), (json!(2), json!(false))]);
    assert_eq!(server.get(schemas).await.expect(200).json()["count"], 2);
    assert_eq!(server.get("/ojs/v1/admin/schemas/mail.send/2.0").await.expect(200).json()["version"], 2);
    server.delete(&format!("{schemas}/mail.send/3.0.0")).await.expect(200);
    assert_eq!(server.get(&format!("{schemas}/mail.send")).await.expect(200).json()["version"], 2);
    server.get(&format!("{schemas}/mail.send/3")).await.expect(404);
    server.get(&format!("{schemas}/none")).await.expect(404);
}

/// OJS job versioning VER-001, VER-002.
async fn a_version_in_the_type_finds_its_schema(server: &OjsServer) {
    for (version, least) in [(1, 1), (2, 2)] {
        let body = json!({"schema": {"type": "array", "minItems": least}, "mode": "strict"});
        server.put(&format!("/ojs/v1/admin/schemas/mail.send/{version}"), &body).await.expect(201);
    }
    let job = |job_type: &str| json!({"type": job_type, "args": ["one"]});
    let id = server.push(&job("mail.send@1.0")).await;
    let stored = server.job(&id).await;
    assert_eq!((&stored["type"], &stored["version"]), (&json!("mail.send"), &json!("1.0")));
    for refused in ["mail.send@2.0", "mail.send"] {
        assert_eq!(server.post("/ojs/v1/jobs", &job(refused)).await.expect(400).code(), "schema_validation");
    }
    server.push(&job("mail.send@2.5")).await;
    let list = server.get("/ojs/v1/jobs?type=mail.send").await.expect(200).json();
    assert_eq!(list["pagination"]["total"], 2);
    server.post("/ojs/v1/jobs", &job("mail.send@new")).await.expect(400);
}

async fn jobs_answer_at_the_paths_of_the_command_line(server: &OjsServer) {
    let id = dead(server, "mail", "email.send").await;
    assert_eq!(server.get("/ojs/v1/dead-letter/stats").await.expect(200).json()["total"], 1);
    let result = server.get(&format!("/ojs/v1/jobs/{id}/result")).await.expect(200).json();
    assert_eq!((&result["state"], &result["result"]), (&json!("discarded"), &Value::Null));
    assert!(result["error"]["code"].is_string(), "{result}");
    server.get("/ojs/v1/jobs/01890000-0000-7000-8000-000000000000/result").await.expect(404);
    for (verb, state) in [("retry", "available"), ("cancel", "cancelled")] {
        let path = format!("/ojs/v1/jobs/bulk/{verb}");
        server.post(&path, &json!({"filter": {"queue": "mail"}})).await.expect(400);
        let done =
            server.post(&path, &json!({"filter": {"queue": "mail"}, "confirm": true})).await.expect(200);
        assert_eq!(done.json()["succeeded"], 1, "{verb}");
        assert_eq!(server.job(&id).await["state"], state);
    }
    let gone = server.post("/ojs/v1/jobs/bulk/delete", &json!({"confirm": true})).await.expect(200).json();
    assert_eq!((&gone["succeeded"], server.stored_jobs().await), (&json!(1), 0));
}

async fn a_request_id_is_stored_with_its_jobs(server: &OjsServer) {
    let named = async |path: &str, body: Value| {
        let headers = [("X-Request-Id", "order-17")];
        server.send(Method::POST, path, &headers, body.to_string()).await.expect(201).json()
    };
    let job = json!({"type": "a.b", "args": [], "meta": {"own": 1}});
    let made = named("/ojs/v1/jobs", job.clone()).await;
    assert_eq!(made["job"]["meta"], json!({"own": 1, "request_id": "order-17"}));
    let batch = named("/ojs/v1/jobs/batch", json!({"jobs": [job, {"type": "a.b", "args": []}]})).await;
    for job in batch["jobs"].as_array().unwrap() {
        assert_eq!(job["meta"]["request_id"], "order-17");
    }
    let id = server.push(&json!({"type": "a.b", "args": []})).await;
    assert_eq!(server.job(&id).await["meta"], json!({}), "a generated id is not recorded");
}
