//! Refusals: documents that cannot be run, inputs that do not cast, flows without an end, secrets that are shown.

use super::{end, flow, job, llm, part, property, register, run, start, then};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_tests::{Fleet, Reply};

fn passing() -> Value {
    let io = [property("n", "integer")];
    flow("passing", &[start("start", &io), end("end", &io)], &[then("start", "end")], &[])
}

/// AGS-10: inputs are checked before anything is stored.
#[tokio::test]
async fn inputs_that_do_not_cast_are_refused_and_nothing_is_stored() {
    let fleet = Fleet::builder().start().await;
    let name = register(&fleet, passing()).await;
    for (inputs, why) in [
        (json!({"n": "three"}), "input `n`: a text cannot be cast to integer"),
        (json!({}), "input `n` is missing and has no default"),
        (json!({"n": 1, "m": 2}), "has no input `m`"),
        (json!([1]), "sent as a map"),
    ] {
        let (status, body) = fleet.post("/ojs/v1/jobs", &job(&name, &inputs)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
        assert!(body["error"]["message"].as_str().unwrap().contains(why), "{body:#}");
    }
    assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 0);
    fleet.end().await;
}

/// AGS-35: a tool of another runtime.
#[tokio::test]
async fn a_component_that_cannot_run_yet_is_refused_by_its_name() {
    let fleet = Fleet::builder().start().await;
    let fields = json!({"tool_type": "websearch", "inputs": [], "outputs": []});
    let tool = part("BuiltinTool", "finder", fields);
    let mut document = part(
        "Agent",
        "helper",
        json!({"llm_config": llm(&fleet), "system_prompt": "You help.", "tools": [tool]}),
    );
    document["agentspec_version"] = "26.2.0".into();
    let (status, body) = fleet.post("/agents", &document).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    let problems = body["error"]["details"]["problems"].as_array().unwrap().clone();
    let said: Vec<&str> = problems.iter().filter_map(|problem| problem["message"].as_str()).collect();
    assert!(problems.iter().all(|problem| problem["rule"] == "AS-00"), "{problems:#?}");
    assert!(said.iter().any(|text| text.contains("BuiltinTool `finder` is a tool `websearch`")), "{said:?}");
    assert_eq!(fleet.number("SELECT count(*) FROM agents").await, 0);
    fleet.end().await;
}

/// The names of the tools that the runtime adds are taken, where it adds them.
#[tokio::test]
async fn a_tool_with_the_name_of_a_control_is_refused() {
    let fleet = Fleet::builder().start().await;
    let agent = |name: &str, tool: &str| {
        let tool = part("ClientTool", tool, json!({"inputs": [], "outputs": []}));
        let model = super::llm_of(&fleet, &format!("{name}-llm"));
        part("Agent", name, json!({"llm_config": model, "system_prompt": "You help.", "tools": [tool]}))
    };
    let team = |tool: &str| {
        let fields = json!({"group_manager": agent("boss", "look"), "workers": [agent("worker", tool)]});
        part("ManagerWorkers", "team", fields)
    };
    for (mut document, refused) in [
        (agent("alone", "submit_result"), true),
        (agent("alone", "send_message"), false),
        (team("send_message"), true),
        (team("handoff_conversation"), true),
        (team("wave"), false),
    ] {
        document["agentspec_version"] = "26.2.0".into();
        let (status, body) = fleet.post("/agents", &document).await;
        assert_eq!(status == StatusCode::UNPROCESSABLE_ENTITY, refused, "{body:#}");
        assert_eq!(body.to_string().contains("AS-53"), refused, "{body:#}");
    }
    fleet.end().await;
}

#[tokio::test]
#[ignore = "long: 10,000 turns"]
async fn an_endless_loop_ends_at_the_limit_of_nodes() {
    let fleet = Fleet::builder().start().await;
    let turn = |id: &str| {
        part("BranchingNode", id, json!({"inputs": [property("k", "string")], "mapping": {"stop": "stop"}}))
    };
    let nodes = [start("start", &[property("k", "string")]), turn("round"), end("end", &[])];
    let control = [then("start", "round"), then("round:default", "round"), then("round:stop", "end")];
    let job = run(&fleet, flow("endless", &nodes, &control, &[]), json!({"k": "go"})).await;
    assert_eq!(job["state"], "discarded", "{job:#}");
    assert!(job["error"]["message"].as_str().unwrap().contains("10000 turns"), "{job:#}");
    fleet.end().await;
}

