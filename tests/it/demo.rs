//! The parts of the demo fit together. The tools of `turnstone.toml` accept the script's calls, the tool server
//! answers them, and the script's final texts match the agents and the job.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::SystemClock;
use turnstone_domain::agent::{OutputContract, ToolChoice};
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::schema::Schema;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_examples::{DEMO_SCRIPT, RESEARCH_JOB, tool_server, tools_toml};
use turnstone_worker::model::{Listener, Model, ModelRequest, ScriptedModel, ToolOffer};
use turnstone_worker::tool::{Invocation, ToolConfig, Toolbox};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    tools: BTreeMap<String, ToolConfig>,
}

/// Runs a conversation to its end; a reviewer rejects the tool `refuse`. Returns the final text and the tool calls.
async fn play(input: &str, tools: &[&str], refuse: Option<&str>) -> (String, Vec<(String, Value)>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, tool_server()).await });
    let configuration: Configuration = toml::from_str(&tools_toml(port)).unwrap();
    let toolbox = Toolbox::from_config(&configuration.tools, Arc::new(SystemClock)).unwrap();
    let model = ScriptedModel::from_yaml(DEMO_SCRIPT).unwrap();

    let mut calls = Vec::new();
    let mut messages = vec![Message::text(Role::User, input)];
    for turn in 0..10 {
        let answer = model.answer(&request(&toolbox, tools, messages.clone())).await.unwrap();
        if answer.tool_calls.is_empty() {
            return (answer.content.unwrap(), calls);
        }
        let mut requested = Message::text(Role::Assistant, answer.content.unwrap_or_default());
        let mut outcomes = Vec::new();
        for (position, call) in answer.tool_calls.into_iter().enumerate() {
            let call_id = format!("call-{turn}-{position}").into();
            let tool = toolbox.get(&call.name).expect("a tool that is bound");
            Schema::compile(&tool.spec().input_schema).unwrap().check(&call.arguments).unwrap();
            let outcome = if refuse == Some(call.name.as_str()) {
                ToolOutcome::refused("AGENT_REVIEW_REJECTED", "a reviewer said no")
            } else {
                let invocation = Invocation {
                    call_id: &call_id,
                    input: &call.arguments,
                    timeout: tool.timeout(),
                    identity: &turnstone_worker::tool::Identity::default(),
                };
                ToolOutcome::Success { output: tool.call(invocation).await.unwrap() }
            };
            outcomes.push(Message::tool(call_id.clone(), outcome.for_model()));
            calls.push((call.name.clone(), call.arguments.clone()));
            requested.tool_calls.push(RequestedCall { call_id, name: call.name, arguments: call.arguments });
        }
        messages.push(requested);
        messages.extend(outcomes);
    }
    panic!("the script does not come to an end: {calls:?}");
}

fn request(toolbox: &Toolbox, tools: &[&str], messages: Vec<Message>) -> ModelRequest {
    let offer = |name: &&str| {
        let spec = toolbox.get(name).expect("a tool that is bound").spec().clone();
        ToolOffer { name: spec.name, description: spec.description, input_schema: spec.input_schema }
    };
    ModelRequest {
        model: "gpt-4o".to_owned(),
        system: String::new(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools.iter().map(offer).collect(),
        tool_choice: ToolChoice::Auto,
        temperature: None,
        top_p: None,
        frequency_penalty: None,
        presence_penalty: None,
        max_tokens: 4096,
        unbounded: false,
        output: OutputContract::default(),
        timeout: Duration::from_secs(30),
        listener: Listener::default(),
    }
}

#[tokio::test]
async fn the_research_jobs_result_matches_its_schema() {
    let job: Value = serde_json::from_str(RESEARCH_JOB).unwrap();
    let (text, calls) = play(job["args"][0].as_str().unwrap(), &["web_search"], None).await;
    assert_eq!(calls.len(), 2, "{calls:?}");
    let output: Value = serde_json::from_str(&text).unwrap();
    Schema::compile(&job["ext_agent_output_schema"]).unwrap().check(&output).unwrap();
    let sources = output["sources"].as_array().unwrap();
    assert!(
        sources.len() == 3
            && sources.iter().all(|url| url.as_str().unwrap().starts_with("https://quantum.example/"))
    );
    let distinct: std::collections::BTreeSet<&str> = sources.iter().filter_map(Value::as_str).collect();
    assert_eq!(distinct.len(), 3, "{sources:?}");
}

#[tokio::test]
async fn research_about_something_else_ends_too() {
    let (text, calls) = play("How do birds such as the turnstone find food?", &["web_search"], None).await;
    assert!(text.contains("pebbles") && calls.len() == 1, "{text}");
    let (text, _) = play("sourdough", &["web_search"], None).await;
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["sources"], json!([]));
}

#[tokio::test]
async fn the_travel_desk_books_the_flight_that_it_found() {
    let tools = ["search-flights", "book-flight"];
    let (text, calls) = play("Book me a flight from Berlin to Lisbon on 2 March.", &tools, None).await;
    assert_eq!(calls[1].0, "book-flight");
    assert_eq!((&calls[1].1["flight"], &calls[1].1["price"]), (&json!("TS204"), &json!(640)));
    assert!(text.contains("TS-0001") && text.contains("640"), "{text}");
    let (text, _) = play("Book me a flight.", &tools, Some("book-flight")).await;
    assert!(text.contains("Nothing was booked") && text.contains("a reviewer said no"), "{text}");
}

#[tokio::test]
async fn the_other_agents_answer_with_their_results() {
    let (text, calls) = play("When do I get my refund?", &["search-faqs"], None).await;
    assert!(text.contains("public/refunds"), "{text}");
    assert_eq!(calls[0].1["path"], "public/");
    let (text, _) = play("sourdough", &["search-faqs"], None).await;
    assert!(text.contains("no answer"), "{text}");
    let (text, calls) =
        play("Write release notes about quantum error correction.", &["web_search", "clock"], None).await;
    assert!(text.contains("Source: https://quantum.example/") && calls.len() == 2, "{text}");
}
