//! The main job: accepted unchanged, run through the seven phases, settled with a result that matches its schema.

use serde_json::{Value, json};
use turnstone_domain::Phase;
use turnstone_domain::schema::Schema;
use turnstone_tests::{Fleet, Reply, model_server};

/// The example of the agent extension, §5.
const RESEARCH: &str = include_str!("../../examples/jobs/research.json");

fn research(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("web_search", json!({"query": "quantum computing 2026"})),
        _ => Reply::text(r#"{"summary": "Qubits got better.", "sources": ["https://example.org/a"]}"#),
    }
}

/// AIX-01, AIX-03, AIX-07, AIX-08, AIX-10, AIX-14, AIX-17: the example of the specification runs: model, tools,
/// budget, schema and counts.
#[tokio::test]
async fn the_specifications_example_runs_to_completed() {
    let fleet = Fleet::builder().model(research).start().await;
    let sent: Value = serde_json::from_str(RESEARCH).unwrap();
    let id = fleet.push(&sent).await;
    let job = fleet.settled(&id).await;
    assert_eq!(job["state"], "completed", "{job:#}");

    for (field, value) in sent.as_object().unwrap().iter().filter(|(field, _)| *field != "options") {
        assert_eq!(&job[field], value, "field {field} differs from the sent one");
    }
    assert_eq!(job["queue"], "ai-agents");
    let schema = Schema::compile(&sent["ext_agent_output_schema"]).unwrap();
    schema.check(&job["result"]).expect("the result has the demanded form");
    assert_eq!(job["ext_agent_tokens_used"], (12 + 7) + (10 + 5));
    assert_eq!(job["ext_agent_model_used"], "gpt-4o");
    let results = job["ext_agent_tool_results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["name"], "web_search");
    assert_eq!(results[0]["result"]["echo"]["query"], "quantum computing 2026");
    assert_eq!(fleet.tools.calls()[0].key, results[0]["tool_call_id"], "the call id is the idempotency key");

    let engagement = fleet.engagement_of(&id).await;
    let checkpoints = fleet.get(&format!("/engagements/{engagement}/checkpoints")).await;
    let phases: Vec<(i64, &str)> = checkpoints["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["turn"].as_i64().unwrap(), c["phase"].as_str().unwrap()))
        .collect();
    let expected: Vec<(i64, &str)> =
        (1..=2).flat_map(|turn| Phase::ALL.map(|phase| (turn, phase.as_str()))).collect();
    assert_eq!(phases, expected);
    fleet.end().await;
}

#[tokio::test]
async fn events_resume_where_a_reader_stopped() {
    let fleet = Fleet::builder().model(research).start().await;
    let id = fleet.push(&serde_json::from_str(RESEARCH).unwrap()).await;
    let engagement = fleet.engagement_of(&id).await;
    let url = format!("{}/engagements/{engagement}/events", fleet.url);
    let whole = turnstone_tests::sse::read(&url, None, |_| false).await;
    assert_eq!(whole.first().unwrap().event, "job.enqueued");
    assert_eq!(whole.last().unwrap().event, "job.completed");
    let ids: Vec<i64> = whole.iter().map(turnstone_tests::sse::number).collect();
    assert_eq!(ids, (1..=i64::try_from(whole.len()).unwrap()).collect::<Vec<_>>());
    let head = turnstone_tests::sse::read(&url, None, |seen| seen.len() == 5).await;
    let tail = turnstone_tests::sse::read(&url, Some(&head[4].id), |_| false).await;
    let joined: Vec<String> = head.iter().chain(&tail).map(|event| event.data.clone()).collect();
    assert_eq!(joined, whole.iter().map(|event| event.data.clone()).collect::<Vec<_>>());
    fleet.end().await;
}

/// AIX-02: fallback models are called in order until one answers.
#[tokio::test]
async fn the_next_model_answers_when_the_first_does_not() {
    let fleet = Fleet::builder()
        .model(|request| match request["model"].as_str() {
            Some("first") => Reply::Status(503),
            Some("second") => Reply::Status(429),
            _ => Reply::text("from the third"),
        })
        .start()
        .await;
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "first",
                     "ext_agent_fallback_models": ["second", "third"]});
    let id = fleet.push(&job).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["result"], "from the third");
    assert_eq!(done["ext_agent_model_used"], "third");
    assert_eq!(done["attempt"], 1, "a fallback is no retry");
    fleet.end().await;
}

#[tokio::test]
async fn an_answer_of_the_wrong_format_is_repaired_once() {
    let fleet = Fleet::builder()
        .model(|request| match request["messages"].as_array().unwrap().len() {
            0..=3 => Reply::text("Sure! Here it is: {\"m\": 1}"),
            _ => Reply::text("{\"n\": 1}"),
        })
        .start()
        .await;
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m",
                     "ext_agent_output_schema": {"type": "object", "required": ["n"]}});
    let id = fleet.push(&job).await;
    assert_eq!(fleet.settled(&id).await["result"], json!({"n": 1}));
    assert!(fleet.event_names(&id).await.contains(&"output.rejected".to_owned()));
    fleet.end().await;

    let fleet = Fleet::builder().model(|_| Reply::text("never JSON")).start().await;
    let mut job = job;
    job["options"] = json!({"retry": {"max_attempts": 1}});
    let id = fleet.push(&job).await;
    let done = fleet.settled(&id).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("AGENT_OUTPUT_SCHEMA_VIOLATION"))
    );
    assert_eq!(fleet.models.calls().len(), 2, "asked once more, and only once");
    fleet.end().await;
}

