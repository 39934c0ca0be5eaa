//! Numbers keep the digits that a model and a tool sent.

use crate::policy::on_every_store;
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// Numbers that lose digits in 64 bits, or a zero that matters in an amount.
const ARGUMENTS: &str = r#"{"id":12345678901234567890123,"amount":1.10,"huge":1e+400,"small":0.1}"#;

fn asked() -> Reply {
    let call = json!({"index": 0, "id": "c", "type": "function", "function": {"name": "search", "arguments": ARGUMENTS}});
    let chunk = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}],
                       "usage": {"prompt_tokens": 12, "completion_tokens": 7}});
    Reply::Wire(format!("data: {chunk}\n\n").into_bytes())
}

async fn fleet(backend: Backend) -> Fleet {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => asked(),
        _ => Reply::text(model_server::tool_outcome(request)),
    };
    Fleet::builder().on(backend).model(script).start().await
}

/// The tool gets the digits of the model, and the model those of the tool, which echoes them here.
#[tokio::test]
async fn digits_reach_the_tool_and_come_back() {
    on_every_store(async |backend| {
        let fleet = fleet(backend).await;
        let job = json!({"type": "agent.x", "args": ["go"], "ext_agent_model": "m", "ext_agent_tools": [{"name": "search"}]});
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!(fleet.tools.calls()[0].input.to_string(), ARGUMENTS);
        assert!(done["result"].as_str().unwrap().contains(ARGUMENTS), "{done:#}");
        let engagement = fleet.engagement_of(&id).await;
        for path in ["messages", "tool-calls", "export"] {
            let shown = fleet.get(&format!("/engagements/{engagement}/{path}")).await.to_string();
            assert!(shown.contains("12345678901234567890123") && shown.contains("1.10"), "{path}: {shown}");
        }
        fleet.end().await;
    })
    .await;
}

/// CEL holds 64 bits: a restriction that reads a number with more digits refuses, and says so. One that a float holds is read.
#[tokio::test]
async fn a_restriction_refuses_a_number_that_it_cannot_hold() {
    on_every_store(async |backend| {
        let fleet = fleet(backend).await;
        let agent = |name: &str, assertion: &str| {
            oas(
                name,
                &format!("capabilities: {{search: {{input_restriction: {{assertion: \"{assertion}\"}}}}}}\n"),
            )
        };
        fleet.register(agent("exact", "recent.search.inputs.amount < 2.0")).await;
        fleet.register(agent("inexact", "recent.search.inputs.id > 0")).await;
        for (name, called) in [("exact", 1), ("inexact", 0)] {
            let before = fleet.tools.calls().len();
            let id = fleet.push(&json!({"type": "agent.x", "args": ["go"], "meta": {"agent": name, "user": {"id": "u-1"}}})).await;
            fleet.settled(&id).await;
            let made = fleet.tools.calls().len() - before;
            let engagement = fleet.engagement_of(&id).await;
            let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await.to_string();
            assert_eq!(made, called, "{name}: {audit}");
            if called == 0 {
                assert!(audit.contains("a number has more digits than CEL holds"), "{audit}");
            }
        }
        fleet.end().await;
    })
    .await;
}

/// A schema compares all digits.
#[tokio::test]
async fn a_schema_compares_every_digit() {
    let fleet = fleet(Backend::Sqlite).await;
    let parameters = json!({"type": "object", "properties": {"amount": {"type": "number", "maximum": 1.1}, "id": {"type": "integer"}}});
    for (least, called) in [("12345678901234567890123", 1), ("12345678901234567890124", 0)] {
        let before = fleet.tools.calls().len();
        let mut parameters = parameters.clone();
        parameters["properties"]["id"]["minimum"] = serde_json::from_str(least).unwrap();
        let tools = json!([{"name": "search", "parameters": parameters}]);
        let job =
            json!({"type": "agent.x", "args": ["go"], "ext_agent_model": "m", "ext_agent_tools": tools});
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        assert_eq!(fleet.tools.calls().len() - before, called, "{least}: {done:#}");
    }
    fleet.end().await;
}
