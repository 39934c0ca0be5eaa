//! Work belongs to a user: only a principal that acts for the user creates it, repeats it with other content, or answers
//! for it. The table classifies every operation of `/openapi.json` and every method of A2A.

use super::Client;
use super::matrix::operations;
use crate::stores::on_stores;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, OjsServer, Reply, model_server};

on_stores!(
    everywhere: [],
    sqlite_first: [
        every_operation_causes_work_only_for_whom_the_principal_acts,
        a_changed_cron_entry_runs_for_a_user_of_its_principal,
        an_activation_of_anothers_job_needs_an_operator,
        settings_of_every_run_need_an_operator_or_everyone,
    ],
);

/// The effect of an operation on the work of users.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// It causes work with content that the principal chooses. It needs the right to act for the user.
    Chosen,
    /// It repeats or moves work unchanged. It needs the role operator.
    Unchanged,
    /// It activates a job unchanged. Its handler demands the right, or the role operator.
    Activates,
    /// It causes no work of a user.
    Nothing,
}

/// Operations with [`Effect::Chosen`].
const CHOSEN: &[&str] = &[
    "POST /ojs/v1/jobs",
    "POST /ojs/v1/jobs/batch",
    "POST /ojs/v1/workflows",
    "POST /ojs/v1/cron",
    "POST /ojs/v1/crons",
    "PATCH /ojs/v1/cron/{name}",
    "PATCH /ojs/v1/crons/{id}",
    "POST /ojs/v1/cron/{name}/trigger",
    "POST /ojs/v1/agents/{id}/fork",
    "POST /ojs/v1/agents/{id}/merge",
    "POST /v1/agent/jobs/{id}/fork",
    "POST /v1/agent/jobs/{id}/merge",
    "POST /agents/{name}",
    "POST /agents/{name}/process",
    "POST /agents/{name}/stream_request",
    "POST /engagements/{id}",
    "POST /engagements/{id}/answer",
    "POST /engagements/{id}/fork",
    "POST /engagements/import",
    "POST /a2a/{agent}",
];

/// Operations with [`Effect::Unchanged`].
const UNCHANGED: &[&str] = &[
    "POST /ojs/v1/admin/dead-letter/{id}/retry",
    "POST /ojs/v1/dead-letter/{id}/retry",
    "POST /ojs/v1/dead-letter/retry",
    "POST /ojs/v1/admin/jobs/{id}/retry",
    "POST /ojs/v1/admin/jobs/bulk/retry",
    "POST /ojs/v1/jobs/bulk/retry",
    "POST /ojs/v1/agents/{id}/resume",
    "POST /v1/agent/jobs/{id}/resume",
    "POST /ojs/v1/agents/{id}/tool-retry",
    "POST /v1/agent/jobs/{id}/tool-retry",
    "PATCH /engagements/{id}/budget",
    "PUT /budgets/{name}",
    "DELETE /budgets/{name}",
    "POST /budgets/{name}/raise",
    "DELETE /freeze",
    "DELETE /breakers/{name}",
    "POST /ojs/v1/queues/{name}/resume",
    "POST /ojs/v1/admin/queues/{name}/resume",
    "PUT /ojs/v1/queues/{name}",
    "PUT /ojs/v1/admin/queues/{name}/config",
    "PUT /ojs/v1/admin/pools/{name}",
    "PUT /ojs/v1/rate-limits/{key}",
    "DELETE /ojs/v1/rate-limits/{key}",
    "PUT /ojs/v1/admin/tenants/{id}",
    "DELETE /ojs/v1/admin/tenants/{id}",
    "PUT /ojs/v1/admin/tenants/{id}/limits",
];

