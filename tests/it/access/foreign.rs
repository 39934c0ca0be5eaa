//! Ids of another tenant: in every path, query and body of `/openapi.json` they get the answer of an id that never existed.

use super::Client;
use crate::ojs::on_every_store;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, OjsServer, Reply, model_server};

const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: booker
description: An agent that books.
intent: You book what you are asked to book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      assertion: recent["book"].inputs.price <= 800
      require_review: manager
"#;

/// Returns an id that never existed. Each is another one.
fn unknown() -> String {
    static MADE: AtomicU64 = AtomicU64::new(1);
    format!("01890000-0000-7000-8000-{:012x}", MADE.fetch_add(1, Ordering::Relaxed))
}

/// Returns a text of the same form as an id of alpha. Each is another one.
fn like(id: &str) -> String {
    let name = |text: &str| text.replacen("alpha", &format!("x{}", &unknown()[32..]), 1);
    let uuid = id.len().checked_sub(36).filter(|at| id[*at..].matches('-').count() == 4);
    uuid.map_or_else(|| name(id), |at| format!("{}{}", &id[..at], unknown()))
}

/// The places of an operation that take a text.
struct Operation {
    method: Method,
    path: String,
    /// Its parameters in the query.
    query: Vec<String>,
    /// A body that fits its schema.
    body: Option<Value>,
}

/// Returns an example of a schema, with a text for each member that takes one.
fn example(document: &Value, schema: &Value, depth: usize) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.trim_start_matches('#');
        return example(document, document.pointer(pointer).unwrap_or(&Value::Null), depth);
    }
    let mut made = schema.get("example").cloned().unwrap_or_default();
    for word in ["oneOf", "anyOf"] {
        let kinds = schema[word].as_array().into_iter().flatten();
        if let Some(kind) = kinds.clone().find(|kind| kind["type"] != "null")
            && made.is_null()
        {
            made = example(document, kind, depth);
        }
    }
    let mut parts = vec![schema];
    parts.extend(schema["allOf"].as_array().into_iter().flatten());
    for part in parts {
        let Some(members) = part["properties"].as_object().filter(|_| depth < 4) else { continue };
        if made.is_null() {
            made = json!({});
        }
        let Some(object) = made.as_object_mut() else { continue };
        for (name, member) in members {
            if !object.contains_key(name) && takes_text(document, member) {
                let value = example(document, member, depth + 1);
                object.insert(name.clone(), if value.is_null() { json!("text") } else { value });
            }
        }
    }
    made
}

fn takes_text(document: &Value, schema: &Value) -> bool {
    if let Some(name) = schema["$ref"].as_str() {
        return takes_text(document, document.pointer(name.trim_start_matches('#')).unwrap_or(&Value::Null));
    }
    let is_text = |kind: &Value| kind == "string" || kind == "object";
    let kinds =
        schema["type"].as_array().map_or_else(|| vec![&schema["type"]], |kinds| kinds.iter().collect());
    let kinds = kinds.into_iter().any(is_text);
    let mut others = ["oneOf", "anyOf", "allOf"].iter().filter_map(|word| schema[*word].as_array()).flatten();
    schema["enum"].is_null() && (kinds || others.any(|kind| takes_text(document, kind)))
}

async fn operations(server: &OjsServer) -> Vec<Operation> {
    let document = server.get("/openapi.json").await.expect(200).json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            // Names of queues and agents belong to all tenants; the fleet's operations are refused for both. A fetch
            // returns jobs of beta.
            let path = path.replace("/agents/{name}/", "/agents/booker/");
            let is_shared =
                path.contains("/queues/{name}") || path == "/agents/{name}" || path.ends_with("/fetch");
            let begins = path.starts_with("/agents/booker/") && !path.contains('{');
            if is_shared || begins || operation["security"][0].get("tenant").is_none() {
                continue;
            }
            let in_query = |given: &&Value| given["in"] == "query" && takes_text(&document, &given["schema"]);
            let given = operation["parameters"].as_array().into_iter().flatten();
            let query = given.filter(in_query).map(|given| given["name"].as_str().unwrap().to_owned());
            let bodies = operation["requestBody"]["content"].as_object().into_iter().flatten();
            let bodies = bodies.map(|(_, content)| {
                let own = content.get("example").cloned();
                own.unwrap_or_else(|| example(&document, &content["schema"], 0))
            });
            operations.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path,
                query: query.collect(),
                body: bodies.into_iter().find(Value::is_object),
            });
        }
    }
    assert!(operations.len() > 100, "{}", operations.len());
    operations
}

