//! Flows of Agent Spec, through the API: each kind of node, waits, failures, and what is refused.

mod agents;
mod mcp;
mod mcp_sse;
mod mtls;
mod nodes;
mod programs;
mod refused;
mod remote;
mod retries;
mod teams;
mod waits;

pub use remote::{Far, far_agent};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use turnstone_domain::JobState;
use turnstone_tests::Fleet;

/// A node, or another component, with the name of its id.
pub fn part(class: &str, id: &str, fields: Value) -> Value {
    let mut part = json!({"component_type": class, "id": id, "name": id});
    part.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap_or_else(Map::new));
    part
}

/// A property.
pub fn property(title: &str, kind: &str) -> Value {
    json!({"title": title, "type": kind})
}

/// A control edge; `from` is a node, or `node:branch`.
pub fn then(from: &str, to: &str) -> Value {
    let (node, branch) = from.split_once(':').map_or((from, None), |(node, branch)| (node, Some(branch)));
    let id = format!("{from}-{to}");
    let fields = json!({"from_node": {"$component_ref": node}, "from_branch": branch, "to_node": {"$component_ref": to}});
    part("ControlFlowEdge", &id, fields)
}

/// A data edge between `node.output` and `node.input`.
pub fn fills(from: &str, to: &str) -> Value {
    let parted =
        |end: &str| end.split_once('.').map(|(node, name)| (node.to_owned(), name.to_owned())).unwrap();
    let ((source, output), (destination, input)) = (parted(from), parted(to));
    let fields = json!({"source_node": {"$component_ref": source}, "source_output": output,
                        "destination_node": {"$component_ref": destination}, "destination_input": input});
    part("DataFlowEdge", &format!("{from}-{to}"), fields)
}

/// A flow of these nodes; without data edges, values go by name.
pub fn flow(id: &str, nodes: &[Value], control: &[Value], data: &[Value]) -> Value {
    let start = nodes.iter().find(|node| node["component_type"] == "StartNode").unwrap();
    let mut ids = std::collections::BTreeSet::new();
    let ends: Vec<Value> = nodes
        .iter()
        .filter(|node| node["component_type"] == "EndNode")
        .flat_map(|end| end["outputs"].as_array().cloned().unwrap_or_default())
        .filter(|output| ids.insert(output["title"].to_string()))
        .collect();
    let named = |node: &Value| json!({"$component_ref": node["id"]});
    let parts: Map<String, Value> =
        nodes.iter().map(|node| (node["id"].as_str().unwrap().to_owned(), node.clone())).collect();
    let fields = json!({
        "inputs": start["inputs"], "outputs": ends,
        "start_node": named(start), "nodes": nodes.iter().map(named).collect::<Vec<_>>(),
        "control_flow_connections": control,
        "data_flow_connections": if data.is_empty() { Value::Null } else { json!(data) },
        "$referenced_components": parts,
    });
    part("Flow", id, fields)
}

/// A property that is a text.
pub fn text(title: &str) -> Value {
    property(title, "string")
}

/// The start of a flow with these inputs.
pub fn start(id: &str, inputs: &[Value]) -> Value {
    part("StartNode", id, json!({"inputs": inputs, "outputs": inputs}))
}

/// An end of a flow with these outputs.
pub fn end(id: &str, outputs: &[Value]) -> Value {
    part("EndNode", id, json!({"inputs": outputs, "outputs": outputs}))
}

/// The fleet's model.
pub fn llm(fleet: &Fleet) -> Value {
    llm_of(fleet, "llm")
}

/// The same under another id, for a document with several.
pub fn llm_of(fleet: &Fleet, id: &str) -> Value {
    part("OpenAiCompatibleConfig", id, json!({"model_id": "m", "url": fleet.models.url}))
}

/// A node with a tool of the server.
pub fn tool(id: &str, name: &str, inputs: &[Value], outputs: &[Value]) -> Value {
    let fields = json!({"inputs": inputs, "outputs": outputs});
    let mut tool = part("ServerTool", &format!("{id}-tool"), fields);
    tool["name"] = name.into();
    part("ToolNode", id, json!({"tool": tool}))
}

/// Registers a flow under the current version; returns its name.
pub async fn register(fleet: &Fleet, mut flow: Value) -> String {
    flow["agentspec_version"] = "26.2.0".into();
    let (status, body) = fleet.post("/agents", &flow).await;
    assert!(status.is_success(), "{body:#}");
    body["name"].as_str().unwrap().to_owned()
}

/// A job for a flow.
pub fn job(name: &str, inputs: &Value) -> Value {
    json!({"type": "flow.run", "args": [inputs], "meta": {"agent": name}})
}

/// Registers a flow and runs it; returns its job once it ends or waits.
pub async fn run(fleet: &Fleet, flow: Value, inputs: Value) -> Value {
    let name = register(fleet, flow).await;
    let id = fleet.push(&job(&name, &inputs)).await;
    fleet.settled(&id).await
}

/// The same, for a flow that completes; returns the result.
pub async fn result(fleet: &Fleet, flow: Value, inputs: Value) -> Value {
    let job = run(fleet, flow, inputs).await;
    assert_eq!(job["state"], JobState::Completed.as_str(), "{job:#}");
    job["result"].clone()
}

/// Returns what the engagement of a job waits for.
pub async fn awaiting(fleet: &Fleet, job: &Value) -> Value {
    let engagement = fleet.engagement_of(job["id"].as_str().unwrap()).await;
    fleet.get(&format!("/engagements/{engagement}")).await["awaiting"].clone()
}

/// The conversation of a job, as pairs of role and text.
pub async fn said(fleet: &Fleet, job: &Value) -> Vec<Value> {
    let engagement = fleet.engagement_of(job["id"].as_str().unwrap()).await;
    let said = fleet.get(&format!("/engagements/{engagement}/messages")).await;
    said["messages"].as_array().unwrap().iter().map(|one| json!([one["role"], one["content"]])).collect()
}

/// Sends an answer; returns the reply.
pub async fn answer_with(fleet: &Fleet, job: &Value, body: &Value) -> (StatusCode, Value) {
    let engagement = fleet.engagement_of(job["id"].as_str().unwrap()).await;
    fleet.post(&format!("/engagements/{engagement}/answer"), body).await
}

/// Answers what the engagement waits with, and waits until its job ends or waits again.
pub async fn answer(fleet: &Fleet, job: &Value, answers: Value) -> Value {
    let before = awaiting(fleet, job).await["call_id"].clone();
    let (status, body) = answer_with(fleet, job, &json!({"answers": answers})).await;
    assert_eq!(status, StatusCode::OK, "{body:#}");
    let id = job["id"].as_str().unwrap();
    let mut now = Value::Null;
    fleet
        .until("the job ends or waits again", async || {
            now = fleet.job(id).await;
            match now["state"].as_str() {
                Some("completed" | "discarded") => true,
                Some("pending") => awaiting(fleet, job).await["call_id"] != before,
                _ => false,
            }
        })
        .await;
    now
}