/// Operations with [`Effect::Nothing`].
const NOTHING: &[&str] = &[
    // Keys, agents, credentials, schemas and webhooks are no work.
    "POST /keys",
    "DELETE /keys/{id}",
    "POST /keys/{id}/rotate",
    "POST /agents",
    "PUT /agents/{name}",
    "DELETE /agents/{name}",
    "PUT /credentials/{owner}/{tool}",
    "DELETE /credentials/{owner}/{tool}",
    "PATCH /ojs/v1/admin/schemas/{type}",
    "PUT /ojs/v1/admin/schemas/{type}/{version}",
    "DELETE /ojs/v1/admin/schemas/{type}/{version}",
    "PATCH /ojs/v1/admin/schemas/{type}/{version}",
    "POST /ojs/v1/schemas",
    "DELETE /ojs/v1/schemas/{type}/{version}",
    "POST /ojs/v1/webhooks/subscriptions",
    "DELETE /ojs/v1/webhooks/subscriptions/{id}",
    "PATCH /ojs/v1/webhooks/subscriptions/{id}",
    "POST /ojs/v1/webhooks/subscriptions/{id}/deliveries/{delivery}/redeliver",
    "POST /ojs/v1/webhooks/subscriptions/{id}/rotate-secret",
    "POST /ojs/v1/webhooks/subscriptions/{id}/test",
    "POST /ojs/v1/attest/verify",
    "POST /batches/{tag}/close",
    // These end or stop work, or delete its record.
    "DELETE /ojs/v1/cron/{name}",
    "DELETE /ojs/v1/crons/{id}",
    "DELETE /ojs/v1/workflows/{id}",
    "POST /ojs/v1/workflows/{id}/cancel",
    "DELETE /ojs/v1/jobs/{id}",
    "POST /ojs/v1/jobs/{id}/cancel",
    "POST /ojs/v1/jobs/bulk/cancel",
    "POST /ojs/v1/jobs/bulk/delete",
    "POST /ojs/v1/admin/jobs/{id}/cancel",
    "POST /ojs/v1/admin/jobs/bulk/cancel",
    "POST /ojs/v1/admin/jobs/bulk/delete",
    "DELETE /ojs/v1/admin/queues/{name}/jobs",
    "DELETE /ojs/v1/admin/dead-letter/{id}",
    "DELETE /ojs/v1/dead-letter/{id}",
    "POST /ojs/v1/dead-letter/purge",
    "POST /ojs/v1/agents/{id}/pause",
    "POST /v1/agent/jobs/{id}/pause",
    "POST /ojs/v1/queues/{name}/pause",
    "POST /ojs/v1/admin/queues/{name}/pause",
    "PUT /freeze",
    "DELETE /ojs/v1/admin/workers/{id}",
    "POST /ojs/v1/admin/workers/{id}/quiet",
    // Reviewers answer by their own right.
    "POST /reviews/{id}/approve",
    "POST /reviews/{id}/reject",
    // Workers settle the plain jobs that they hold; those have no user.
    "POST /ojs/v1/jobs/fetch",
    "POST /ojs/v1/workers/fetch",
    "POST /ojs/v1/jobs/{id}/ack",
    "POST /ojs/v1/workers/ack",
    "POST /ojs/v1/jobs/{id}/nack",
    "POST /ojs/v1/workers/nack",
    "POST /ojs/v1/workers/beat",
    "POST /ojs/v1/workers/heartbeat",
    "PUT /ojs/v1/jobs/{id}/checkpoint",
    "POST /ojs/v1/jobs/{id}/checkpoint",
    "DELETE /ojs/v1/jobs/{id}/checkpoint",
    "PUT /ojs/v1/jobs/{id}/progress",
];

/// Returns the effect of an operation that is no reading one; `None` for one that is not classified.
fn effect(operation: &str) -> Option<Effect> {
    let tables = [(CHOSEN, Effect::Chosen), (UNCHANGED, Effect::Unchanged), (NOTHING, Effect::Nothing)];
    match operation {
        "POST /ojs/v1/jobs/{id}/activate" => Some(Effect::Activates),
        _ => tables.into_iter().find(|(table, _)| table.contains(&operation)).map(|(_, effect)| effect),
    }
}

/// Returns the same of a method of A2A.
fn effect_of_a2a(method: &str) -> Option<Effect> {
    Some(match method {
        "SendMessage" | "SendStreamingMessage" => Effect::Chosen,
        "GetTask"
        | "ListTasks"
        | "CancelTask"
        | "SubscribeToTask"
        | "CreateTaskPushNotificationConfig"
        | "GetTaskPushNotificationConfig"
        | "ListTaskPushNotificationConfigs"
        | "DeleteTaskPushNotificationConfig"
        | "GetExtendedAgentCard" => Effect::Nothing,
        _ => return None,
    })
}