/// A request with one place for an id.
struct Probe<'a> {
    operation: &'a Operation,
    /// `path`, the name of a query's parameter, or the pointer of a body's member.
    place: String,
}

impl Probe<'_> {
    fn all(operation: &Operation) -> Vec<Probe<'_>> {
        let probe = |place: String| Probe { operation, place };
        let mut probes = Vec::new();
        if operation.path.contains('{') {
            probes.push(probe("path".to_owned()));
        }
        probes.extend(operation.query.iter().map(|name| probe(format!("?{name}"))));
        let mut pointers = Vec::new();
        texts(operation.body.as_ref().unwrap_or(&Value::Null), "", &mut pointers);
        probes.extend(pointers.into_iter().map(probe));
        probes
    }

    /// Returns the answer without what differs from request to request.
    async fn answer(&self, client: &Client<'_>, http: &reqwest::Client, id: &str) -> (StatusCode, String) {
        let Operation { method, path, body, .. } = self.operation;
        let in_path = if self.place == "path" { id.to_owned() } else { unknown() };
        let (mut parts, mut sent) = (path.split('{'), String::new());
        sent.push_str(parts.next().unwrap_or_default());
        for part in parts {
            sent.push_str(&in_path);
            sent.push_str(part.split_once('}').map_or("", |(_, rest)| rest));
        }
        if let Some(name) = self.place.strip_prefix('?') {
            sent = format!("{sent}?{name}={id}");
        }
        let mut request = http.request(method.clone(), format!("{}{sent}", client.server.fleet.url));
        request = request.bearer_auth(&client.secret);
        if let Some(mut body) = body.clone() {
            if let Some(member) = body.pointer_mut(&self.place).filter(|_| self.place.starts_with('/')) {
                *member = json!(id);
            }
            request = request.header("Content-Type", "application/json").body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or("");
        let is_stream = kind.starts_with("text/event-stream");
        let text = if is_stream { String::new() } else { answer.text().await.unwrap() };
        (status, plain(&text.replace(&in_path, "<id>").replace(id, "<id>")))
    }
}

fn texts(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(pointer.to_owned()),
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| texts(member, &format!("{pointer}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| texts(item, &format!("{pointer}/{at}"), found));
        }
        _ => {}
    }
}

/// Replaces ids, hashes and times.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for word in text.split_inclusive(|one: char| !(one.is_ascii_alphanumeric() || "-_.:".contains(one))) {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let rest = word.trim_start_matches(|one: char| one.is_ascii_alphanumeric() || "-_.:".contains(one));
        plain.push_str(if digits > 3 { "#" } else { word.strip_suffix(rest).unwrap_or(word) });
        plain.push_str(rest);
    }
    plain
}

/// Things of alpha, one of each kind, by kind.
async fn things(server: &OjsServer, alpha: &Client<'_>) -> Map<String, Value> {
    let mut ids = Map::new();
    let mut keep = |kind: &str, id: &Value| {
        assert!(id.is_string(), "no {kind}: {id}");
        ids.insert(kind.to_owned(), id.clone());
    };
    keep("key", &json!(alpha.id));
    let booking = json!({"type": "agent.book", "args": ["book"], "meta": {"agent": "booker"}});
    let job = alpha.post("/ojs/v1/jobs", &booking).await.expect(201).json();
    let job = job["job"]["id"].as_str().unwrap().to_owned();
    server.fleet.wait_for(&job, &[JobState::Pending]).await;
    let engagement = server.fleet.engagement_of(&job).await;
    keep("parked job", &json!(job));
    keep("engagement", &json!(engagement));
    let calls = alpha.get(&format!("/engagements/{engagement}/tool-calls")).await.expect(200).json();
    keep("call", calls.pointer("/tool_calls/0/call_id").unwrap_or(&Value::Null));
    let reviews = alpha.get("/reviews?state=open").await.expect(200).json();
    keep("review", &reviews["items"][0]["id"]);
    let fork = alpha.post(&format!("/ojs/v1/agents/{job}/fork"), &json!({"branch_name": "alphas"})).await;
    let fork = fork.expect(200).json();
    keep("branch", &fork["branch_id"]);
    keep("job of a branch", &fork["job_id"]);
    let own = json!({"id": "0190aaaa-0000-7000-8000-000000000001", "type": "a.b", "args": [],
        "options": {"tags": ["alphas-batch"], "rate_limit": {"key": "alphas-limit", "concurrency": 1}}});
    alpha.post("/ojs/v1/jobs", &own).await.expect(201);
    keep("plain job", &own["id"]);
    let step = json!({"type": "a.b", "args": []});
    let chain = json!({"type": "chain", "name": "c", "steps": [step, step],
        "id": "0190aaaa-0000-7000-8000-000000000002"});
    let chain = alpha.post("/ojs/v1/workflows", &chain).await.expect(201).json();
    keep("workflow", &chain["workflow"]["id"]);
    let cron = json!({"name": "alphas-cron", "expression": "* * * * *", "job_template": step});
    alpha.post("/ojs/v1/cron", &cron).await.expect(201);
    keep("cron", &json!("alphas-cron"));
    let hook = json!({"url": "https://example.com/hook", "events": ["*"]});
    let hook = alpha.post("/ojs/v1/webhooks/subscriptions", &hook).await.expect(201).json();
    keep("webhook", &hook["subscription"]["id"]);
    keep("tag", &json!("alphas-batch"));
    keep("limit", &json!("alphas-limit"));
    keep("tenant", &json!("alpha"));
    ids
}

