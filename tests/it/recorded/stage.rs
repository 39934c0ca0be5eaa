//! The stage of a story: a fleet, and the answers of its API so far.

use super::collect;
use super::shorten::shorten;
use reqwest::{Client, Method, redirect};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_store::EncryptionKeys;
pub use turnstone_tests::model_server::who;
use turnstone_tests::{Backend, Fleet, FleetBuilder, Reply, wait};

/// The terminal states of a job.
const ENDED: [JobState; 3] = [JobState::Completed, JobState::Discarded, JobState::Cancelled];

/// The store of a fleet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ground {
    Sqlite,
    /// SQLite with encryption at rest.
    Sealed,
    Postgres,
}

impl Ground {
    /// Returns a builder of a fleet on this store. Its model answers with `script`.
    pub fn fleet(self, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> FleetBuilder {
        let builder = Fleet::builder().model(script);
        match self {
            Self::Sqlite => builder.on(Backend::Sqlite),
            Self::Postgres => builder.on(Backend::Postgres),
            Self::Sealed => {
                let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
                builder.on(Backend::Sqlite).sealed(EncryptionKeys::new(key, &[] as &[&str]).unwrap())
            }
        }
    }

    /// Returns the stage of such a fleet with one worker.
    pub async fn stage(self, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Stage {
        Stage::of(self.fleet(script)).await
    }
}

/// A fleet, and what its API answered so far.
pub struct Stage {
    pub fleet: Fleet,
    client: Client,
    steps: Vec<Value>,
}

impl Stage {
    /// Starts a fleet.
    pub async fn of(builder: FleetBuilder) -> Self {
        let fleet = builder.start().await;
        // Without root certificates, which take longer to parse than many a story.
        let client = turnstone_tests::http::client_builder()
            .redirect(redirect::Policy::none())
            .timeout(wait::PATIENCE);
        Self { fleet, client: client.build().unwrap(), steps: Vec::new() }
    }

    /// Sends a request and returns the status and the body.
    pub async fn unrecorded(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.fleet.url));
        let request = request.header("content-type", "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = request.body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Sends a request, records its answer, and returns the body.
    pub async fn send(&mut self, method: Method, path: &str, body: impl ToString) -> Value {
        self.send_with(method, path, &[], body).await
    }

    /// Sends a request with headers, records its answer, and returns the body.
    pub async fn send_with(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl ToString,
    ) -> Value {
        let request = format!("{method} {path}");
        let (status, mut answer) = self.unrecorded(method, path, headers, body.to_string()).await;
        collect::timeless(&mut answer);
        self.steps.push(json!({"request": request, "status": status, "answer": answer}));
        answer
    }

    /// Posts a value, records the answer and returns its body.
    pub async fn post(&mut self, path: &str, body: &Value) -> Value {
        self.send(Method::POST, path, body).await
    }

    /// Reads a page and records it.
    pub async fn get(&mut self, path: &str) -> Value {
        self.send(Method::GET, path, "").await
    }

    /// Registers agents.
    pub async fn register<T: AsRef<str>>(&self, documents: &[T]) {
        for document in documents {
            let (status, answer) =
                self.unrecorded(Method::POST, "/agents", &[], document.as_ref().to_owned()).await;
            assert!((200..300).contains(&status), "{answer:#}");
        }
    }

    /// Enqueues a job and returns its id.
    pub async fn push(&mut self, job: &Value) -> String {
        let answer = self.post("/ojs/v1/jobs", job).await;
        answer["job"]["id"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned()
    }

    /// Enqueues a job, waits for its end and returns its id.
    pub async fn run(&mut self, job: &Value) -> String {
        let id = self.push(job).await;
        self.ended(&id).await;
        id
    }

    /// Waits until the job has ended.
    pub async fn ended(&self, id: &str) {
        self.fleet.wait_for(id, &ENDED).await;
    }

    /// Waits until the job is parked.
    pub async fn parked(&self, id: &str) {
        self.fleet.wait_for(id, &[JobState::Pending]).await;
    }

    /// Waits until the job waits for its next attempt.
    pub async fn retryable(&self, id: &str) {
        self.fleet.wait_for(id, &[JobState::Retryable]).await;
    }

    /// Moves the clock, and runs the scheduler's due duties.
    pub async fn pass_ms(&mut self, ms: i64) {
        self.fleet.clock.advance_ms(ms);
        self.fleet.tick().await;
        self.steps.push(json!({"passed_ms": ms}));
    }

    /// Waits for the one open review and returns it.
    pub async fn open_review(&self) -> Value {
        wait::found("one review is open", async || {
            let open = self.fleet.get("/reviews?state=open").await["items"].clone();
            match open.as_array().map(Vec::as_slice) {
                Some([review]) => Some(review.clone()),
                _ => None,
            }
        })
        .await
    }

    /// Answers the one open review.
    pub async fn answer_review(&mut self, verb: &str, by: &str) {
        let review = self.open_review().await;
        let path = format!("/reviews/{}/{verb}", review["id"].as_str().unwrap());
        self.post(&path, &json!({"by": by, "reason": "because"})).await;
    }

    /// Collects every answer of the API, and ends the fleet.
    pub async fn recorded(self) -> Value {
        let mut all = Box::pin(collect::everything(&self)).await;
        all["steps"] = json!(self.steps);
        shorten(&mut all);
        self.fleet.end().await;
        all
    }
}

/// Returns a job without an agent's document, which may use all tools.
pub fn job(input: &str) -> Value {
    json!({"type": "agent.trip", "args": [input], "ext_agent_model": "m", "ext_agent_token_budget": 50_000,
           "ext_agent_tools": [{"name": "search"}, {"name": "book"}], "options": retry(1)})
}

/// Returns a job for a registered agent on behalf of a user.
pub fn job_of(agent: &str) -> Value {
    json!({"type": "agent.team", "args": ["go"], "ext_agent_model": "m", "options": retry(1),
           "meta": {"agent": agent, "user": {"id": "u-7", "email": "u@example.org"}}})
}

/// Returns options with so many attempts, at fixed times.
pub fn retry(attempts: u32) -> Value {
    json!({"retry": {"max_attempts": attempts, "initial_interval": "PT10S", "jitter": false}})
}

/// Returns a value with the members of another one added.
pub fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}
