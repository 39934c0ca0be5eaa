//! A server and a worker with something of everything, and the checks that hold whatever is damaged.

use super::schema;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, OjsServer, Receiver, Reply, model_server};

/// An agent whose calls each wait for a review. Its name comes after those of all others.
const BOOKER: &str = r#"
kind: "openagentspec:v1/agent"
name: zz-booker
description: An agent that books.
intent: You book what you are asked to book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      assertion: "true"
      require_review: manager
"#;

fn script(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 if request["tools"].is_array() => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("done"),
    }
}

/// The server, with what was set up in it.
pub struct Stage {
    pub server: OjsServer,
    /// Receives the events of a webhook that is never damaged.
    pub receiver: Receiver,
    lists: Vec<String>,
}

impl Stage {
    /// Starts a server and a worker, and makes rows in every table.
    pub async fn start(backend: Backend) -> Self {
        let fleet = Fleet::builder().on(backend).workers(1).model(script).start().await;
        fleet.register(BOOKER).await;
        let server = OjsServer::over(fleet);
        let receiver = Receiver::start().await;
        let hook = json!({"url": receiver.url, "events": ["job.completed"], "filter": {"queues": ["whole"]}});
        server.post("/ojs/v1/webhooks/subscriptions", &hook).await.expect(201);
        populate(&server).await;
        let lists = lists(&server).await;
        let stage = Self { server, receiver, lists };
        schema::fill_empty_tables(&stage.server.fleet.place).await;
        stage
    }

    /// Enqueues jobs whose rows are the newest: a plain one, a workflow, and an agent's that waits for a review.
    pub async fn victims(&self) {
        let server = &self.server;
        let step = |n: i64| json!({"type": "mail.send", "args": [n], "options": {"queue": "q"}});
        let chain = json!({"type": "chain", "name": "zz", "steps": [step(1), step(2)]});
        server.post("/ojs/v1/workflows", &chain).await.expect(201);
        let booking = json!({"type": "agent.book", "args": ["book"], "meta": {"agent": "zz-booker"}});
        let booking = server.push(&booking).await;
        let parked = [JobState::Pending, JobState::Discarded, JobState::Completed];
        server.fleet.wait_for(&booking, &parked).await;
        server.push(&step(3)).await;
    }

    /// Approves every open review that can be; one that is damaged may refuse.
    pub async fn approve(&self) {
        let open = self.server.get("/reviews?state=open").await.expect(200).json();
        for review in open["items"].as_array().unwrap() {
            let path = format!("/reviews/{}/approve", review["id"].as_str().unwrap());
            self.server.post(&path, &json!({"by": "manager", "reason": "fine"})).await;
        }
    }