/// Asks the user when its input says so.
fn script(request: &Value) -> Reply {
    let asks = request["messages"].to_string().contains("please ask");
    match model_server::outcomes(request) {
        0 if asks => Reply::call("ask-user", json!({"question": "Where to?"})),
        _ => Reply::text("done"),
    }
}

/// The work of ann, which `acting` submitted.
struct Scene {
    server: OjsServer,
    /// A completed job with two branches, `a` and `b`.
    done: String,
    engagement: String,
    /// A job with an open question.
    asks: String,
    asking: String,
    export: String,
}

fn of_ann(input: &str) -> Value {
    json!({"type": "agent.ask", "args": [input], "meta": {"agent": "desk", "user": {"id": "ann"}}})
}

async fn client<'a>(server: &'a OjsServer, name: &str, roles: &[&str], acts_for: &[&str]) -> Client<'a> {
    let key = json!({"name": name, "tenant": "acme", "roles": roles, "acts_for": acts_for});
    Client::new(server, &key).await
}

async fn pushed(client: &Client<'_>, job: &Value) -> String {
    let job = client.post("/ojs/v1/jobs", job).await.expect(201).json();
    job["job"]["id"].as_str().unwrap().to_owned()
}

fn cron(name: &str, template: &Value) -> Value {
    json!({"name": name, "expression": "0 0 1 1 *", "job_template": template})
}

async fn fleet(backend: Backend) -> OjsServer {
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    server.fleet.register(oas("desk", "capabilities: {ask-user: {}}\n")).await;
    server
}

impl Scene {
    async fn new(backend: Backend) -> Self {
        let server = fleet(backend).await;
        let acting = client(&server, "acting", &["submitter", "operator"], &["ann"]).await;
        let done = pushed(&acting, &of_ann("hi")).await;
        server.fleet.wait_for(&done, &[JobState::Completed]).await;
        for branch in ["a", "b"] {
            let path = format!("/ojs/v1/agents/{done}/fork");
            let fork = acting.post(&path, &json!({"at_turn": 1, "branch_name": branch})).await.expect(200);
            let id = fork.json()["job_id"].as_str().unwrap().to_owned();
            server.fleet.wait_for(&id, &[JobState::Completed]).await;
        }
        let asks = pushed(&acting, &of_ann("please ask")).await;
        server.fleet.wait_for(&asks, &[JobState::Pending]).await;
        acting.post("/ojs/v1/cron", &cron("anns", &of_ann("hi"))).await.expect(201);
        let (engagement, asking) =
            (server.fleet.engagement_of(&done).await, server.fleet.engagement_of(&asks).await);
        let export = acting.get(&format!("/engagements/{engagement}/export")).await.expect(200).text;
        Self { server, done, engagement, asks, asking, export }
    }

    /// Returns requests of an operation that cause work for ann: path and body.
    fn attempts(&self, operation: &str) -> Vec<(String, Value)> {
        let path = operation.split_once(' ').unwrap().1;
        let at = |id: &str| path.replace("{id}", id).replace("{name}", id).replace("{agent}", id);
        let jobs = self.of_jobs(path, &at);
        if jobs.is_empty() { self.of_agents(path, &at) } else { jobs }
    }

