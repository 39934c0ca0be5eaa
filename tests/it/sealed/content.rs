//! All content of clients, models, tools and reviewers has one word. With a key the database does not contain it.
//! Without one every column that is meant to be encrypted has it, so the search finds it.

use super::{keys, sealed};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, OjsServer, Place, Receiver, Reply, model_server};

/// The searched word.
const WORD: &str = "Zaubertrank";
/// The secret of a webhook: the word in base64.
const SECRET: &str = "whsec_WmF1YmVydHJhbmstU2VjcmV0LW9mLW1pbmU=";
/// The columns that hold the word.
const COLUMNS: [(&str, &str); 30] = [
    ("agent_definitions", "definition"),
    ("agents", "source"),
    ("cron_runs", "message"),
    ("crons", "last_error"),
    ("crons", "template"),
    ("deliveries", "body"),
    ("idempotency_keys", "answer"),
    ("job_envelopes", "args"),
    ("job_envelopes", "extra"),
    ("job_envelopes", "meta"),
    ("job_envelopes", "options"),
    ("job_envelopes", "parent_results"),
    ("job_errors", "error"),
    ("job_results", "result"),
    ("journal", "body"),
    ("journal", "said"),
    ("progress", "data"),
    ("progress", "message"),
    ("reviews", "question"),
    ("reviews", "reason"),
    ("saved_states", "state"),
    ("tool_calls", "input"),
    ("tool_calls", "outcome"),
    ("webhooks", "metadata"),
    ("webhooks", "url"),
    ("workflow_steps", "job"),
    // These hold a secret or a decision, and not the word.
    ("server_keys", "body"),
    ("webhooks", "secret"),
    ("webhooks", "old_secret"),
    ("data_keys", "body"),
];

const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: booker
description: An agent that books a Zaubertrank.
intent: You book what you are asked to book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      assertion: recent["book"].inputs.price <= 800
      require_review: manager
"#;

fn script(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 640, "what": WORD})),
        _ => Reply::text(format!("booked a {WORD}")),
    }
}

fn has_it(value: &Value) -> bool {
    value.to_string().contains(WORD)
}

/// AIX-19: with encryption no text of args, messages, tools or results is readable in the database.
#[tokio::test]
async fn no_content_is_readable_in_the_database() {
    for backend in Backend::ALL {
        let site = Fleet::builder().on(backend).model(script).sealed(keys(1, &[])).start().await;
        let server = OjsServer::over(site);
        say_everything(&server).await;
        let dump = dump(&server.fleet.place).await;
        for word in [WORD, &SECRET[6..]] {
            let at = dump.find(word);
            let around = at.map(|at| dump[at.saturating_sub(200)..].chars().take(300).collect::<String>());
            assert_eq!(around, None, "{word} on {backend:?}");
        }
        for (table, column) in COLUMNS {
            let clear = format!(
                "SELECT count(*) FROM {table} WHERE {column} NOT LIKE 'sealed:1:%' AND {column} NOT IN ('{{}}', '[]')"
            );
            assert_eq!(server.fleet.number(&clear).await, 0, "{table}.{column} on {backend:?}");
        }
        server.fleet.end().await;
    }
}

#[tokio::test]
async fn without_a_key_the_same_search_finds_it_in_every_column() {
    for backend in Backend::ALL {
        let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
        say_everything(&server).await;
        let dump = dump(&server.fleet.place).await;
        assert!(dump.contains(WORD) && dump.contains(&SECRET[6..]), "{backend:?}");
        for (table, column) in &COLUMNS[..COLUMNS.len() - 4] {
            let found = format!("SELECT count(*) FROM {table} WHERE {column} LIKE '%{WORD}%'");
            assert_ne!(server.fleet.number(&found).await, 0, "{table}.{column} on {backend:?}");
        }
        for (table, column) in &COLUMNS[COLUMNS.len() - 4..COLUMNS.len() - 1] {
            let found = format!("SELECT count(*) FROM {table} WHERE {column} IS NOT NULL");
            assert_ne!(server.fleet.number(&found).await, 0, "{table}.{column} on {backend:?}");
        }
        assert_eq!(server.fleet.number("SELECT count(*) FROM data_keys").await, 0);
        server.fleet.end().await;
    }
}