    /// Asserts that new jobs complete, a plain one and an agent's, and that the feed and the webhook have them.
    pub async fn neighbours_complete(&self, beside: &str) {
        let server = &self.server;
        let plain =
            server.push(&json!({"type": "mail.send", "args": [9], "options": {"queue": "whole"}})).await;
        let agent_job = json!({"type": "agent.ask", "args": ["hi"], "ext_agent_model": "m", "options": {"queue": "whole"}});
        let agent_job = server.push(&agent_job).await;
        let fetch = json!({"queues": ["whole", "q"], "count": 50, "worker_id": "w"});
        let mut done = false;
        // A claim in one statement leaves what it cannot read to the next one.
        for _ in 0..3 {
            let fetched = server.post("/ojs/v1/workers/fetch", &fetch).await.expect(200).json();
            for job in fetched["jobs"].as_array().unwrap() {
                let ack = json!({"job_id": job["id"], "result": 1});
                let acknowledged = server.post("/ojs/v1/workers/ack", &ack).await;
                done |= job["id"] == plain && acknowledged.status == 200;
            }
        }
        assert!(done, "a plain job does not complete beside {beside}");
        let ended = server.fleet.wait_for(&agent_job, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(ended["state"], "completed", "beside {beside}: {ended:#}");
        let received = |id: &str| self.receiver.received().iter().any(|one| one.body.contains(id));
        server
            .fleet
            .until(&format!("the webhook receives the jobs beside {beside}"), async || {
                server.pass_ms(1_000).await;
                received(&plain) && received(&agent_job)
            })
            .await;
    }

    /// Asserts that every list answers.
    pub async fn lists_answer(&self, beside: &str) {
        let answers = self.lists.iter().map(async |path| (path, self.server.get(path).await));
        for (path, reply) in futures::future::join_all(answers).await {
            assert_eq!(reply.status, 200, "GET {path} beside {beside}: {}", reply.text);
        }
    }
}

/// Returns the path of every GET operation without parameters in its path that ends, from the server's own document.
/// Parameters that are required have their examples.
async fn lists(server: &OjsServer) -> Vec<String> {
    let document = server.get("/openapi.json").await.expect(200).json();
    let ends = |get: &Value| !get["responses"]["200"]["content"]["text/event-stream"].is_object();
    let paths = document["paths"].as_object().unwrap().iter();
    let lists = paths.filter(|(path, of)| !path.contains('{') && of["get"].is_object() && ends(&of["get"]));
    let required = |get: &Value| {
        let parameters = get["parameters"].as_array().into_iter().flatten();
        let query = parameters.filter(|one| one["in"] == "query" && one["required"] == true);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        query
            .map(|one| format!("{}={}", text(&one["name"]), text(&one["example"])))
            .collect::<Vec<_>>()
            .join("&")
    };
    let lists: Vec<String> = lists
        .map(|(path, of)| match required(&of["get"]) {
            query if query.is_empty() => path.clone(),
            query => format!("{path}?{query}"),
        })
        .collect();
    assert!(lists.len() > 25, "{lists:?}");
    lists
}

/// Makes rows of everything that operators set; their names come after those of all others.
async fn populate(server: &OjsServer) {
    let limit = json!({"concurrency": 3, "rate_limit": {"max_per_second": 9}});
    server.put("/ojs/v1/admin/queues/zz/config", &limit).await.expect(200);
    let pool = json!({"name": "zz", "strategy": "weighted_fair", "queues": {"zz": {"weight": 3}}});
    server.put("/ojs/v1/admin/pools/zz", &pool).await.expect(201);
    let template = json!({"type": "report.build", "args": [1], "options": {"queue": "reports"}});
    let cron = json!({"name": "zz", "expression": "0 0 1 1 *", "job_template": template});
    server.post("/ojs/v1/cron", &cron).await.expect(201);
    server.post("/ojs/v1/cron/zz/trigger", &json!({})).await.expect(201);
    let schema = json!({"schema": {"type": "array"}, "mode": "warn"});
    server.put("/ojs/v1/admin/schemas/zz/1", &schema).await.expect(201);
    server.put("/ojs/v1/admin/tenants/zz/limits", &json!({"max_scheduled": 9})).await.expect(200);
    server.put("/budgets/tenant%2Fzz", &json!({"tokens": 5_000_000})).await;
    server.put("/ojs/v1/rate-limits/zz", &json!({"concurrency": 3})).await.expect(200);
    let hook = json!({"url": "http://127.0.0.1:9/none", "events": ["cron.*"]});
    server.post("/ojs/v1/webhooks/subscriptions", &hook).await.expect(201);
    server.post("/ojs/v1/workers/heartbeat", &json!({"worker_id": "zz", "queues": ["q"]})).await;
    let key = [("idempotency-key", "zz"), ("content-type", "application/json")];
    let job = json!({"type": "mail.send", "args": [0], "options": {"queue": "q"}}).to_string();
    server.send(Method::POST, "/ojs/v1/jobs", &key, job).await.expect(201);
    // A failed job, its progress and its saved state.
    let fetch = json!({"queues": ["q"], "worker_id": "w"});
    let job = server.post("/ojs/v1/workers/fetch", &fetch).await.expect(200).json()["jobs"][0]["id"].clone();
    server
        .post("/ojs/v1/workers/progress", &json!({"job_id": job, "progress": 0.5, "message": "half"}))
        .await;
    let failure =
        json!({"job_id": job, "error": {"code": "broken", "message": "it broke", "retryable": true}});
    server.post("/ojs/v1/workers/nack", &failure).await.expect(200);
}
