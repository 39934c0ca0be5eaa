//! The audit: each change has an entry in its transaction, and `turnstone audit verify` finds a broken chain.

use super::{Client, audit};
use crate::ojs::on_every_store;
use crate::program::{Ran, run};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_domain::record::EngagementRecord;
use turnstone_tests::documents::oas;
use turnstone_tests::{Fleet, OjsServer, Reply, model_server};

const AGENT: &str =
    "kind: openagentspec:v1/agent\nname: desk\ndescription: A desk.\nintent: You help.\nowner: olga\n";

async fn every_kind_of_change_has_an_entry(server: &OjsServer) {
    server.post_text("/agents", AGENT).await.expect(201);
    let op = Client::new(server, &json!({"name": "op", "roles": ["operator", "submitter"]})).await;
    server.push(&json!({"type": "a.b", "args": [], "options": {"queue": "mail"}})).await;
    for verb in ["pause", "resume"] {
        let done = op.send(Method::POST, &format!("/ojs/v1/queues/mail/{verb}"), &Value::Null).await;
        assert!(done.status < 300, "{}", done.text);
    }
    let cron = json!({"name": "c", "expression": "* * * * *", "job_template": {"type": "a.b", "args": []}});
    op.post("/ojs/v1/cron", &cron).await.expect(201);
    let hook = json!({"url": "http://127.0.0.1:9/x", "events": ["*"]});
    op.post("/ojs/v1/webhooks/subscriptions", &hook).await.expect(201);
    let id = server.push(&json!({"type": "a.b", "args": []})).await;
    op.post(&format!("/ojs/v1/jobs/{id}/cancel"), &Value::Null).await.expect(200);
    let entries = audit(server).await;
    let done = |entry: &&Value| entry["outcome"] == "done";
    let actions: Vec<&str> =
        entries.iter().rev().filter(done).map(|entry| entry["action"].as_str().unwrap()).collect();
    let expected = [
        "POST /agents",
        "POST /keys",
        "POST /ojs/v1/queues/{name}/pause",
        "POST /ojs/v1/queues/{name}/resume",
        "POST /ojs/v1/cron",
        "POST /ojs/v1/webhooks/subscriptions",
        "POST /ojs/v1/jobs/{id}/cancel",
    ];
    assert_eq!(actions, expected);
    let cancelled = &entries[0];
    assert_eq!(
        (&cancelled["principal"], &cancelled["target"], &cancelled["source"]),
        (&json!("op"), &json!(format!("/ojs/v1/jobs/{id}/cancel")), &json!("127.0.0.1"))
    );
    let replaced = AGENT.replace("You help", "You help more");
    server.post_text("/agents", replaced).await.expect(200);
    let entry = audit(server).await[0].clone();
    assert!(entry["before"].as_str().is_some_and(|hash| hash.len() == 64), "{entry}");
    assert!(entries.iter().any(|entry| entry["after"].as_str().is_some_and(|hash| hash.len() == 64)));
}

