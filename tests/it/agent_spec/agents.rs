//! Agents, alone and in flows: the tool loop, the user's messages, outputs, confirmations, tools of the client.

use super::{
    answer, answer_with, awaiting, end, flow, llm, llm_of, part, property, register, run, said, start, text,
    then,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// A tool with one argument, a text.
fn tool(class: &str, name: &str, more: Value) -> Value {
    let mut tool = part(
        class,
        name,
        json!({"description": "A tool.", "inputs": [text("q")], "outputs": [text("found")]}),
    );
    tool.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    tool
}

fn agent(fleet: &Fleet, id: &str, fields: Value) -> Value {
    let mut agent =
        part("Agent", id, json!({"llm_config": llm(fleet), "system_prompt": format!("You are {id}.")}));
    agent.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
    agent
}

/// AGS-23, AGS-24, AGS-30: prompt, tools, and the next message.
#[tokio::test]
async fn an_agent_calls_its_tools_and_waits_for_its_user() {
    let script = |request: &Value| match (model_server::outcomes(request), &request["messages"]) {
        (0, _) => Reply::call("search", json!({"q": "boats"})),
        (_, messages) if messages.to_string().contains("And you?") => Reply::text("I help."),
        _ => Reply::text("Boats float."),
    };
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let fields = json!({"system_prompt": "You are a {{role}}.", "tools": [tool("ServerTool", "search", json!({}))]});
        let name = register(&fleet, agent(&fleet, "desk", fields)).await;
        let job = json!({"type": "agent.run", "meta": {"agent": name},
                         "args": [{"role": "poet"}, {"role": "user", "content": "Tell me."}]});
        let job = fleet.settled(&fleet.push(&job).await).await;
        let requested = awaiting(&fleet, &job).await;
        assert_eq!(requested["request_keys"], json!({"user_input": "Boats float."}), "{job:#}");
        let first = &fleet.models.calls()[0].request;
        assert_eq!(first["messages"][0], json!({"role": "system", "content": "You are a poet."}));
        assert_eq!(first["tools"][0]["function"]["description"], "A tool.");
        let again = answer(&fleet, &job, json!({"user_input": "And you?"})).await;
        assert_eq!(awaiting(&fleet, &again).await["prompt"], "I help.");
        assert_eq!(fleet.tools.calls_of("search"), 1);
        let texts: Vec<_> =
            said(&fleet, &job).await.into_iter().filter(|one| one[1] != "" && one[0] != "tool").collect();
        assert_eq!(
            json!(texts),
            json!([
                ["user", "Tell me."],
                ["assistant", "Boats float."],
                ["user", "And you?"],
                ["assistant", "I help."]
            ])
        );
        fleet.end().await;
    }
}

/// AGS-25, AGS-26: outputs without a user.
#[tokio::test]
async fn an_agent_submits_its_outputs_and_submits_again_what_was_incomplete() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 if !request.to_string().contains("No user reads this") => Reply::text("I think it is done"),
        0 => Reply::call("submit_result", json!({"people": 3})),
        _ => Reply::call("submit_result", json!({"city": "Rome"})),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let outputs = json!([text("city"), {"title": "people", "type": "integer", "default": 7}]);
    let desk = agent(&fleet, "desk", json!({"outputs": outputs, "human_in_the_loop": false}));
    let done = run(&fleet, desk, json!({})).await;
    assert_eq!(done["result"]["outputs"], json!({"city": "Rome", "people": 7}), "{done:#}");
    let calls = fleet.models.calls();
    assert_eq!((calls.len(), model_server::offered(&calls[0].request)), (3, vec!["submit_result"]));
    assert!(calls[2].request.to_string().contains("`city` is missing"), "{:#}", calls[2].request);
    fleet.end().await;
}