/// A final answer without text and calls is no result.
#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more() {
    for (second, state, code) in
        [("here", "completed", Value::Null), (" ", "discarded", json!("AGENT_EMPTY_ANSWER"))]
    {
        let script = move |request: &Value| match request["messages"].as_array().unwrap().len() {
            0..=2 => Reply::text(""),
            _ => Reply::text(second),
        };
        let fleet = Fleet::builder().model(script).start().await;
        let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m",
                         "options": {"retry": {"max_attempts": 1}}});
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        assert_eq!((&done["state"], &done["error"]["code"]), (&json!(state), &code), "{done:#}");
        assert_eq!(fleet.models.calls().len(), 2, "asked once more, and only once");
        assert!(fleet.event_names(&id).await.contains(&"output.rejected".to_owned()));
        fleet.end().await;
    }
}

/// AIX-18: a call of a tool that the job does not declare is refused and not run.
#[tokio::test]
async fn a_tool_that_is_not_declared_is_refused() {
    let fleet = Fleet::builder()
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("book", json!({"what": "a flight"})),
            _ => Reply::text("I could not book."),
        })
        .start()
        .await;
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "ext_agent_tools": [{"name": "search"}]});
    let id = fleet.push(&job).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["state"], "completed");
    assert_eq!(done["ext_agent_tool_results"][0]["error"]["code"], "AGENT_TOOL_NOT_FOUND");
    assert!(fleet.tools.calls().is_empty(), "the tool was never called");
    fleet.end().await;
}

#[tokio::test]
async fn arguments_are_checked_before_the_call() {
    let fleet = Fleet::builder()
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("search", json!({"query": 7})),
            1 => Reply::call("search", json!({"query": "seven"})),
            _ => Reply::text("found"),
        })
        .start()
        .await;
    let schema =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m",
                     "ext_agent_tools": [{"name": "search", "parameters": schema}]});
    let id = fleet.push(&job).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["ext_agent_tool_results"][0]["error"]["code"], "SCHEMA_VIOLATION");
    assert_eq!(fleet.tools.calls().len(), 1, "only the call with good arguments was made");
    fleet.end().await;
}

#[tokio::test]
async fn a_long_outcome_does_not_push_the_answer_out_of_the_window() {
    let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata:\n  name: reader\n  version: 1.0.0\nspec:\n  role: You read.\n  llm:\n    provider: openai\n    model: m\n  tools:\n    - type: function\n      name: search\n";
    let fleet = Fleet::builder()
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("search", json!({"text": "x".repeat(40_000)})),
            _ => Reply::text("read"),
        })
        .start()
        .await;
    fleet.register(manifest).await;
    let id = fleet.push(&json!({"type": "agent.read", "args": ["go"], "meta": {"agent": "reader"}})).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["result"], "read", "{:#}", done["error"]);
    let calls = fleet.models.calls();
    let reported = calls[1].request["messages"].as_array().unwrap();
    assert!(
        reported.iter().any(|m| m["role"] == "assistant" && m["tool_calls"].is_array()),
        "the call stays with its outcome"
    );
    fleet.end().await;
}

/// AIX-15: an answer that is not JSON fails a job that asks for JSON, and its retry calls the model again.
#[tokio::test]
async fn a_retry_after_a_wrong_format_calls_the_model_again() {
    let requested = std::sync::atomic::AtomicUsize::new(0);
    let fleet = Fleet::builder()
        .model(move |_| match requested.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::text("no JSON"),
            1 => Reply::text("{\"a\": 1, \"a\": 2}"),
            _ => Reply::text("{}"),
        })
        .start()
        .await;
    let job =
        json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "ext_agent_output_format": "json"});
    let id = fleet.push(&job).await;
    let failed = fleet.settled(&id).await;
    assert_eq!(failed["state"], "retryable");
    assert!(failed.to_string().contains("`a` stands twice in its object"), "{failed:#}");
    fleet.clock.advance_ms(10_000);
    fleet.tick().await;
    let done = fleet.wait_for(&id, &[turnstone_domain::JobState::Completed]).await;
    assert_eq!(done["result"], json!({}));
    assert_eq!(fleet.models.calls().len(), 3);
    fleet.end().await;
}

/// JSON of the demanded form is found in a fence, between words and after thinking, if it is the only one.
#[tokio::test]
async fn a_demanded_value_is_found_between_words() {
    for (said, found) in [
        ("```json\n{\"n\": 1}\n```", true),
        ("Here you are: {\"n\": 1}. More?", true),
        ("<think>{\"n\": 2} or {\"n\": 1}</think>\n{\"n\": 1}", true),
        ("{\"n\": 1} or {\"n\": 2}", false),
    ] {
        let fleet = Fleet::builder().model(move |_| Reply::text(said)).start().await;
        let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "options": {"retry": {"max_attempts": 1}},
                         "ext_agent_output_schema": {"type": "object", "required": ["n"]}});
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        let result = if found { json!({"n": 1}) } else { Value::Null };
        assert_eq!(done["result"], result, "{said}: {done:#}");
        assert_eq!(fleet.models.calls().len(), if found { 1 } else { 2 }, "{said}");
        fleet.end().await;
    }
}

#[tokio::test]
async fn the_registrys_schema_overrides_the_jobs() {
    let fleet = Fleet::builder()
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("search", json!("not an object")),
            _ => Reply::text("done"),
        })
        .start()
        .await;
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m",
                     "ext_agent_tools": [{"name": "search", "parameters": {"type": ["object", "string"]}}]});
    let id = fleet.push(&job).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["ext_agent_tool_results"][0]["error"]["code"], "SCHEMA_VIOLATION", "{done:#}");
    assert!(fleet.tools.calls().is_empty());
    fleet.end().await;
}