/// Returns all bytes of the database: its files, or a dump.
pub(super) async fn dump(place: &Place) -> String {
    match place {
        Place::File(path) => {
            let wal = format!("{}-wal", path.display());
            let bytes = [std::fs::read(path).unwrap(), std::fs::read(wal).unwrap_or_default()].concat();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Place::Url(_) => {
            let tables: Vec<(String,)> =
                place.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'").await;
            assert!(tables.len() > 30, "{tables:?}");
            let mut dump = String::new();
            for (table,) in tables {
                let rows: Vec<(String,)> = place.rows(&format!("SELECT t::text FROM {table} AS t")).await;
                rows.iter().for_each(|(row,)| dump.extend([row.as_str(), "\n"]));
            }
            dump
        }
    }
}

/// Writes the word into every encrypted column, and checks that the API returns it.
async fn say_everything(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let url = format!("{}/{WORD}", receiver.url);
    let hook = json!({"url": url, "events": ["*"], "secret": SECRET, "metadata": {"for": WORD}});
    let made = server.post("/ojs/v1/webhooks/subscriptions", &hook).await.expect(201).json();
    let subscription = made["subscription"]["id"].as_str().unwrap().to_owned();
    plain_job(server).await;
    workflow(server).await;
    cron(server).await;
    agent_job(server).await;
    server
        .fleet
        .until("the webhook receives a result", async || {
            server.fleet.tick().await;
            receiver.received().iter().any(|received| received.body.contains(WORD))
        })
        .await;
    let rotate = format!("/ojs/v1/webhooks/subscriptions/{subscription}/rotate-secret");
    server.post(&rotate, &json!({})).await.expect(200);
    let shown =
        server.get(&format!("/ojs/v1/webhooks/subscriptions/{subscription}")).await.expect(200).json();
    assert!(shown["subscription"]["url"].as_str().unwrap().ends_with(WORD), "{shown}");
}

async fn fetched(server: &OjsServer) -> Value {
    let ask = json!({"queues": ["q"], "worker_id": "w"});
    let reply = server.post("/ojs/v1/workers/fetch", &ask).await.expect(200).json();
    assert_eq!(reply["jobs"].as_array().unwrap().len(), 1, "{reply}");
    reply["jobs"][0].clone()
}

/// Runs a plain job: fetched, signalled, failed, fetched again, completed.
async fn plain_job(server: &OjsServer) {
    let job = json!({
        "type": "mail.send", "args": [WORD, 0.10], "meta": {"about": WORD, "test_directive": "quiet"}, "x_note": WORD,
        "options": {"queue": "q", "tags": ["in-the-clear"], "metadata": {"of": WORD},
                    "unique": {"keys": ["type", "args"], "period": "PT1H"},
                    "retry": {"max_attempts": 3, "initial_interval": "PT1S", "jitter": false}},
        "ext_attest": {"required": true},
    });
    let key = [("Idempotency-Key", "k")];
    let send =
        async || server.send(reqwest::Method::POST, "/ojs/v1/jobs", &key, job.to_string()).await.expect(201);
    let pushed = send().await.json();
    assert!(has_it(&pushed) && send().await.json() == pushed, "the recorded answer can be read: {pushed}");
    let id = pushed["id"].as_str().unwrap().to_owned();
    let again = server.post("/ojs/v1/jobs", &job).await;
    assert_eq!(again.status, 409, "unique jobs are still found to be alike: {}", again.text);
    let job = fetched(server).await;
    assert_eq!(job["args"], json!([WORD, 0.10]));
    let beat = json!({"worker_id": "w", "active_jobs": [id]});
    let reported = server.post("/ojs/v1/workers/heartbeat", &beat).await.expect(200).json();
    assert_eq!(reported["state"], "quiet", "a job's directive for its worker is readable: {reported}");
    let path = format!("/ojs/v1/jobs/{id}");
    let said = json!({"progress": 0.5, "message": WORD, "data": {"at": WORD}});
    server.put(&format!("{path}/progress"), &said).await.expect(200);
    server.put(&format!("{path}/checkpoint"), &json!({"state": {"at": WORD}})).await.expect(200);
    let error = json!({"code": "e", "message": format!("no {WORD}"), "details": {"of": WORD}});
    server.post("/ojs/v1/workers/nack", &json!({"job_id": id, "error": error})).await.expect(200);
    server.pass_ms(1_000).await;
    let job = fetched(server).await;
    assert!(has_it(&job["errors"]) && has_it(&job["checkpoint"]) && has_it(&job["x_note"]), "{job:#}");
    let ack = json!({"job_id": id, "result": {"got": WORD}});
    server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
    assert_eq!(server.job(&id).await["result"]["got"], WORD);
    assert!(has_it(&server.get(&format!("{path}/progress")).await.expect(200).json()["data"]));
    let receipt = server.get(&format!("{path}/receipt")).await.expect(200).json();
    let receipt = json!({"receipt": receipt["receipt"]});
    let verdict = server.post("/ojs/v1/attest/verify", &receipt).await.expect(200).json();
    assert_eq!(verdict["valid"], true, "{verdict}");
}

/// Runs a chain: the second step receives the result of the first.
async fn workflow(server: &OjsServer) {
    let step = |n: i64| json!({"type": "flow.step", "args": [WORD, n], "options": {"queue": "q"}});
    let chain = json!({"type": "chain", "name": "c", "steps": [step(1), step(2)]});
    server.post("/ojs/v1/workflows", &chain).await.expect(201);
    for n in 1..=2 {
        let job = fetched(server).await;
        assert_eq!(job["args"], json!([WORD, n]));
        assert_eq!(has_it(&job["parent_results"]), n == 2, "{job:#}");
        let ack = json!({"job_id": job["id"], "result": {"step": WORD}});
        server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
    }
}

/// Fires an entry whose agent does not exist.
async fn cron(server: &OjsServer) {
    let template =
        json!({"type": "cron.job", "args": [WORD], "meta": {"agent": WORD}, "options": {"queue": "full"}});
    let entry = json!({"name": "nightly", "expression": "* * * * *", "job_template": template});
    server.post("/ojs/v1/cron", &entry).await.expect(201);
    server.pass_ms(61_000).await;
    let history = server.get("/ojs/v1/cron/nightly/history").await.expect(200).text;
    assert!(history.contains(WORD) && history.contains("not registered"), "{history}");
    assert!(has_it(&server.get("/ojs/v1/cron/nightly").await.expect(200).json()["cron"]["job_template"]));
}

/// Runs an agent that calls a tool and is reviewed.
async fn agent_job(server: &OjsServer) {
    let fleet = &server.fleet;
    for changed in [true, false] {
        let body = fleet.register(AGENT).await;
        assert_eq!(body["changed"], changed, "the same source is no change: {body}");
    }
    let job = json!({"type": "agent.book", "args": [format!("book a {WORD}")], "meta": {"agent": "booker"}});
    let id = fleet.push(&job).await;
    assert_eq!(fleet.settled(&id).await["state"], "pending");
    let reviews = fleet.get("/reviews?state=open").await;
    let review = &reviews["items"][0];
    assert!(has_it(&review["question"]), "{reviews:#}");
    let answer = json!({"by": "manager", "reason": format!("a {WORD} is needed")});
    let path = format!("/reviews/{}/approve", review["id"].as_str().unwrap());
    assert!(fleet.post(&path, &answer).await.0.is_success());
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], format!("booked a {WORD}"), "{done:#}");
    let engagement = fleet.engagement_of(&id).await;
    for what in ["audit", "messages", "tool-calls"] {
        let shown = fleet.get(&format!("/engagements/{engagement}/{what}")).await;
        assert!(has_it(&shown), "{what}: {shown:#}");
    }
    assert!(fleet.send(reqwest::Method::GET, "/agents/booker", "").await.1.to_string().contains(WORD));
}

