//! Flows that wait: for the user, for a tool of the client, for a confirmation.

use super::{answer, awaiting, end, flow, part, property, register, run, start, text, then};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet};

/// AGS-20, AGS-21: the question, the answer, and what is said.
#[tokio::test]
async fn input_message_node_asks_the_user_and_the_answer_is_said() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).start().await;
        let ask = part(
            "InputMessageNode",
            "ask",
            json!({"message": "Hi {{who}}, colour?", "outputs": [text("colour")]}),
        );
        let say = part("OutputMessageNode", "say", json!({"message": "You said {{colour}}"}));
        let nodes = [start("start", &[text("who")]), ask, say, end("end", &[text("colour")])];
        let control = [then("start", "ask"), then("ask", "say"), then("say", "end")];
        let job = run(&fleet, flow("asking", &nodes, &control, &[]), json!({"who": "Bo"})).await;
        let requested = awaiting(&fleet, &job).await;
        assert_eq!((&requested["kind"], &requested["prompt"]), (&json!("input"), &json!("Hi Bo, colour?")));
        assert_eq!(requested["request_keys"], json!({"colour": "Hi Bo, colour?"}));
        let done = answer(&fleet, &job, json!({"colour": "red"})).await;
        assert_eq!(done["result"]["outputs"], json!({"colour": "red"}), "{done:#}");
        let engagement = fleet.engagement_of(done["id"].as_str().unwrap()).await;
        let said = fleet.get(&format!("/engagements/{engagement}/messages")).await;
        let said: Vec<Value> = said["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| json!([one["role"], one["content"]]))
            .collect();
        assert_eq!(
            said,
            [
                json!(["assistant", "Hi Bo, colour?"]),
                json!(["user", "red"]),
                json!(["assistant", "You said red"])
            ]
        );
        fleet.end().await;
    }
}

fn with_tool(class: &str, name: &str, more: Value) -> Value {
    let mut fields = json!({"inputs": [text("sensor")], "outputs": [property("reading", "number")]});
    fields.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let mut tool = part(class, "t", fields);
    tool["name"] = name.into();
    let nodes = [
        start("start", &[text("sensor")]),
        part("ToolNode", "call", json!({"tool": tool})),
        end("end", &[property("reading", "number")]),
    ];
    flow("measuring", &nodes, &[then("start", "call"), then("call", "end")], &[])
}

/// AGS-31: the client executes the tool of a node.
#[tokio::test]
async fn client_tool_waits_for_the_result_of_the_client() {
    let fleet = Fleet::builder().start().await;
    let job = run(&fleet, with_tool("ClientTool", "ask_device", json!({})), json!({"sensor": "t1"})).await;
    let requested = awaiting(&fleet, &job).await;
    assert_eq!(requested["kind"], "tool");
    assert_eq!(
        (&requested["tool"], &requested["arguments"]),
        (&json!("ask_device"), &json!({"sensor": "t1"}))
    );
    let done = answer(&fleet, &job, json!({"result": 21.5})).await;
    assert_eq!(done["result"]["outputs"], json!({"reading": 21.5}), "{done:#}");
    fleet.end().await;
}

/// AGS-33: a node waits for its confirmation.
#[tokio::test]
async fn a_tool_that_requires_confirmation_waits_for_a_review() {
    for (verdict, state, calls) in [("approve", "completed", 1), ("reject", "discarded", 0)] {
        let fleet = Fleet::builder().start().await;
        let mut confirmed = with_tool("ServerTool", "book", json!({"requires_confirmation": true}));
        // The tool of the test echoes an object.
        let outputs = json!([property("echo", "object"), text("tool")]);
        let parts = &mut confirmed["$referenced_components"];
        parts["call"]["tool"]["outputs"] = outputs;
        parts["end"]["inputs"] = json!([text("tool")]);
        parts["end"]["outputs"] = json!([text("tool")]);
        confirmed["outputs"] = json!([text("tool")]);
        let job = run(&fleet, confirmed, json!({"sensor": "t1"})).await;
        let requested = awaiting(&fleet, &job).await;
        let review = requested["review_id"].as_str().unwrap();
        let shown = fleet.get(&format!("/reviews/{review}")).await;
        assert_eq!(shown["question"]["name"], "book", "{shown:#}");
        let (status, body) =
            fleet.post(&format!("/reviews/{review}/{verdict}"), &json!({"by": "operator"})).await;
        assert!(status.is_success(), "{body:#}");
        let done =
            fleet.wait_for(job["id"].as_str().unwrap(), &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!((done["state"].as_str(), fleet.tools.calls_of("book")), (Some(state), calls), "{done:#}");
        fleet.end().await;
    }
}

/// `POST /agents/{name}` takes the inputs of a flow as its input.
#[tokio::test]
async fn an_engagement_begins_with_a_map_of_inputs() {
    let fleet = Fleet::builder().start().await;
    let nodes = [start("start", &[property("n", "integer")]), end("end", &[property("n", "integer")])];
    let name = register(&fleet, flow("passing", &nodes, &[then("start", "end")], &[])).await;
    let (status, body) = fleet.post(&format!("/agents/{name}"), &json!({"input": {"n": 7}})).await;
    assert!(status.is_success(), "{body}");
    let id = body["engagement_id"].as_str().unwrap().to_owned();
    let mut shown = Value::Null;
    fleet
        .until("the engagement ends", async || {
            shown = fleet.get(&format!("/engagements/{id}")).await;
            shown["status"] == "completed"
        })
        .await;
    assert_eq!(shown["results"]["output"]["outputs"], json!({"n": 7}), "{shown:#}");
    fleet.end().await;
}