async fn foreign_ids_are_unknown_in_every_path_query_and_body(backend: Backend) {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("booked"),
    };
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    server.fleet.register(AGENT).await;
    let alpha = Client::of(&server, "alpha", "admin").await;
    let things = things(&server, &alpha).await;
    let beta = Client::of(&server, "beta", "admin").await;
    let (operations, http) = (operations(&server).await, turnstone_tests::http::client());
    let (mut wrong, mut probes) = (Vec::new(), 0);
    for probe in operations.iter().flat_map(Probe::all) {
        let mut answers: BTreeMap<String, (StatusCode, String)> = BTreeMap::new();
        for (kind, id) in &things {
            probes += 1;
            let id = id.as_str().unwrap();
            let form = if id.contains("alpha") { kind } else { &id[..id.len().saturating_sub(36)] };
            if !answers.contains_key(form) {
                // The first request may create something; the second one is what repetition answers.
                probe.answer(&beta, &http, &like(id)).await;
                answers.insert(form.to_owned(), probe.answer(&beta, &http, &like(id)).await);
            }
            let expected = &answers[form];
            let got = probe.answer(&beta, &http, id).await;
            if got != *expected {
                let Operation { method, path, .. } = probe.operation;
                wrong.push(format!("{method} {path}, {} = {kind}: {got:?}, not {expected:?}", probe.place));
            }
        }
    }
    assert!(probes > 2_000, "{probes}");
    assert!(wrong.is_empty(), "{} of {probes}:\n{}", wrong.len(), wrong.join("\n"));
    // Nothing of alpha was changed.
    for path in
        ["/ojs/v1/cron/alphas-cron".to_owned(), format!("/reviews/{}", things["review"].as_str().unwrap())]
    {
        alpha.get(&path).await.expect(200);
    }
    server.fleet.end_unchecked().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_ids_are_unknown_in_every_path_query_and_body_on_sqlite() {
    foreign_ids_are_unknown_in_every_path_query_and_body(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: the same requests on PostgreSQL"]
async fn foreign_ids_are_unknown_in_every_path_query_and_body_on_postgres() {
    foreign_ids_are_unknown_in_every_path_query_and_body(Backend::Postgres).await;
}

/// Tasks, contexts and runs of another tenant, in the bodies of A2A and the Agent Protocol.
async fn foreign_tasks_contexts_and_runs_are_unknown(backend: Backend) {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("booked"),
    };
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    server.fleet.register(AGENT).await;
    let alpha = Client::of(&server, "alpha", "admin").await;
    let booking = json!({"type": "agent.book", "args": ["book"], "meta": {"agent": "booker"}});
    let job = alpha.post("/ojs/v1/jobs", &booking).await.expect(201).json();
    let job = job["job"]["id"].as_str().unwrap().to_owned();
    server.fleet.wait_for(&job, &[JobState::Pending]).await;
    let engagement = server.fleet.engagement_of(&job).await;
    let beta = Client::of(&server, "beta", "admin").await;
    let message = |extra: Value| {
        let mut message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"message": message})
    };
    let call =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    type Body = fn(&str) -> Value;
    let bodies: [(&str, Body); 4] = [
        ("/agents/booker/process", |id| json!({"type": "ChatRequest", "input": "hi", "run_id": id})),
        ("/agents/booker/process", |id| json!({"type": "CancelRequest", "request_id": id})),
        (
            "/agents/booker/process",
            |id| json!({"type": "ResumeWithInput", "request_id": id, "request_keys": {"answer": "x"}}),
        ),
        ("/agents/booker", |id| json!({"input": "hi", "metadata": {"engagement_id": id}})),
    ];
    for own in [&job, &engagement] {
        for (path, body) in bodies {
            let (got, expected) =
                (beta.post(path, &body(own)).await, beta.post(path, &body(&unknown())).await);
            assert_eq!(got.status, expected.status, "{path}: {} and {}", got.text, expected.text);
        }
        let calls = |id: &str| {
            [
                call("GetTask", json!({"id": id})),
                call("CancelTask", json!({"id": id})),
                call("SubscribeToTask", json!({"id": id})),
                call("ListTasks", json!({"contextId": id})),
                call("SendMessage", message(json!({"taskId": id}))),
                call("SendMessage", message(json!({"contextId": id}))),
            ]
        };
        let other = unknown();
        for (body, unknown) in calls(own).iter().zip(calls(&other)) {
            let send = async |body: &Value| {
                let version = [("A2A-Version", "1.0")];
                let reply = beta.send_with(Method::POST, "/a2a/booker", &version, body).await;
                (reply.status, plain(&reply.text.replace(own.as_str(), "<id>").replace(&other, "<id>")))
            };
            assert_eq!(send(body).await, send(&unknown).await, "{body}");
        }
    }
    assert_eq!(server.job(&job).await["state"], "pending");
    server.fleet.end_unchecked().await;
}