/// AGS-28: the conversation of the flow.
#[tokio::test]
async fn an_agent_of_a_flow_sees_its_conversation_and_asks_the_user() {
    let script = |request: &Value| match request["messages"].to_string().contains("It was 1999") {
        true => Reply::call("submit_result", json!({"year": 1999})),
        false => Reply::text("Which year?"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let desk = agent(&fleet, "desk", json!({"outputs": [property("year", "integer")]}));
    let nodes = [
        start("start", &[]),
        part("OutputMessageNode", "say", json!({"message": "Welcome."})),
        part("AgentNode", "ask", json!({"agent": desk})),
        end("end", &[property("year", "integer")]),
    ];
    let control = [then("start", "say"), then("say", "ask"), then("ask", "end")];
    let job = run(&fleet, flow("asking", &nodes, &control, &[]), json!({})).await;
    assert_eq!(awaiting(&fleet, &job).await["prompt"], "Which year?", "{job:#}");
    assert!(fleet.models.calls()[0].request["messages"].to_string().contains("Welcome."));
    let ended = answer(&fleet, &job, json!({"user_input": "It was 1999"})).await;
    assert_eq!(ended["result"]["outputs"], json!({"year": 1999}), "{ended:#}");
    fleet.end().await;
}

/// AGS-27, AGS-33: a rejection is an outcome.
#[tokio::test]
async fn a_rejected_call_of_an_agent_is_an_outcome_and_a_confirmed_one_runs() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"q": "boat"})),
        _ => Reply::text("Noted."),
    };
    for (verdict, calls) in [("approve", 1), ("reject", 0)] {
        let fleet = Fleet::builder().model(script).start().await;
        let book = tool("ServerTool", "book", json!({"requires_confirmation": true}));
        let job = run(&fleet, agent(&fleet, "desk", json!({"tools": [book]})), json!({})).await;
        let review = awaiting(&fleet, &job).await["review_id"].as_str().unwrap().to_owned();
        let body = json!({"by": "operator", "reason": "no boats today"});
        let (status, body) = fleet.post(&format!("/reviews/{review}/{verdict}"), &body).await;
        assert!(status.is_success(), "{body:#}");
        let id = job["id"].as_str().unwrap();
        fleet.until("the agent answers", async || awaiting(&fleet, &job).await["prompt"] == "Noted.").await;
        assert_eq!(fleet.tools.calls_of("book"), calls, "{id}");
        let denied = fleet.models.calls()[1].request["messages"].to_string().contains("no boats today");
        assert_eq!(denied, verdict == "reject");
        fleet.end().await;
    }
}

/// AGS-31, AGS-33: type, repetition, confirmation.
#[tokio::test]
async fn a_tool_of_the_client_is_confirmed_and_answered_once_with_its_type() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("measure", json!({"q": "t1"})),
        _ => Reply::text("It is warm."),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let more = json!({"requires_confirmation": true, "outputs": [property("celsius", "number")]});
    let desk = agent(&fleet, "desk", json!({"tools": [tool("ClientTool", "measure", more)]}));
    let job = run(&fleet, desk, json!({})).await;
    let review = awaiting(&fleet, &job).await["review_id"].as_str().unwrap().to_owned();
    let (status, _) = fleet.post(&format!("/reviews/{review}/approve"), &json!({"by": "operator"})).await;
    assert!(status.is_success());
    fleet.until("the client is asked", async || awaiting(&fleet, &job).await["kind"] == "tool").await;
    let requested = awaiting(&fleet, &job).await;
    assert_eq!((&requested["tool"], &requested["arguments"]), (&json!("measure"), &json!({"q": "t1"})));
    let call = requested["call_id"].clone();
    let body = json!({"answers": {"result": "warm"}, "call_id": call});
    let (status, body) = answer_with(&fleet, &job, &body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    assert!(body.to_string().contains("a text cannot be cast to number"), "{body:#}");
    let right = json!({"answers": {"result": 21.5}, "call_id": call});
    assert_eq!(answer_with(&fleet, &job, &right).await.0, StatusCode::OK);
    fleet.until("the agent answers", async || awaiting(&fleet, &job).await["prompt"] == "It is warm.").await;
    assert!(fleet.models.calls()[1].request["messages"].to_string().contains("21.5"));
    assert_eq!(answer_with(&fleet, &job, &right).await.0, StatusCode::OK, "the same again changes nothing");
    let other = json!({"answers": {"result": 3}, "call_id": call});
    assert_eq!(answer_with(&fleet, &job, &other).await.0, StatusCode::CONFLICT);
    fleet.end().await;
}

