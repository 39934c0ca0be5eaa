//! Remote agents over the Agent Protocol and A2A, with the same tests for each: between two real `turnstone`
//! programs, or with a hostile server.

mod cancelling;
mod delegating;
mod gateway;
mod hostile;
mod lossy;
mod questions;

use crate::program::Program;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;
use turnstone_tests::documents::oas;
use turnstone_tests::model_server::{tool_outcome, who};
use turnstone_tests::wait::until;

/// The protocols, and the path of the agent `scout` on a Turnstone server.
const PROTOCOLS: [(&str, &str); 2] = [("agent-protocol", "agents"), ("a2a", "a2a")];

/// The key of this server on the server of the scout.
const KEY: &str = "key-that-the-far-server-gave-to-this-one";

/// A running `turnstone dev`.
struct Site {
    folder: TempDir,
    url: String,
    program: Option<Program>,
    http: Client,
}

impl Site {
    /// Starts a server with these models, sections of the configuration and agents.
    async fn start(models: &str, settings: &str, agents: &[(&str, &str)]) -> Self {
        turnstone_tests::fleet::install_crypto();
        let folder = turnstone_tests::scratch::folder();
        std::fs::create_dir(folder.path().join("agents")).unwrap();
        for (name, rest) in agents {
            write(folder.path(), &format!("agents/{name}.yaml"), &oas(name, rest));
        }
        write(folder.path(), "own.key", KEY);
        let settings = format!(
            "[providers.test]\nkind = 'openai'\nbase_url = '{models}'\n[models]\ndefault_provider = 'test'\n\
             default_model = 'm'\nmax_tokens = 100\n[agents]\ndir = 'agents'\n{settings}"
        );
        write(folder.path(), "turnstone.toml", &settings);
        let http = turnstone_tests::http::client();
        let mut site = Self { folder, url: String::new(), program: None, http };
        site.revive().await;
        site
    }

    /// Starts the program, for the first time or again over the same data.
    async fn revive(&mut self) {
        let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
        let mut program = Program::start(self.folder.path(), &arguments, &[("FAR_KEY", KEY)]);
        self.url = program.first_line("turnstone listens on ").await;
        self.program = Some(program);
    }

    /// `kill -9`.
    async fn kill(&mut self) {
        if let Some(mut program) = self.program.take() {
            program.signal("KILL");
            assert_eq!(program.ended().await, None);
        }
    }

    async fn stop(mut self) {
        if let Some(program) = self.program.take() {
            program.stop().await;
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Enqueues a job for an agent and returns its id.
    async fn push(&self, agent: &str) -> String {
        let job = json!({"type": "a.b", "args": ["go"], "ext_agent_token_budget": 4000,
                         "meta": {"agent": agent, "user": {"id": "u-7"}}});
        let (status, body) = self.send(Method::POST, "/ojs/v1/jobs", &job).await;
        assert_eq!(status, 201, "{body}");
        let id = if body["job"].is_object() { &body["job"]["id"] } else { &body["id"] };
        id.as_str().unwrap().to_owned()
    }

    async fn engagement(&self, job: &str) -> Value {
        let job = self.get(&format!("/ojs/v1/jobs/{job}")).await;
        let job = if job["job"].is_object() { &job["job"] } else { &job };
        self.get(&format!("/engagements/{}", job["ext_agent_engagement_id"].as_str().unwrap())).await
    }

    /// Returns the engagement of a job, once it is in one of these states.
    async fn in_state(&self, job: &str, states: &[&str]) -> Value {
        until(&format!("it is {states:?}"), async || {
            let state = self.engagement(job).await;
            states.iter().any(|wanted| state["status"] == *wanted)
        })
        .await;
        self.engagement(job).await
    }

    /// Returns the engagements of an agent.
    async fn engagements(&self, agent: &str) -> Vec<Value> {
        let listed = self.get(&format!("/engagements?agent={agent}")).await;
        let mut found = Vec::new();
        for one in listed["items"].as_array().or(listed["engagements"].as_array()).unwrap() {
            let id = one["engagement_id"].as_str().or(one["id"].as_str()).unwrap();
            found.push(self.get(&format!("/engagements/{id}")).await);
        }
        found
    }
}

fn write(folder: &Path, file: &str, text: &str) {
    std::fs::write(folder.join(file), text).unwrap();
}

/// Returns the section that configures the scout of another server.
fn remote(protocol: &str, place: &str, far: &str, more: &str) -> String {
    format!(
        "[remote]\nallow_private = true\n[remote.agents.scout]\nprotocol = '{protocol}'\nurl = '{far}/{place}/scout'\n{more}\n"
    )
}

/// The same, when the other server knows this one as a peer.
fn as_peer() -> String {
    "peer = true\nheaders = { Authorization = { secret = 'env:FAR_KEY', prefix = 'Bearer ' } }".to_owned()
}

/// The peers of the scout's server.
const PEERS: &str = "[remote.peers.near]\nkey = 'env:FAR_KEY'\nusers = ['*']\n";