#[tokio::test]
async fn unencrypted_rows_are_still_readable() {
    for backend in Backend::ALL {
        let before = OjsServer::over(Fleet::builder().on(backend).workers(0).start().await);
        let id = super::completed(&before, json!([WORD]), json!({"clear": 1})).await;
        let (store, _) = before.fleet.place.open_sealed(Some(&keys(1, &[]))).await.unwrap();
        let job = store.views.job(&id.as_str().into()).await.unwrap().unwrap();
        assert_eq!(job.envelope.args.as_str(), format!("[\"{WORD}\"]"));
        before.end().await;
    }
    // A new database is encrypted from its first write on.
    let server = sealed(Backend::Sqlite).await;
    super::completed(&server, json!([WORD]), json!({"sealed": 1})).await;
    assert!(!dump(&server.fleet.place).await.contains(WORD));
    server.end().await;
}

/// A list by `meta` opens what is sealed.
#[tokio::test]
async fn sealed_meta_is_found() {
    let server = sealed(Backend::Sqlite).await;
    let job = |customer: i64| json!({"type": "mail.send", "args": [], "meta": {"customer": customer}});
    let id = server.push(&job(42)).await;
    server.push(&job(43)).await;
    let found = server.get("/ojs/v1/jobs?meta=customer%3D42").await.expect(200).json();
    assert_eq!((found["jobs"].as_array().map(Vec::len), &found["jobs"][0]["id"]), (Some(1), &json!(id)));
    server.end().await;
}