    fn of_jobs(&self, path: &str, at: &dyn Fn(&str) -> String) -> Vec<(String, Value)> {
        let Self { done, asks, .. } = self;
        let mut below = of_ann("hi");
        below["meta"] = json!({"agent": "desk"});
        below["ext_agent_parent_id"] = json!(done);
        match path {
            "/ojs/v1/jobs" => vec![(path.to_owned(), of_ann("hi")), (path.to_owned(), below)],
            "/ojs/v1/jobs/batch" => vec![(path.to_owned(), json!({"jobs": [of_ann("hi"), of_ann("hi")]}))],
            "/ojs/v1/workflows" => {
                let step = json!({"type": "a.b", "args": []});
                vec![(path.to_owned(), json!({"type": "chain", "name": "c", "steps": [step, of_ann("hi")]}))]
            }
            "/ojs/v1/cron" | "/ojs/v1/crons" => {
                let mut flat = of_ann("hi");
                flat["name"] = json!("more");
                flat["cron"] = json!("@yearly");
                let requests = [cron("more", &of_ann("hi")), flat, cron("more", &below)];
                requests.into_iter().map(|body| (path.to_owned(), body)).collect()
            }
            "/ojs/v1/cron/{name}" | "/ojs/v1/crons/{id}" => [
                json!({"expression": "*/2 * * * * *"}),
                json!({"cron": "@daily"}),
                json!({"timezone": "Asia/Tokyo"}),
                json!({"overlap_policy": "allow"}),
                json!({"missed_policy": "all"}),
                json!({"description": "d"}),
                json!({"enabled": true, "expression": "@daily"}),
                json!({"job_template": of_ann("other")}),
                json!({"job_template": below}),
                of_ann("other"),
            ]
            .into_iter()
            .map(|body| (at("anns"), body))
            .collect(),
            "/ojs/v1/cron/{name}/trigger" => vec![(at("anns"), Value::Null)],
            "/ojs/v1/agents/{id}/fork" | "/v1/agent/jobs/{id}/fork" => {
                vec![(at(done), json!({"at_turn": 1})), (at(asks), Value::Null)]
            }
            "/ojs/v1/agents/{id}/merge" | "/v1/agent/jobs/{id}/merge" => {
                vec![(at(done), json!({"branch_a": "a", "branch_b": "b"}))]
            }
            _ => Vec::new(),
        }
    }

    fn of_agents(&self, path: &str, at: &dyn Fn(&str) -> String) -> Vec<(String, Value)> {
        let Self { engagement, asks, asking, .. } = self;
        let user = json!({"id": "ann"});
        match path {
            "/agents/{name}" => vec![(at("desk"), json!({"input": "hi", "metadata": {"user": user}}))],
            "/agents/{name}/process" | "/agents/{name}/stream_request" => [
                json!({"input": "hi", "request_metadata": {"user_id": "ann"}}),
                json!({"input": "hi", "request_metadata": {"user": user}}),
                json!({"input": "hi", "run_id": engagement}),
                json!({"args": {"temperature": 0.5}, "run_id": engagement}),
                json!({"request_id": asks, "request_keys": {"answer": "Oslo"}}),
            ]
            .into_iter()
            // Only a chat is streamed.
            .filter(|body| body["input"].is_string() || path.ends_with("process"))
            .map(|body| (at("desk"), body))
            .collect(),
            "/engagements/{id}" => vec![
                (at(engagement) + "?reopen=true", json!({"input": "hi"})),
                (at(engagement), json!({"input": "hi"})),
                (at(asking), json!({"input": "Oslo"})),
            ],
            "/engagements/{id}/answer" => vec![(at(asking), json!({"answers": {"answer": "Oslo"}}))],
            "/engagements/{id}/fork" => {
                let prompt = json!({"prompt": "Be brief."});
                vec![
                    (at(engagement), json!({"at_turn": 1})),
                    (at(engagement), json!({"at_turn": 1, "set": prompt, "live_tools": true})),
                ]
            }
            "/engagements/import" => vec![(path.to_owned(), json!(self.export))],
            "/a2a/{agent}" => ["SendMessage", "SendStreamingMessage"]
                .into_iter()
                .flat_map(|method| [(method, "contextId", engagement), (method, "taskId", asks)])
                .map(|(method, member, id)| {
                    let key = format!("{method}-{member}");
                    let mut message =
                        json!({"messageId": key, "role": "ROLE_USER", "parts": [{"text": "Oslo"}]});
                    message[member] = json!(id);
                    let params = json!({"message": message});
                    (at("desk"), json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
                })
                .collect(),
            _ => panic!("no request of {path} causes work"),
        }
    }

    /// Sends a request; returns true if it was refused because of the user.
    async fn is_refused(&self, client: &Client<'_>, method: &Method, path: &str, body: &Value) -> bool {
        let bearer = format!("Bearer {}", client.secret);
        let version = ("A2A-Version", "1.0");
        let (kind, sent) = match body {
            Value::Null => ("application/json", String::new()),
            Value::String(document) => ("application/x-ndjson", document.clone()),
            body => ("application/json", body.to_string()),
        };
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", kind), version];
        let reply = self.server.send(method.clone(), path, &headers, sent).await;
        let names = reply.text.contains("may not act for user ann");
        let refused = if path.starts_with("/a2a/") {
            names && reply.json()["error"]["code"] == -32602
        } else {
            names && reply.status == 403 && reply.json()["error"]["details"]["user"] == "ann"
        };
        assert_eq!(refused, names || reply.status == 403, "{path} {body}: {} {}", reply.status, reply.text);
        refused
    }

    /// Returns what a refused request must leave unchanged.
    async fn record(&self) -> Value {
        let count = async |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            self.server.fleet.number(&sql).await
        };
        json!({
            "jobs": count("jobs").await,
            "engagements": count("engagements").await,
            "crons": self.server.get("/ojs/v1/cron").await.expect(200).json(),
            "asks": self.server.job(&self.asks).await["state"],
            "models": self.server.fleet.models.count(),
        })
    }
}

