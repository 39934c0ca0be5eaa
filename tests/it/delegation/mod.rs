//! Delegation: modes, failures, limits, cancellation, and killed workers.

mod again;
mod cancelling;
mod context;
mod failing;
mod fan_out;
mod limits;
mod modes;
mod tenants;

use serde_json::{Value, json};
use turnstone_tests::model_server::who;
use turnstone_tests::{Fleet, Reply, documents};

/// An OpenAgentSpec document of an agent that may delegate; its intent is `You are NAME.`
fn oas(name: &str, capabilities: &[&str]) -> String {
    let capabilities: Vec<String> = capabilities.iter().map(|name| format!("\"{name}\": {{}}")).collect();
    documents::oas(name, &format!("capabilities: {{{}}}", capabilities.join(", ")))
}

/// An OSSA manifest of an agent with these terms of collaboration.
fn ossa(name: &str, rest: &str) -> String {
    documents::ossa(name, &format!("  {rest}"))
}

/// The terms under which an OSSA agent may delegate.
fn may_ask(agents: &str, terms: &str) -> String {
    format!("collaboration: {{delegation: {{enabled: true, allowed_agents: [{agents}], {terms}}}}}")
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

/// Returns the outcomes of the tool calls, in the order of the request.
fn answers(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let tool = messages.iter().filter(|message| message["role"] == "tool");
    tool.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Calls of agents with these inputs, which cost 12 + 7 tokens.
fn calls(requested: &[(&str, &str)]) -> Reply {
    let call = |(name, input): &(&str, &str)| ((*name).to_owned(), json!({"input": input}));
    Reply::Calls(requested.iter().map(call).collect(), (12, 7))
}

/// Returns the engagement of a job.
async fn engagement(fleet: &Fleet, job: &str) -> Value {
    let id = fleet.engagement_of(job).await;
    fleet.get(&format!("/engagements/{id}")).await
}