#[tokio::test]
async fn foreign_tasks_contexts_and_runs_are_unknown_on_sqlite() {
    foreign_tasks_contexts_and_runs_are_unknown(Backend::Sqlite).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn foreign_tasks_contexts_and_runs_are_unknown_on_postgres() {
    foreign_tasks_contexts_and_runs_are_unknown(Backend::Postgres).await;
}

/// A merge answers the branch of another tenant as a name that no branch has.
async fn a_foreign_branch_of_a_merge_is_unknown(server: &OjsServer) {
    let (alpha, beta) =
        (Client::of(server, "alpha", "admin").await, Client::of(server, "beta", "admin").await);
    let job = json!({"type": "a.b", "args": []});
    let push = async |client: &Client<'_>| {
        let pushed = client.post("/ojs/v1/jobs", &job).await.expect(201).json();
        pushed["job"]["id"].as_str().unwrap().to_owned()
    };
    let (alphas, betas) = (push(&alpha).await, push(&beta).await);
    let fork = alpha.post(&format!("/ojs/v1/agents/{alphas}/fork"), &json!({})).await.expect(200).json();
    for foreign in [&alphas, fork["branch_id"].as_str().unwrap()] {
        let sides = json!({"branch_a": betas, "branch_b": foreign});
        let merged = beta.post(&format!("/ojs/v1/agents/{betas}/merge"), &sides).await;
        // A job that never ran has no branches: any label that is no id means the job itself.
        let label = json!({"branch_a": betas, "branch_b": unknown()});
        let labelled = beta.post(&format!("/ojs/v1/agents/{betas}/merge"), &label).await;
        assert_eq!((merged.status, merged.code()), (labelled.status, labelled.code()), "{}", merged.text);
    }
}

/// The time at which a queue came to be is that of the first job in it, which may be another tenant's.
async fn a_tenant_does_not_see_when_a_queue_came_to_be(server: &OjsServer) {
    let alpha = Client::of(server, "alpha", "admin").await;
    let beta = Client::of(server, "beta", "admin").await;
    let job = json!({"type": "a.b", "args": [], "options": {"queue": "alphas-queue"}});
    alpha.post("/ojs/v1/jobs", &job).await.expect(201);
    for path in ["/ojs/v1/queues", "/ojs/v1/admin/queues"] {
        let (used, unused) = (format!("{path}/alphas-queue"), format!("{path}/never-queue"));
        let used = beta.get(&used).await.expect(200).text.replace("alphas", "never");
        assert_eq!(used, beta.get(&unused).await.expect(200).text);
        assert!(!beta.get(path).await.expect(200).text.contains("alphas"), "{path}");
    }
    let fleet = server.get("/ojs/v1/queues/alphas-queue").await.expect(200).json();
    assert!(fleet["queue"]["created_at"].is_string(), "{fleet}");
}

on_every_store!(a_foreign_branch_of_a_merge_is_unknown, a_tenant_does_not_see_when_a_queue_came_to_be);
