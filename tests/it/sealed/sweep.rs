//! A word of its own is written into every member of every request of `/openapi.json`. An encrypted database contains only
//! the words of members that OPERATING lists as clear.
//!
//! Values come from the schemas; [`FORMS`] has those that have to have a form. Where a request with all members is refused,
//! each of its members is sent alone, beside those that the operation requires.

use super::content::dump;
use super::keys;
use futures::{StreamExt as _, stream};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::model_server::outcomes;
use turnstone_tests::{Backend, Fleet, OjsServer, Reply};

/// How each word begins; five digits follow.
const STEM: &str = "kanari";
/// So many operations at once.
const AT_ONCE: usize = 8;
/// The page that lists the members whose values stay in the clear.
const PAGE: &str = include_str!("../../../docs/OPERATING.md");

/// The values of members that have a form, by the ends of their places. `{}` becomes a word, `{id}` a new id.
const FORMS: [(&str, &str); 53] = [
    (".expression", r#""0 3 * * *""#),
    (".timezone", r#""UTC""#),
    (".overlap_policy", r#""skip""#),
    (".missed_policy", r#""once""#),
    (
        ".job_template",
        r#"{"type": "t", "args": ["{}"], "meta": {"{}": "{}"}, "options": {"metadata": {"{}": "{}"}}}"#,
    ),
    ("/jobs.options", r#"{"queue": "idle", "metadata": {"{}": "{}"}, "{}": "{}"}"#),
    (".jobs[]", r#"{"type": "t", "args": ["{}"], "meta": {"{}": "{}"}, "options": {"queue": "idle"}}"#),
    (".steps", r#"[{"type": "t", "args": ["{}"], "meta": {"{}": "{}"}}]"#),
    (".callbacks", r#"{"on_complete": {"type": "t", "args": ["{}"]}}"#),
    ("/workflows.type", r#""group""#),
    ("/workflows.id", r#""{id}""#),
    ("/jobs.id", r#""{id}""#),
    (".mode", r#""warn""#),
    (".schema", r#"{"type": "array", "title": "{}"}"#),
    ("/schemas.version", "1"),
    (".backpressure.strategy", r#""reject""#),
    ("/merge.strategy", r#""union""#),
    ("/pools/{name}.strategy", r#""weighted""#),
    ("/pools/{name}.queues", r#"{"{}": {"weight": 1, "{}": "{}"}}"#),
    ("/pools/{name}.name", "null"),
    ("/queues/{name}.name", "null"),
    (".rate_limit", r#"{"limit": 1, "period": "PT1S", "{}": "{}"}"#),
    (".max_enqueue_rate", r#"{"limit": 1, "period": "PT1S"}"#),
    (".rate", r#"{"limit": 1, "period": "PT1M"}"#),
    (".throttle", r#""PT1S""#),
    (".retention.completed", r#""P1D""#),
    (".retention.discarded", r#""P1D""#),
    (".retention.cancelled", r#""P1D""#),
    (".filter.state", r#""completed""#),
    (".states", "null"),
    (".since", r#""2030-01-01T00:00:00Z""#),
    (".until", r#""2031-01-01T00:00:00Z""#),
    (".expires_at", r#""2100-01-01T00:00:00Z""#),
    (".roles", r#"["viewer"]"#),
    (".on_exceed", r#""park""#),
    (".tokens", "1000000000"),
    (".tokens_per_day", "1000000000"),
    (".cost", "null"),
    (".cost_per_day", "null"),
    (".currency", "null"),
    (".warn_at", "50"),
    (".url", r#""http://127.0.0.1:9/{}""#),
    (".events", r#"["job.*"]"#),
    (".secret", "null"),
    (".header", r#""X-{}""#),
    (".phase", r#""infer""#),
    (".at_turn", "1"),
    (".override.retry", r#"{"max_attempts": 2}"#),
    (
        ".document",
        r#"{"kind": "openagentspec:v1/agent", "name": "swept", "description": "{}", "intent": "{}", "owner": "{}", "capabilities": { }}"#,
    ),
    (".by", r#""manager""#),
    ("/agents/{name}.input", r#""{}""#),
    ("/engagements/{id}.input", r#""{}""#),
    ("/process.input", r#""{}""#),
];

/// Members of free maps that have a meaning, and those that belong to them.
const MEANINGS: [(&str, &str); 5] = [
    (
        "/ojs/v1/jobs",
        r#"{"type": "{}", "args": ["{}"], "meta": {"user": {"id": "{}", "email": "{}@example.com"}},
           "ext_agent_model": "{}", "ext_agent_provider": "main", "ext_agent_fallback_models": ["{}"],
           "ext_agent_tools": [{"name": "{}", "description": "{}", "parameters": {"title": "{}"}}],
           "ext_agent_output_schema": {"title": "{}"}, "options": {"queue": "idle"}}"#,
    ),
    (
        "/ojs/v1/jobs",
        r#"{"type": "{}", "args": ["{}"], "meta": {"{}": "{}"}, "unknown": {"{}": "{}"},
           "options": {"queue": "idle", "tags": ["{}"], "unique": {"keys": ["type", "args"], "period": "PT1H"},
                       "rate_limit": {"key": "{}", "concurrency": 1}, "metadata": {"{}": "{}"}}}"#,
    ),
    (
        "/agents/helper",
        r#"{"input": "{}", "metadata": {"{}": "{}", "user": {"id": "{}", "email": "{}@example.com"}}}"#,
    ),
    (
        "/a2a/helper",
        r#"{"jsonrpc": "2.0", "id": "{}", "method": "SendMessage", "params": {"message":
            {"messageId": "{}", "role": "ROLE_USER", "parts": [{"text": "{}"}], "metadata": {"{}": "{}"}}}}"#,
    ),
    ("/agents/helper/process", r#"{"type": "ChatRequest", "input": "{}", "request_metadata": {"{}": "{}"}}"#),
];

/// Operations that accept none of these requests, with the reason.
const REFUSING: [(&str, &str); 8] = [
    ("POST /engagements/import", "its document is signed: replay/transfer"),
    ("POST /engagements/{id}/answer", "no question is open: sealed/content"),
    ("POST /agents/{name}/stream_request", "its answer is a stream: agent_protocol"),
    ("POST /engagements/{id}", "it takes inputs while one is processed: inputs"),
    ("POST /ojs/v1/agents/{id}/resume", "no tool of the job waits: ojs/work"),
    ("POST /v1/agent/jobs/{id}/resume", "no tool of the job waits: ojs/work"),
    ("POST /ojs/v1/agents/{id}/merge", "there are no branches of these names: replay/branches"),
    ("POST /v1/agent/jobs/{id}/merge", "there are no branches of these names: replay/branches"),
];

const AGENTS: [&str; 2] = [
    r#"
kind: "openagentspec:v1/agent"
name: helper
description: A helper.
intent: You help.
owner: tests
capabilities: {}
"#,
    r#"
kind: "openagentspec:v1/agent"
name: booker
description: An agent that books.
intent: You book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      require_review: manager
"#,
];

fn script(request: &Value) -> Reply {
    let books = request.to_string().contains("You book.") && outcomes(request) == 0;
    if books { Reply::call("book", json!({"price": 1})) } else { Reply::text("done") }
}

/// An operation with a body.
struct Operation {
    method: Method,
    path: String,
    schema: Value,
    media: String,
    /// The names of its headers and parameters of the query that are texts.
    headers: Vec<String>,
    queries: Vec<String>,
}

impl Operation {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// The words so far: each with the operation and the member that it was written into.
struct Sweep<'a> {
    server: &'a OjsServer,
    schemas: Value,
    words: Mutex<Vec<String>>,
    /// The number of accepted requests of each operation, and the latest refusal.
    accepted: Mutex<BTreeMap<String, (usize, String)>>,
}

impl Sweep<'_> {
    fn word(&self, place: &str) -> String {
        let mut words = self.words.lock().unwrap();
        words.push(place.to_owned());
        format!("{STEM}{:05}", words.len() - 1)
    }

    /// Returns a form with its words and ids.
    fn filled(&self, form: &str, place: &str) -> Value {
        let form = form.replace("{id}", &SystemIds.next());
        let (first, parts) =
            form.split_once("{}").map_or((form.as_str(), None), |(first, rest)| (first, Some(rest)));
        let rest = parts.into_iter().flat_map(|rest| rest.split("{}"));
        let text = rest.fold(first.to_owned(), |text, part| text + &self.word(place) + part);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Returns a schema without references and choices.
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        if let Some(name) = schema["$ref"].as_str() {
            return self.resolved(&self.schemas[name.rsplit('/').next().unwrap()]);
        }
        let choices = ["oneOf", "anyOf"].iter().find_map(|word| schema[*word].as_array());
        let choice = choices.and_then(|all| all.iter().find(|one| one["type"] != "null"));
        choice.map_or(schema, |one| self.resolved(one))
    }

    /// Returns a value of a schema with a word in every place that takes a text; `None` for a member that is left out.
    fn value(&self, schema: &Value, place: &str) -> Option<Value> {
        if let Some((_, form)) = FORMS.iter().find(|(end, _)| place.ends_with(end)) {
            return Some(self.filled(form, place)).filter(|value| !value.is_null());
        }
        let schema = self.resolved(schema);
        let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
        let kind = kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or_default();
        Some(match (schema["enum"].as_array(), kind) {
            (Some(words), _) => words[0].clone(),
            (_, "string") => self.word(place).into(),
            (_, "integer") => json!(schema["minimum"].as_i64().unwrap_or(1).max(1)),
            (_, "number") => json!(0.5),
            (_, "boolean") => json!(true),
            (_, "array") => {
                let item = schema.get("items").and_then(|item| self.value(item, &format!("{place}[]")));
                Value::Array(item.into_iter().collect())
            }
            _ => {
                let mut members = Map::new();
                for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                    let value = self.value(member, &format!("{place}.{name}"));
                    members.extend(value.map(|value| (name.clone(), value)));
                }
                if schema["additionalProperties"] != false {
                    let inner = json!({self.word(place): self.word(place)});
                    members.insert(self.word(place), inner);
                }
                members.into()
            }
        })
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.server.post(path, body).await.json()
    }

    /// Enqueues a plain job and fetches it; returns its id.
    async fn held(&self) -> String {
        let queue = format!("q-{}", SystemIds.next());
        let retry = json!({"max_attempts": 1, "on_exhaustion": "dead_letter"});
        let job = json!({"type": "mail.send", "args": [1], "options": {"queue": queue, "retry": retry}});
        let id = self.server.push(&job).await;
        self.post("/ojs/v1/workers/fetch", &json!({"queues": [queue], "worker_id": "w"})).await;
        id
    }

    async fn dead_letter(&self) -> String {
        let id = self.held().await;
        let report = json!({"job_id": id, "error": {"code": "e", "message": "m", "retryable": false}});
        self.post("/ojs/v1/workers/nack", &report).await;
        id
    }

    async fn review(&self) -> String {
        let job = json!({"type": "agent.book", "args": ["x"], "meta": {"agent": "booker"}});
        let id = self.server.fleet.push(&job).await;
        self.server.fleet.settled(&id).await;
        let open = self.server.fleet.get("/reviews?state=open&per_page=100").await;
        let found =
            open["items"].as_array().unwrap().iter().find(|review| review["job_id"] == json!(id)).cloned();
        found.unwrap_or_else(|| panic!("no review of {id}: {open}"))["id"].as_str().unwrap().to_owned()
    }

    /// Runs the agent `helper`; returns the job.
    async fn helped(&self) -> String {
        let id =
            self.server.fleet.push(&json!({"type": "t", "args": ["x"], "meta": {"agent": "helper"}})).await;
        self.server.fleet.settled(&id).await;
        id
    }

    /// Returns the id or the name of something that the operation changes; `None` where it makes it.
    async fn existing(&self, operation: &Operation) -> Option<String> {
        let path = operation.path.as_str();
        let begins = |with: &str| path.starts_with(with) && path.contains('{');
        if begins("/ojs/v1/jobs/{id}") {
            return Some(self.held().await);
        }
        if path.contains("dead-letter/{id}") || path.contains("admin/jobs/{id}") {
            return Some(self.dead_letter().await);
        }
        if begins("/reviews/") {
            return Some(self.review().await);
        }
        if begins("/ojs/v1/agents/") || begins("/v1/agent/jobs/") {
            let id = self.held().await;
            if path.ends_with("/resume") {
                self.post(&format!("/ojs/v1/agents/{id}/pause"), &json!({})).await;
            }
            return Some(id);
        }
        if begins("/credentials/") {
            return Some("user:swept".to_owned());
        }
        if begins("/engagements/") {
            return Some(self.server.fleet.engagement_of(&self.helped().await).await);
        }
        if begins("/keys/") {
            let name = format!("k-{}", SystemIds.next());
            let made = self.post("/keys", &json!({"name": name, "roles": ["viewer"]})).await;
            return made["id"].as_str().or_else(|| made["key"]["id"].as_str()).map(str::to_owned);
        }
        if begins("/ojs/v1/cron") {
            let template = json!({"type": "t", "args": []});
            let entry = json!({"name": "swept", "expression": "0 3 * * *", "job_template": template});
            self.post("/ojs/v1/cron", &entry).await;
            return Some("swept".to_owned());
        }
        if begins("/ojs/v1/webhooks/subscriptions/") {
            let hook = json!({"url": "http://127.0.0.1:9/x", "events": ["job.*"]});
            let made = self.post("/ojs/v1/webhooks/subscriptions", &hook).await;
            return made["subscription"]["id"].as_str().map(str::to_owned);
        }
        if begins("/budgets/") {
            let limits = json!({"tokens": 1_000_000_000, "tokens_per_day": 1_000_000_000});
            self.server.put("/budgets/fleet", &limits).await;
            return Some("fleet".to_owned());
        }
        if operation.method == Method::PATCH && path.contains("/schemas/") {
            self.server.put("/ojs/v1/admin/schemas/swept/1", &json!({"schema": {"type": "array"}})).await;
            return Some("swept".to_owned());
        }
        let is_agent = begins("/a2a/") || begins("/agents/");
        is_agent.then(|| if operation.method == Method::PUT { "swept" } else { "helper" }.to_owned())
    }

    /// Returns the path of a request: ids of what exists, and words as names of what is made.
    async fn path(&self, operation: &Operation) -> String {
        let existing = self.existing(operation).await;
        let mut made = String::new();
        for (at, part) in operation.path.split('{').enumerate() {
            let Some((name, rest)) = part.split_once('}') else {
                made += part;
                continue;
            };
            made += &match (at, name, &existing) {
                (1, _, Some(id)) => id.clone(),
                (_, "version", _) => "1".to_owned(),
                _ => self.word(&format!("{}.path", operation.name())),
            };
            made += rest;
        }
        made
    }

    /// Returns the least body that the operation accepts.
    async fn least(&self, operation: &Operation) -> Map<String, Value> {
        let path = operation.path.as_str();
        let least = match path {
            "/ojs/v1/workers/ack" => json!({"job_id": self.held().await, "result": 1}),
            "/ojs/v1/workers/nack" => json!({"job_id": self.held().await, "error": {"message": "m"}}),
            "/ojs/v1/workflows" => json!({"type": "chain", "steps": [{"type": "t", "args": []}]}),
            _ if path.contains("/bulk/") || path.contains("/dead-letter/") => {
                json!({"filter": {"type": "none"}, "confirm": true})
            }
            _ => {
                let schema = self.resolved(&operation.schema);
                let required = schema["required"].as_array().cloned().unwrap_or_default();
                let place = operation.name();
                let member = |name: &Value| {
                    let name = name.as_str()?;
                    Some((
                        name.to_owned(),
                        self.value(&schema["properties"][name], &format!("{place}.{name}"))?,
                    ))
                };
                Value::Object(required.iter().filter_map(member).collect())
            }
        };
        least.as_object().cloned().unwrap_or_default()
    }

    /// Sends a request; returns true if it was accepted.
    async fn send(&self, operation: &Operation, query: &str, headers: &[(&str, &str)], body: &Value) -> bool {
        let path = self.path(operation).await + query;
        let mut all = vec![("content-type", operation.media.as_str())];
        all.extend(headers);
        let reply = self.server.send(operation.method.clone(), &path, &all, body.to_string()).await;
        let accepted = reply.status < 400;
        let failed = if reply.status < 500 { "" } else { " with a failure" };
        let mut all = self.accepted.lock().unwrap();
        let (count, refusal) = all.entry(operation.name() + failed).or_default();
        if accepted {
            *count += 1;
        } else {
            *refusal = format!("{body}: {}", reply.text);
        }
        accepted
    }

    async fn sweep(&self, operation: Operation) {
        let place = operation.name();
        let full = self.value(&operation.schema, &place).unwrap_or_default();
        if !self.send(&operation, "", &[], &full).await {
            let schema = self.resolved(&operation.schema).clone();
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                let place = format!("{place}.{name}");
                let mut body = self.least(&operation).await;
                body.extend(self.value(member, &place).map(|value| (name.clone(), value)));
                if self.send(&operation, "", &[], &body.clone().into()).await {
                    continue;
                }
                for (part, member) in self.resolved(member)["properties"].as_object().into_iter().flatten() {
                    let Some(value) = self.value(member, &format!("{place}.{part}")) else { continue };
                    body.insert(name.clone(), json!({part: value}));
                    self.send(&operation, "", &[], &body.clone().into()).await;
                }
            }
        }
        for name in &operation.headers {
            let (least, word) = (self.least(&operation).await, self.word(&format!("{place}.{name}")));
            self.send(&operation, "", &[(name, &word)], &least.into()).await;
        }
        for name in &operation.queries {
            let (least, word) = (self.least(&operation).await, self.word(&format!("{place}.{name}")));
            self.send(&operation, &format!("?{name}={word}"), &[], &least.into()).await;
        }
    }
}

/// Returns the operations that take JSON.
fn operations(document: &Value) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, declared) in item.as_object().unwrap() {
            let content = declared["requestBody"]["content"].as_object();
            let json = content.into_iter().flatten().find(|(media, _)| media.contains("json"));
            let Some((media, body)) = json else { continue };
            let named = |place: &str| {
                let all = declared["parameters"].as_array().into_iter().flatten();
                let texts =
                    all.filter(|one| one["in"] == place && one["schema"].to_string().contains("\"string\""));
                texts.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
            };
            found.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                schema: body["schema"].clone(),
                media: media.clone(),
                headers: named("header"),
                queries: named("query"),
            });
        }
    }
    assert!(found.len() > 60, "{}", found.len());
    found
}

/// Returns the members that the page lists: the words in the first column of its table.
fn listed() -> BTreeSet<&'static str> {
    let (_, table) = PAGE.split_once("| members in the clear |").expect("the table of clear members");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect()
}

async fn contains_only_what_is_listed(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(script).sealed(keys(1, &[])).start().await;
    let server = OjsServer::over(fleet);
    for agent in AGENTS {
        server.fleet.register(agent).await;
    }
    let document = server.get("/openapi.json").await.expect(200).json();
    let sweep = Sweep {
        server: &server,
        schemas: document["components"]["schemas"].clone(),
        words: Mutex::default(),
        accepted: Mutex::default(),
    };
    // Those that change all jobs come last.
    let is_bulk =
        |operation: &Operation| operation.path.contains("/bulk/") || operation.path.ends_with("/purge");
    let (bulk, others): (Vec<_>, Vec<_>) = operations(&document).into_iter().partition(is_bulk);
    for some in [others, bulk] {
        stream::iter(some).for_each_concurrent(AT_ONCE, |operation| sweep.sweep(operation)).await;
    }
    let mut problems = Vec::new();
    for (path, form) in MEANINGS {
        // The place of a word contains the name of its member.
        let named = named_words(&sweep, &format!("POST {path}"), &serde_json::from_str(form).unwrap());
        let reply = server.post(path, &named).await;
        if reply.status >= 400 {
            problems.push(format!("{path} refuses {named}: {}", reply.text));
        }
    }
    for (operation, (count, refusal)) in sweep.accepted.lock().unwrap().iter() {
        let refuses = REFUSING.iter().any(|(name, _)| name == operation);
        if *count == 0 && !refuses {
            problems.push(format!("{operation} accepts no request, such as {refusal}"));
        }
    }
    let (words, listed) = (sweep.words.lock().unwrap().clone(), listed());
    let dump = dump(&server.fleet.place).await;
    assert!(words.len() > 500, "{}", words.len());
    let mut wrong = BTreeSet::new();
    for (at, _) in dump.match_indices(STEM) {
        let number: String = dump[at + STEM.len()..].chars().take(5).collect();
        let Some(place) = number.parse::<usize>().ok().and_then(|number| words.get(number)) else { continue };
        let members = place.split(['.', '[']).skip(1);
        if !members.into_iter().any(|member| listed.contains(member)) {
            wrong.insert(place);
        }
    }
    problems.extend(
        wrong.into_iter().map(|place| format!("{place} is in the clear, and OPERATING does not list it")),
    );
    assert!(problems.is_empty(), "on {backend:?}:\n{}", problems.join("\n"));
    // Jobs that were fetched over HTTP are still held.
    server.fleet.end_unchecked().await;
}

/// Returns a value with a word in place of each `{}`, whose place is the names of the members around it.
fn named_words(sweep: &Sweep<'_>, place: &str, form: &Value) -> Value {
    match form {
        Value::String(text) => text.replace("{}", &sweep.word(place)).into(),
        Value::Array(items) => items.iter().map(|item| named_words(sweep, place, item)).collect(),
        Value::Object(members) => {
            let named = members.iter().map(|(name, member)| match name.as_str() {
                "{}" => (sweep.word(place), named_words(sweep, place, member)),
                _ => (name.clone(), named_words(sweep, &format!("{place}.{name}"), member)),
            });
            Value::Object(named.collect())
        }
        other => other.clone(),
    }
}

/// OWASP LLM02: no text of a request is readable in an encrypted database, except for the members that OPERATING lists.
#[tokio::test]
async fn an_encrypted_database_contains_no_text_that_is_not_listed_as_clear() {
    for backend in Backend::ALL {
        contains_only_what_is_listed(backend).await;
    }
}
