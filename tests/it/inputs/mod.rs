//! The inputs of a turn and of its model calls: ids and context (INIT), messages and filters (NORM), prompt and
//! memory (INFER). Each test names the row of the checklist that it shows.

mod filters;
mod identity;
mod memory;
mod messages;
mod prompts;

use serde_json::{Value, json};
use turnstone_tests::{Fleet, Reply};

/// Registers an OSSA manifest with these lines below `spec`, each indented by two spaces.
pub async fn register(fleet: &Fleet, spec: &str) {
    let manifest = format!(
        "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: desk}}\nspec:\n  role: You are the desk.\n{spec}"
    );
    fleet.register(manifest).await;
}

/// Returns a job for that agent.
pub fn job(args: &Value) -> Value {
    json!({"type": "agent.desk", "args": args, "ext_agent_model": "m", "meta": {"agent": "desk"},
           "options": {"retry": {"max_attempts": 3, "jitter": false}}})
}

/// Starts a fleet with this agent and this model.
pub async fn desk(spec: &str, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Fleet {
    let fleet = Fleet::builder().model(script).start().await;
    register(&fleet, spec).await;
    fleet
}

/// Returns the bodies of the checkpoints of one phase, oldest first.
pub async fn bodies(fleet: &Fleet, id: &str, phase: &str) -> Vec<Value> {
    let engagement = fleet.engagement_of(id).await;
    let mut found = Vec::new();
    for page in 1.. {
        let path = format!("/engagements/{engagement}/checkpoints?bodies=true&per_page=100&page={page}");
        let answer = fleet.get(&path).await;
        let rows = answer["checkpoints"].as_array().cloned().unwrap();
        found.extend(rows.into_iter().filter(|row| row["phase"] == phase).map(|row| row["body"].clone()));
        if answer["pagination"]["has_more"] == false {
            break;
        }
    }
    found
}

/// Returns the conversation from the API.
pub async fn conversation(fleet: &Fleet, id: &str) -> Vec<Value> {
    let engagement = fleet.engagement_of(id).await;
    fleet.get(&format!("/engagements/{engagement}/messages")).await["messages"].as_array().cloned().unwrap()
}
