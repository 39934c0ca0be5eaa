//! Telemetry of a running Turnstone, received by a real OTLP collector from real processes.

mod lines;
mod links;
mod logs;
mod metrics;
mod requests;
mod spans;

use crate::program::Program;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use turnstone_tests::otlp::{Collector, Manner, Span};
use turnstone_tests::{ModelServer, Reply, ToolServer, fleet, model_server, wait};

/// The trace of a submitter, and its span.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
/// The model provider's key, which must not be exposed.
const KEY: &str = "sk-telemetry-0123456789";
/// Words of the user, the tool and the model, which are exposed only when they are captured.
const ASKED: &str = "whisper-of-the-user";
const SEARCHED: &str = "words-that-are-searched";
const ANSWERED: &str = "answer-of-the-model";

/// `turnstone dev` with an agent `desk`, a model and a tool of the test, and a collector.
struct Site {
    program: Program,
    url: String,
    http: reqwest::Client,
    collector: Collector,
    models: ModelServer,
    tools: ToolServer,
    _folder: TempDir,
}

/// Searches, writes its state, and answers.
fn works(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": SEARCHED})),
        1 => Reply::call("state_set", json!({"key": "k", "value": 1})),
        _ => Reply::text(ANSWERED),
    }
}

impl Site {
    /// Starts a site whose collector accepts everything.
    async fn start(env: &[(&str, &str)], script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(Manner::Takes, env, script).await
    }

    async fn with(
        manner: Manner,
        env: &[(&str, &str)],
        script: impl Fn(&Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        fleet::install_crypto();
        let (collector, models, tools) =
            (Collector::start(manner).await, ModelServer::start(script).await, ToolServer::start().await);
        let folder = turnstone_tests::scratch::folder();
        let settings = format!(
            "[providers.custom]\nkind = 'openai'\nbase_url = '{}'\napi_key = 'env:SITE_KEY'\n[models]\n\
             default_model = 'm'\n[tools.search]\ndescription = 'Searches.'\nmethod = 'POST'\nurl = '{}/search'\n\
             allow_private = true\nidempotent = true\ninput_schema = {{ type = 'object' }}\n\
             [mcp.parrot]\ncommand = ['python3', '{}/it/tools/mcp_server.py', 'well']\nconnect_timeout_ms = 60_000\n",
            models.url,
            tools.url,
            env!("CARGO_MANIFEST_DIR")
        );
        std::fs::write(folder.path().join("turnstone.toml"), settings).expect("a file");
        let own = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
            ("OTEL_BLRP_SCHEDULE_DELAY", "50"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "200"),
            ("NO_PROXY", "127.0.0.1"),
            ("SITE_KEY", KEY),
        ];
        let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
        let mut program = Program::start(folder.path(), &arguments, &[&own, env].concat());
        let url = program.first_line("turnstone listens on ").await;
        let http = turnstone_tests::http::client();
        let site = Self { program, url, http, collector, models, tools, _folder: folder };
        site.register(&document("desk", "1.4.0", "state: {mode: session, ttl_seconds: 60}")).await;
        site
    }

    async fn register(&self, manifest: &str) {
        turnstone_tests::http::register(&self.url, manifest).await;
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = if body.is_null() { request } else { request.json(body) };
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a text");
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// Enqueues a job for an agent and waits for its end.
    async fn run(&self, agent: &str, meta: Value) -> Value {
        let mut job = json!({"type": "agent.desk", "args": [ASKED], "meta": {"agent": agent},
                             "options": {"retry": {"max_attempts": 1}}});
        for (name, value) in meta.as_object().cloned().unwrap_or_default() {
            job["meta"][name] = value;
        }
        let pushed = self.send(Method::POST, "/ojs/v1/jobs", &job).await;
        let id = pushed["job"]["id"].as_str().expect("an id").to_owned();
        self.followed(&id).await;
        self.send(Method::GET, &format!("/ojs/v1/jobs/{id}"), &Value::Null).await["job"].clone()
    }

    /// Waits for the end of a job.
    async fn followed(&self, id: &str) {
        let url = format!("{}/ojs/v1/jobs/{id}/events", self.url);
        let ends = ["job.completed", "job.discarded"];
        let reading = turnstone_tests::sse::read(&url, None, |seen| {
            seen.last().is_some_and(|event| ends.contains(&event.event.as_str()))
        });
        wait::output("the job ends", reading).await;
    }

    /// Waits for the spans of so many claims, and returns every span but those of requests to the API.
    async fn spans(&self, claims: usize) -> Vec<Span> {
        let whole = |collector: &Collector| named(&collector.spans(), "ossa.agent.invoke").len() >= claims;
        self.collector.until("the spans of every claim", whole).await;
        let of_request =
            |span: &Span| span.name != "http.request" && span.attributes.contains_key("http.request.method");
        self.collector.spans().into_iter().filter(|span| !of_request(span)).collect()
    }

    /// Stops the program, which sends the rest, and returns the collector.
    async fn end(self) -> Collector {
        self.program.stop().await;
        self.collector
    }
}

/// Returns a manifest of an agent that may search.
fn document(name: &str, version: &str, more: &str) -> String {
    format!(
        "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: {name}, version: {version}}}\nspec:\n  role: You are \
         {name}.\n  llm: {{provider: custom, model: m, temperature: 0.5}}\n  tools: [{{type: http, name: search}}]\n  {more}\n"
    )
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Returns the parent of a span.
fn above<'a>(spans: &'a [Span], span: &Span) -> &'a Span {
    spans.iter().find(|other| other.id == span.parent).unwrap_or_else(|| panic!("no parent: {span:#?}"))
}