/// A submitter and operator that acts for no other user causes no work for ann. A principal that acts for ann does.
#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn every_operation_causes_work_only_for_whom_the_principal_acts(backend: Backend) {
    let scene = Scene::new(backend).await;
    let server = &scene.server;
    let roles = ["submitter", "operator"];
    let eve = client(server, "eve", &roles, &["ben"]).await;
    let acting = client(server, "second", &roles, &["ann"]).await;
    let writing = |method: &Method| ![Method::GET, Method::HEAD].contains(method);
    let operations = operations(server).await;
    let (mut unknown, mut wrong, mut made) = (Vec::new(), Vec::new(), 0);
    let before = scene.record().await;
    let mut chosen = Vec::new();
    for one in operations.iter().filter(|one| writing(&one.method)) {
        let operation = format!("{} {}", one.method, one.path);
        match effect(&operation) {
            None => unknown.push(operation),
            Some(Effect::Chosen) => chosen.push((operation, one.method.clone())),
            Some(Effect::Unchanged) if one.roles != ["operator"] => {
                wrong.push(format!("{operation} repeats work for the roles {:?}", one.roles));
            }
            Some(Effect::Unchanged | Effect::Activates | Effect::Nothing) => {}
        }
    }
    let document = server.get("/openapi.json").await.expect(200).json();
    let methods = document["components"]["schemas"]["A2aMethod"]["enum"].as_array().unwrap();
    assert!(methods.len() > 10, "{methods:?}");
    for method in methods.iter().filter_map(Value::as_str) {
        let sent = scene.attempts("POST /a2a/{agent}").iter().any(|(_, body)| body["method"] == method);
        match effect_of_a2a(method) {
            None => unknown.push(format!("the method {method} of A2A")),
            Some(effect) if (effect == Effect::Chosen) != sent => wrong.push(format!("{method}: {effect:?}")),
            Some(_) => {}
        }
    }
    for (operation, method) in &chosen {
        for (path, body) in scene.attempts(operation) {
            made += 1;
            if !scene.is_refused(&eve, method, &path, &body).await {
                wrong.push(format!("eve may {operation} with {body}"));
            }
        }
    }
    assert!(unknown.is_empty(), "classify these operations in this file:\n{}", unknown.join("\n"));
    assert!(wrong.is_empty(), "{} of {made} requests:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(scene.record().await, before);
    for (operation, method) in &chosen {
        for (path, body) in scene.attempts(operation) {
            if scene.is_refused(&acting, method, &path, &body).await {
                wrong.push(format!("the acting principal may not {operation} with {body}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    scene.server.end().await;
}

/// A change needs the right for the entry's user. With another request the entry moves to the changing principal.
#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_changed_cron_entry_runs_for_a_user_of_its_principal(backend: Backend) {
    let server = fleet(backend).await;
    let acting = client(&server, "acting", &["submitter"], &["ann"]).await;
    acting.post("/ojs/v1/cron", &cron("anns", &of_ann("hi"))).await.expect(201);
    let eve = client(&server, "eve", &["submitter"], &[]).await;
    let change =
        async |client: &Client<'_>, body: Value| client.send(Method::PATCH, "/ojs/v1/cron/anns", &body).await;
    let every_two_seconds = json!({"expression": "*/2 * * * * *"});
    let refused = change(&eve, every_two_seconds.clone()).await.expect(403);
    assert_eq!(refused.json()["error"]["details"]["user"], "ann");
    change(&eve, json!({"enabled": false})).await.expect(403);
    let operator = client(&server, "op", &["operator"], &[]).await;
    change(&operator, every_two_seconds.clone()).await.expect(403);
    for enabled in [false, true] {
        let changed = change(&operator, json!({"enabled": enabled})).await.expect(200).json();
        assert_eq!(changed["cron"]["enabled"], enabled);
    }
    server.pass_ms(10_000).await;
    assert_eq!(server.stored_jobs().await, 0);
    change(&acting, every_two_seconds).await.expect(200);
    server.pass_ms(4_000).await;
    let users = async || {
        let jobs = server.get("/ojs/v1/jobs").await.expect(200).json()["jobs"].as_array().unwrap().clone();
        jobs.iter().map(|job| job["meta"]["user"]["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let made = users().await.len();
    assert!(made > 0 && users().await.iter().all(|user| user == "ann"), "{:?}", users().await);
    // The request of the change names no user, so the entry is eve's from now on.
    let own = json!({"type": "agent.ask", "args": ["own"], "meta": {"agent": "desk"}});
    let moved = change(&eve, json!({"job_template": own})).await.expect(200).json();
    let meta = &moved["cron"]["job_template"]["meta"];
    assert_eq!((&meta["user"]["id"], &meta["turnstone_submitted_by"]), (&json!("eve"), &json!("acme/eve")));
    change(&acting, json!({"description": "d"})).await.expect(403);
    server
        .fleet
        .until("the jobs end", async || {
            server.fleet.number("SELECT count(*) FROM jobs WHERE state <> 'completed'").await == 0
        })
        .await;
    server.pass_ms(4_000).await;
    let all = users().await;
    assert!(all.len() > made && all.iter().filter(|user| *user == "ann").count() == made, "{all:?}");
    server
        .fleet
        .until("the jobs end", async || {
            server.fleet.number("SELECT count(*) FROM jobs WHERE state <> 'completed'").await == 0
        })
        .await;
    server.end().await;
}

/// The job runs as it was submitted, so an operator may activate it.
async fn an_activation_of_anothers_job_needs_an_operator(backend: Backend) {
    let server = fleet(backend).await;
    let acting = client(&server, "acting", &["submitter"], &["ann"]).await;
    let mut held = of_ann("hi");
    held["options"] = json!({"pending": true});
    let operator = client(&server, "op", &["operator"], &[]).await;
    for (roles, acts_for) in [(["submitter", "worker"], "ann"), (["operator", "viewer"], "ben")] {
        let id = pushed(&acting, &held).await;
        let path = format!("/ojs/v1/jobs/{id}/activate");
        for role in ["submitter", "worker"] {
            let eve = client(&server, &format!("{role}-{}", roles[0]), &[role], &["ben"]).await;
            let refused = eve.post(&path, &Value::Null).await.expect(403);
            assert_eq!(refused.json()["error"]["details"]["user"], "ann");
        }
        assert_eq!(operator.get(&format!("/ojs/v1/jobs/{id}")).await.json()["job"]["state"], "pending");
        let may = client(&server, &format!("may-{}", roles[0]), &roles, &[acts_for]).await;
        may.post(&path, &Value::Null).await.expect(200);
        server.fleet.wait_for(&id, &[JobState::Completed]).await;
    }
    // A plain job has no user.
    let plain = pushed(&acting, &json!({"type": "a.b", "args": [], "options": {"pending": true}})).await;
    let worker = client(&server, "hand", &["worker"], &[]).await;
    worker.post(&format!("/ojs/v1/jobs/{plain}/activate"), &Value::Null).await.expect(200);
    server.end().await;
}

/// Settings without a run apply to the work of all users of the tenant.
async fn settings_of_every_run_need_an_operator_or_everyone(backend: Backend) {
    let server = fleet(backend).await;
    let configure = json!({"args": {"temperature": 0.5}});
    let path = "/agents/desk/process?wait=true";
    let eve = client(&server, "eve", &["submitter"], &["ann"]).await;
    assert_eq!(eve.post(path, &configure).await.expect(403).json()["error"]["details"]["role"], "operator");
    for (name, roles, acts_for) in
        [("op", ["submitter", "operator"], "ben"), ("all", ["submitter", "viewer"], "*")]
    {
        let may = client(&server, name, &roles, &[acts_for]).await;
        assert_eq!(may.post(path, &configure).await.expect(200).json()["finish_reason"], "success");
    }
    server.end().await;
}