/// AGS-04: nothing shows a secret.
#[tokio::test]
async fn a_secret_comes_from_the_registry_and_is_shown_nowhere() {
    let fleet = Fleet::builder().model(|_| Reply::text("done")).start().await;
    let with_key = |key: Value| {
        let mut model = llm(&fleet);
        model["api_key"] = key;
        let node = part("LlmNode", "gen", json!({"llm_config": model, "prompt_template": "go"}));
        let nodes = [start("start", &[]), node, end("end", &[property("generated_text", "string")])];
        let mut document = flow("keyed", &nodes, &[then("start", "gen"), then("gen", "end")], &[]);
        document["agentspec_version"] = "26.2.0".into();
        document
    };
    let named = with_key(json!({"$component_ref": "llm.api_key"}));
    let (status, body) = fleet.post("/agents", &named).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    assert!(body.to_string().contains("AS-19"), "{body:#}");
    for body in [
        json!({"document": named, "registry": {"llm.api_key": "sk-hush"}}),
        json!({"document": with_key(json!("sk-hush")).to_string()}),
    ] {
        let (status, answer) = fleet.post("/agents", &body).await;
        assert!(status.is_success(), "{answer:#}");
        let id = fleet.push(&job("keyed", &json!({}))).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        let shown = fleet.get("/agents/keyed?format=agent-spec").await;
        assert_eq!(shown["component_type"], "Flow");
        let (_, written) = fleet.send(Method::GET, "/agents/keyed", "").await;
        let engagement = fleet.engagement_of(&id).await;
        let (_, export) = fleet.send(Method::GET, &format!("/engagements/{engagement}/export"), "").await;
        for text in [shown, written, export] {
            assert!(!text.to_string().contains("sk-hush"), "{text}");
        }
    }
    fleet.end().await;
}

/// AGS-36: a server without `[tool_policy]` refuses documents that start a program or name a private address, and stores
/// nothing.
#[tokio::test]
async fn a_process_or_a_private_address_is_refused_before_anything_is_stored() {
    use crate::program::Program;
    let folder = turnstone_tests::scratch::folder();
    let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
    let mut server = Program::start(folder.path(), &arguments, &[]);
    let url = server.first_line("turnstone listens on ").await;
    let model = |url: &str| part("OpenAiCompatibleConfig", "llm", json!({"model_id": "m", "url": url}));
    let agent = |model: Value, toolboxes: Value| {
        let fields = json!({"llm_config": model, "system_prompt": "You help.", "toolboxes": toolboxes});
        let mut agent = part("Agent", "helper", fields);
        agent["agentspec_version"] = "26.2.0".into();
        agent
    };
    let process = part("StdioTransport", "way", json!({"command": "sh"}));
    let toolbox = json!([part("MCPToolBox", "box", json!({"client_transport": process}))]);
    let http = turnstone_tests::http::client();
    for (document, words) in [
        (agent(model("https://models.example/v1"), toolbox), "allowed_commands"),
        (agent(model("http://127.0.0.1:9/v1"), json!([])), "private address"),
        (agent(model("http://user@[::1]:9/v1"), json!([])), "private address"),
        (agent(model("localhost:9"), json!([])), "private address"),
        (agent(model("http://169.254.169.254/latest"), json!([])), "private address"),
    ] {
        let sent = http.post(format!("{url}/agents")).json(&document).send().await.unwrap();
        let (status, body) = (sent.status(), sent.text().await.unwrap());
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert!(body.contains("AS-60") && body.contains(words), "{body}");
    }
    let listed: Value = http.get(format!("{url}/agents")).send().await.unwrap().json().await.unwrap();
    assert!(!listed.to_string().contains("helper"), "{listed}");
    server.stop().await;
}