/// AGS-29: both prompts, both tools.
#[tokio::test]
async fn a_specialized_agent_has_the_instructions_and_tools_of_both() {
    let fleet = Fleet::builder().model(|_| Reply::text("Salve.")).start().await;
    let base = agent(
        &fleet,
        "desk",
        json!({"system_prompt": "Base {{who}}.", "tools": [tool("ServerTool", "search", json!({}))]}),
    );
    let more = part(
        "AgentSpecializationParameters",
        "more",
        json!({"additional_instructions": "Speak {{lang}}.", "additional_tools": [tool("ServerTool", "book", json!({}))]}),
    );
    let special =
        part("SpecializedAgent", "special", json!({"agent": base, "agent_specialization_parameters": more}));
    let job = run(&fleet, special, json!({"who": "sage", "lang": "Latin"})).await;
    assert_eq!(awaiting(&fleet, &job).await["prompt"], "Salve.", "{job:#}");
    let requested = &fleet.models.calls()[0].request;
    assert_eq!(requested["messages"][0]["content"], "Base sage.\n\nSpeak Latin.");
    assert_eq!(model_server::offered(requested), ["search", "book"]);
    fleet.end().await;
}

/// AGS-40: a summary for the model.
#[tokio::test]
async fn a_long_conversation_is_summarized_once_for_the_model_alone() {
    let script = |request: &Value| match request["messages"].to_string() {
        requested if requested.contains("Sum up.") => Reply::text("they spoke of boats"),
        requested if requested.contains("they spoke of boats") && !requested.contains("first") => {
            Reply::text("from the summary")
        }
        _ => Reply::text("from everything"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let schema = json!({"type": "object", "properties": {
        "cache_key": {"type": "string"}, "cache_content": {"type": "string"}, "prefix_size": {"type": "integer"},
        "created_at": {"type": "number"}, "last_used_at": {"type": "number"}}});
    let store = part("InMemoryCollectionDatastore", "store", json!({"datastore_schema": {"cache": schema}}));
    let transform = part(
        "ConversationSummarizationTransform",
        "sum",
        json!({"llm": llm_of(&fleet, "writer"), "max_num_messages": 3, "min_num_messages": 2, "summarization_instructions": "Sum up.",
               "summarized_conversation_template": "Before: {{summary}}", "datastore": store, "cache_collection_name": "cache"}),
    );
    let name = register(&fleet, agent(&fleet, "desk", json!({"transforms": [transform]}))).await;
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let job = json!({"type": "agent.run", "meta": {"agent": name}, "args": [{}, message("user", "first"),
                     message("assistant", "second"), message("user", "third"), message("assistant", "fourth"), message("user", "fifth")]});
    let job = fleet.settled(&fleet.push(&job).await).await;
    assert_eq!(awaiting(&fleet, &job).await["prompt"], "from the summary", "{job:#}");
    let calls = fleet.models.calls();
    assert_eq!(
        (calls.len(), &calls[1].request["messages"][1]["content"]),
        (2, &json!("Before: they spoke of boats"))
    );
    assert_eq!(said(&fleet, &job).await.len(), 6, "the conversation is whole, and holds no summary");
    fleet.end().await;
}

/// AGS-26: an agent that never submits ends at the limit of its calls; its outputs take their defaults.
#[tokio::test]
async fn an_agent_without_an_end_stops_at_its_limit() {
    let fleet = Fleet::builder().model(|_| Reply::text("Hm.")).start().await;
    let outputs = json!([{"title": "people", "type": "integer", "default": 7}]);
    let fields = json!({"outputs": outputs, "human_in_the_loop": false, "metadata": {"max_iterations": 3}});
    let done = run(&fleet, agent(&fleet, "desk", fields), json!({})).await;
    assert_eq!((fleet.models.count(), &done["result"]["outputs"]), (3, &json!({"people": 7})), "{done:#}");
    fleet.end().await;
}