/// The entries name who decided, retried and imported.
#[tokio::test]
async fn reviews_imports_and_retries_have_entries() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("booked"),
    };
    let server = OjsServer::over(Fleet::builder().model(script).start().await);
    let reviewed = "capabilities: {book: {user_identity: false, input_restriction: {require_review: ann}}}\n";
    server.fleet.register(oas("trip", reviewed)).await;
    let desk = json!({"name": "desk", "roles": ["approver", "operator"], "acts_for": ["*"]});
    let desk = Client::new(&server, &desk).await;
    let decide = async |word: &str| {
        let open = server.get("/reviews?state=open").await.expect(200).json();
        let path = format!("/reviews/{}/{word}", open["items"][0]["id"].as_str().unwrap());
        desk.post(&path, &json!({"by": "ann"})).await.expect(200);
    };
    let id = server
        .push(&json!({"type": "agent.trip", "args": ["go"], "meta": {"agent": "trip"},
                      "options": {"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}}))
        .await;
    server.fleet.wait_for(&id, &[JobState::Pending]).await;
    decide("reject").await;
    server.fleet.wait_for(&id, &[JobState::Discarded]).await;
    let retried = desk.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &Value::Null).await;
    assert!(retried.status < 300, "{}", retried.text);
    server.fleet.wait_for(&id, &[JobState::Pending]).await;
    decide("approve").await;
    server.fleet.wait_for(&id, &[JobState::Completed]).await;
    let engagement = server.fleet.engagement_of(&id).await;
    let document = server.get(&format!("/engagements/{engagement}/export")).await.expect(200).text;
    let mut record = EngagementRecord::read(&document).unwrap();
    record.job.id = "01890000-0000-7000-8000-00000000000c".into();
    record.job.engagement.as_mut().unwrap().id = "01890000-0000-7000-8000-00000000000b".into();
    let key = format!("Bearer {}", desk.secret);
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/x-ndjson")];
    server.send(Method::POST, "/engagements/import", &headers, record.write().unwrap()).await.expect(201);
    let entries = audit(&server).await;
    let of_desk = |entry: &&Value| entry["principal"] == "desk" && entry["outcome"] == "done";
    let actions: Vec<&str> =
        entries.iter().rev().filter(of_desk).map(|entry| entry["action"].as_str().unwrap()).collect();
    let expected = [
        "POST /reviews/{id}/reject",
        "POST /ojs/v1/dead-letter/{id}/retry",
        "POST /reviews/{id}/approve",
        "POST /engagements/import",
    ];
    assert_eq!(actions, expected);
    server.fleet.end().await;
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_changed_chain_is_found(server: &OjsServer) {
    for name in ["a", "b", "c", "d"] {
        Client::new(server, &json!({"name": name, "roles": ["viewer"]})).await;
    }
    let folder = turnstone_tests::scratch::folder();
    let file = folder.path().join("audit.ndjson");
    let turnstone = async |arguments: &[&str]| -> Ran {
        run(folder.path(), &[&["audit", "--url", server.fleet.url.as_str()][..], arguments].concat(), &[])
            .await
    };
    let verify = async |more: &[&str]| turnstone(&[&["verify"][..], more].concat()).await;
    let whole = verify(&[]).await;
    assert!(whole.code == Some(0) && whole.stdout.contains("4 entries, none missing"), "{whole:?}");
    let end = whole.stdout.lines().next_back().unwrap().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(verify(&["--contains", &end]).await.code, Some(0));
    let exported = turnstone(&["export"]).await;
    std::fs::write(&file, &exported.stdout).unwrap();
    let of_file = verify(&["--file", file.to_str().unwrap(), "--contains", &end]).await;
    assert_eq!(of_file.code, Some(0), "{of_file:?}");
    std::fs::write(&file, exported.stdout.replacen("\"done\"", "\"none\"", 1)).unwrap();
    assert_eq!(verify(&["--file", file.to_str().unwrap()]).await.code, Some(1));
    let listed = turnstone(&["list", "--limit", "1", "-o", "json"]).await.json();
    assert_eq!((&listed[0]["seq"], &listed[0]["action"]), (&json!(4), &json!("POST /keys")));
    let change = async |sql: &str| server.fleet.place.change(sql).await;
    for (broken, mended, found) in [
        (
            "UPDATE audit_entries SET principal = 'eve' WHERE seq = 2",
            "UPDATE audit_entries SET principal = 'local' WHERE seq = 2",
            "entry 2",
        ),
        (
            "UPDATE audit_entries SET seq = 9 WHERE seq = 3",
            "UPDATE audit_entries SET seq = 3 WHERE seq = 9",
            "entry 4",
        ),
        ("UPDATE audit_heads SET seq = 5", "UPDATE audit_heads SET seq = 4", "entry 5"),
    ] {
        change(broken).await;
        let refused = verify(&[]).await;
        assert!(refused.code == Some(1) && refused.stdout.contains(found), "{broken}: {refused:?}");
        change(mended).await;
    }
    assert_eq!(verify(&[]).await.code, Some(0));
    // A chain whose end was cut off together with the record of the end is shorter than one that was noted.
    change("DELETE FROM audit_entries WHERE seq = 4").await;
    change("UPDATE audit_heads SET seq = 3, hash = (SELECT hash FROM audit_entries WHERE seq = 3)").await;
    assert_eq!(verify(&[]).await.code, Some(0));
    assert_eq!(verify(&["--contains", &end]).await.code, Some(1));
}

on_every_store!(every_kind_of_change_has_an_entry, a_changed_chain_is_found);
