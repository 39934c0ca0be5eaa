//! Agents that work for agents: modes, failures, limits, cancellation, and that nothing is lost when workers die.

mod again;
mod cancelling;
mod context;
mod failing;
mod fan_out;
mod limits;
mod modes;
mod tenants;

use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::{Fleet, Reply};

/// An OpenAgentSpec document of an agent that may ask others; its intent is `You are NAME.`
fn oas(name: &str, capabilities: &[&str]) -> String {
    let capabilities: Vec<String> = capabilities.iter().map(|name| format!("\"{name}\": {{}}")).collect();
    format!(
        "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: An agent called {name}.\nintent: You are {name}.\n\
         owner: tests\ncapabilities: {{{}}}\n",
        capabilities.join(", ")
    )
}

/// An OSSA manifest of an agent on these terms of collaboration.
fn ossa(name: &str, rest: &str) -> String {
    format!(
        "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: {name}}}\nspec:\n  role: You are {name}.\n  {rest}\n"
    )
}

/// Terms on which an OSSA agent may ask others.
fn may_ask(agents: &str, terms: &str) -> String {
    format!("collaboration: {{delegation: {{enabled: true, allowed_agents: [{agents}], {terms}}}}}")
}

async fn register(fleet: &Fleet, documents: &[String]) {
    for document in documents {
        let (status, body) = fleet.send(Method::POST, "/agents", document.clone()).await;
        assert!(status.is_success(), "{document}: {body:#}");
    }
}

/// Enqueues a job for an agent.
async fn ask(fleet: &Fleet, agent: &str, more: &Value) -> String {
    let mut job =
        json!({"type": "agent.team", "args": ["go"], "meta": {"agent": agent, "user": {"id": "u-7"}}});
    for (name, value) in more.as_object().cloned().unwrap_or_default() {
        job[name] = value;
    }
    fleet.push(&job).await
}

/// Who is asked: the agent whose role the system prompt begins with.
fn who(request: &Value) -> &str {
    let text = request["messages"][0]["content"].as_str().unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("You are ").trim_end_matches('.')
}

/// What tools answered, in the order in which the model reads it.
fn answers(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let tool = messages.iter().filter(|message| message["role"] == "tool");
    tool.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The newest thing a user said.
fn said(request: &Value) -> &str {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let user = messages.iter().rev().find(|message| message["role"] == "user");
    user.and_then(|message| message["content"].as_str()).unwrap_or_default()
}

/// Calls of agents with these inputs, that cost 12 + 7 tokens.
fn calls(asked: &[(&str, &str)]) -> Reply {
    let call = |(name, input): &(&str, &str)| ((*name).to_owned(), json!({"input": input}));
    Reply::Calls(asked.iter().map(call).collect(), (12, 7))
}

/// The events of a job with this name: their data.
async fn told(fleet: &Fleet, job: &str, name: &str) -> Vec<Value> {
    let events = fleet.get(&format!("/ojs/v1/jobs/{job}/events")).await;
    let events = events["events"].as_array().cloned().unwrap_or_default();
    events.into_iter().filter(|event| event["name"] == name).map(|event| event["data"].clone()).collect()
}

/// The engagement of a job as its caller sees it.
async fn engagement(fleet: &Fleet, job: &str) -> Value {
    let id = fleet.engagement_of(job).await;
    fleet.get(&format!("/engagements/{id}")).await
}
