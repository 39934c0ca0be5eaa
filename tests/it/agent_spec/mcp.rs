//! Agents with the tools of MCP servers that their documents name.

use super::{awaiting, job, llm, part, property, register, said};
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::Clock;
use turnstone_tests::{Fleet, Reply, model_server};
use turnstone_worker::tool::ToolPolicy;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/tools/mcp_server.py");

/// An agent with a toolbox of the test server.
fn parrot(fleet: &Fleet, toolbox: Value) -> Value {
    let transport = part("StdioTransport", "parrot", json!({"command": "parrot"}));
    let mut fields = json!({"client_transport": transport});
    fields.as_object_mut().unwrap().extend(toolbox.as_object().cloned().unwrap());
    let toolboxes = [part("MCPToolBox", "box", fields)];
    part(
        "Agent",
        "desk",
        json!({"llm_config": llm(fleet), "system_prompt": "You echo.", "toolboxes": toolboxes}),
    )
}

/// The test server as a program of documents.
fn programs() -> Value {
    json!({"parrot": {"program": super::programs::python(), "args": [SERVER, "well"]}})
}

/// A fleet whose worker starts these programs for documents.
async fn fleet(commands: &Value) -> Fleet {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("echo", json!({"text": "polly"})),
        _ => Reply::text("done"),
    };
    let mut fleet = Fleet::builder().workers(0).model(script).start().await;
    let policy = ToolPolicy {
        allowed_hosts: vec!["127.0.0.1".to_owned()],
        allowed_commands: serde_json::from_value(commands.clone()).unwrap(),
        allow_private: true,
        ..ToolPolicy::default()
    };
    fleet.add_worker_with(4, |mut deps| {
        let clock: Arc<dyn Clock> = Arc::clone(&deps.clock);
        deps.toolbox = deps.toolbox.with_policy(policy, &clock).expect("a policy");
        deps
    });
    fleet
}

async fn run(fleet: &Fleet, agent: Value) -> Value {
    let name = register(fleet, agent).await;
    fleet.settled(&fleet.push(&job(&name, &json!({}))).await).await
}

fn filter(name: &str, more: Value) -> Value {
    let mut fields =
        json!({"description": "Says it.", "inputs": [property("text", "string")], "outputs": []});
    fields.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    part("MCPToolSpec", name, fields)
}

/// AGS-33, AGS-34: a filter names tools, describes them anew, and asks before a call.
#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn a_toolbox_offers_what_passes_its_filter() {
    let fleet = fleet(&programs()).await;
    let tools = json!(["add", filter("echo", json!({"requires_confirmation": true}))]);
    let job = run(&fleet, parrot(&fleet, json!({"tool_filter": tools}))).await;
    let review = awaiting(&fleet, &job).await["review_id"].as_str().expect("a review").to_owned();
    let request = &fleet.models.calls()[0].request;
    let offered: Vec<&str> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert_eq!(offered, ["add", "echo"]);
    assert_eq!(request["tools"][1]["function"]["description"], "Says it.");
    let (status, body) = fleet.post(&format!("/reviews/{review}/approve"), &json!({"by": "operator"})).await;
    assert!(status.is_success(), "{body:#}");
    fleet.until("the agent answers", async || awaiting(&fleet, &job).await["prompt"] == "done").await;
    assert!(json!(said(&fleet, &job).await).to_string().contains("polly"));
    fleet.end().await;
}

/// AGS-34: a tool that the server lacks, or that has other arguments, fails the run; an empty filter offers none.
#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn a_filter_that_does_not_fit_its_server_fails_the_run() {
    let other = filter("echo", json!({"inputs": [property("words", "string")]}));
    for (tools, why) in
        [(json!(["sing"]), "no tool `sing`"), (json!([other]), "has no argument `words`"), (json!([]), "")]
    {
        let fleet = fleet(&programs()).await;
        let job = run(&fleet, parrot(&fleet, json!({"tool_filter": tools}))).await;
        match why {
            "" => assert!(fleet.models.calls()[0].request.get("tools").is_none(), "{job:#}"),
            why => assert!(job["error"]["message"].to_string().contains(why), "{job:#}"),
        }
        fleet.end().await;
    }
}

/// AGS-36: without the operator's permission no program is started, and the error says what to add.
#[tokio::test]
async fn a_program_that_is_not_allowed_is_not_started() {
    let fleet = fleet(&json!({})).await;
    let job = run(&fleet, parrot(&fleet, json!({}))).await;
    assert_eq!(job["state"], "discarded", "{job:#}");
    assert!(job["error"]["message"].to_string().contains("allowed_commands"), "{job:#}");
    fleet.end().await;
}
