//! A provider with every kind of failure: bounded memory, the right code, and the next model where it may help.

use super::languages::providers;
use crate::paused_timers::PausedTimers;
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_tests::{Fleet, Reply};

/// The timeout of an answer in tests that set one.
const TIMEOUT: Duration = Duration::from_secs(20);
/// More bytes than a worker reads of one answer.
const HUGE: usize = 10 * 1024 * 1024;

fn said(text: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

/// The provider's failure, by its name in the job's arguments; the code that it leads to without another model; and
/// whether another model is called if there is one.
const WRONGS: [(&str, &str, bool); 10] = [
    ("busy", "RATE_LIMITED", true),
    ("down", "AGENT_MODEL_UNAVAILABLE", true),
    ("cut", "AGENT_MODEL_UNAVAILABLE", true),
    ("no json", "OSSA_LLM_ERROR", true),
    ("no utf-8", "OSSA_LLM_ERROR", true),
    ("endless", "OSSA_LLM_ERROR", true),
    ("huge", "OSSA_LLM_ERROR", true),
    ("refused", "OSSA_LLM_ERROR", false),
    ("length", "OSSA_MAX_TOKENS_EXCEEDED", false),
    ("filtered", "OSSA_CONTENT_FILTERED", false),
];

fn wrong(name: &str) -> Reply {
    match name {
        "busy" => Reply::Later(429, 7),
        "down" => Reply::Status(503),
        "cut" => Reply::Wire(said("18 ").into_bytes()),
        "no json" => Reply::Wire(b"data: {oops\n\n".to_vec()),
        "no utf-8" => Reply::Wire(b"data: \xff\xfe\n\n".to_vec()),
        "endless" => Reply::Wire(vec![b'x'; HUGE]),
        "huge" => Reply::Wire(said(&"y".repeat(1 << 20)).repeat(HUGE >> 20).into_bytes()),
        "refused" => Reply::Status(400),
        "length" => Reply::Ended("It was a dark and".to_owned(), "length"),
        "filtered" => Reply::Ended(String::new(), "content_filter"),
        other => panic!("{other}"),
    }
}

async fn hostile() -> Fleet {
    let script = |request: &Value| match request["model"].as_str() {
        Some("honest") => Reply::text("done"),
        _ => {
            let input = request["messages"].as_array().unwrap().iter().find(|m| m["role"] == "user").unwrap();
            wrong(input["content"].as_str().unwrap())
        }
    };
    Fleet::builder().model(script).start().await
}

fn job(input: &str) -> Value {
    json!({"type": "agent.x", "args": [input], "ext_agent_model": "hostile", "options": {"retry": {"max_attempts": 2, "jitter": false}}})
}

/// Issue 5, "Errors mapped by class": retry, fall back, or fail.
#[tokio::test]
async fn every_wrong_of_a_provider_has_its_code() {
    let fleet = hostile().await;
    for (name, code, _) in WRONGS {
        let id = fleet.push(&job(name)).await;
        let ended = fleet.settled(&id).await;
        assert_eq!(ended["error"]["code"], code, "{name}: {ended:#}");
    }
    fleet.end().await;
}

/// Agent extension §3 rule 2: the next model is called when this one is unreachable or its answer is invalid. It is
/// not called when the request was refused or an answer came.
#[tokio::test]
async fn the_next_model_is_called_where_it_may_help() {
    let fleet = hostile().await;
    for (name, code, helps) in WRONGS {
        let mut job = job(name);
        job["ext_agent_fallback_models"] = json!(["honest"]);
        let ended = fleet.settled(&fleet.push(&job).await).await;
        if helps {
            assert_eq!((&ended["state"], &ended["result"]), (&json!("completed"), &json!("done")), "{name}");
        } else {
            assert_eq!(ended["error"]["code"], code, "{name}");
        }
    }
    fleet.end().await;
}

/// A job is retried at the time of `Retry-After`, and not earlier.
#[tokio::test]
async fn a_busy_provider_is_not_called_before_its_retry_after() {
    let fleet = hostile().await;
    let id = fleet.push(&job("busy")).await;
    assert_eq!(fleet.settled(&id).await["state"], "retryable");
    fleet.clock.advance_ms(6_900);
    fleet.tick().await;
    assert_eq!(fleet.get(&format!("/ojs/v1/jobs/{id}")).await["job"]["state"], "retryable");
    fleet.clock.advance_ms(200);
    fleet.tick().await;
    let ended = fleet.wait_for(&id, &[turnstone_domain::JobState::Discarded]).await;
    assert_eq!(ended["error"]["code"], "RATE_LIMITED");
    assert_eq!(fleet.models.calls().len(), 2);
    fleet.end().await;
}

/// Cached tokens are a part of the input, whatever the provider reports, and are in the event of INFER.
#[tokio::test]
async fn cached_tokens_are_reported_and_never_exceed_the_input() {
    let usage = |cached: i64| json!({"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": cached}});
    let fleet = Fleet::builder()
        .model(move |request| match request["messages"][0]["content"].as_str() {
            Some("honest") => Reply::Odd("a".to_owned(), usage(16)),
            _ => Reply::Odd("b".to_owned(), usage(9_000)),
        })
        .start()
        .await;
    for (input, cached) in [("honest", 16), ("boastful", 20)] {
        let id = fleet.push(&job(input)).await;
        fleet.settled(&id).await;
        let events = fleet.get(&format!("/ojs/v1/jobs/{id}/events?limit=1000")).await;
        let events = events["events"].as_array().unwrap();
        let infer = events.iter().find(|event| event["data"]["phase"] == "infer").unwrap();
        let reported =
            ["tokens_in", "tokens_cached", "tokens_out"].map(|name| infer["data"][name].as_i64().unwrap());
        assert_eq!(reported, [20, cached, 5], "{input}");
    }
    fleet.end().await;
}

/// RS-19, RS-42: the limit applies to each model call; after a timeout the next model is called.
#[tokio::test]
async fn a_model_that_does_not_answer_in_time_is_followed_by_the_next() {
    let mut fleet = Fleet::builder()
        .workers(0)
        .model(|request| match request["model"].as_str() {
            Some("quick") => Reply::text("done"),
            _ => Reply::Hang,
        })
        .start()
        .await;
    let providers =
        providers(json!({"kind": "openai", "base_url": fleet.models.url, "timeout_ms": TIMEOUT.as_millis()}));
    fleet.add_worker_with(4, |mut deps| {
        deps.providers = providers;
        deps
    });
    let alone = fleet.push(&job("slow")).await;
    fleet.models.seen(1).await;
    PausedTimers::skip(TIMEOUT).await;
    let ended = fleet.settled(&alone).await;
    assert_eq!(ended["error"]["code"], "OSSA_LLM_TIMEOUT");
    let mut job = job("slow");
    job["ext_agent_fallback_models"] = json!(["quick"]);
    let followed = fleet.push(&job).await;
    fleet.models.seen(2).await;
    PausedTimers::skip(TIMEOUT).await;
    let ended = fleet.settled(&followed).await;
    assert_eq!(
        (&ended["state"], &ended["ext_agent_model_used"]),
        (&json!("completed"), &json!("quick")),
        "{ended:#}"
    );
    fleet.end().await;
}

/// RS-42: `spec.constraints.timeout_seconds` ends a model call. The worker's own timeout is an hour, and an earlier
/// call of an agent without the limit is still running.
#[tokio::test]
async fn timeout_seconds_ends_a_model_call() {
    let mut fleet = Fleet::builder().workers(0).model(|_| Reply::Hang).start().await;
    fleet.add_worker_with(4, |mut deps| {
        deps.options.model_timeout = Duration::from_secs(3_600);
        deps
    });
    let mut ids = Vec::new();
    for (name, constraints) in [("patient", ""), ("hasty", "  constraints: {timeout_seconds: 0.5}\n")] {
        let manifest = format!(
            "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: {name}}}\nspec:\n  role: You wait.\n  llm: {{provider: openai, \
             model: m, retry_config: {{max_attempts: 1}}}}\n{constraints}"
        );
        fleet.register(manifest).await;
        let job = json!({"type": "agent.x", "args": ["hi"], "meta": {"agent": name},
                         "options": {"retry": {"max_attempts": 1}}});
        ids.push(fleet.push(&job).await);
        fleet.models.seen(ids.len()).await;
    }
    let ended = fleet.settled(&ids[1]).await;
    assert_eq!((&ended["state"], &ended["error"]["code"]), (&json!("discarded"), &json!("OSSA_LLM_TIMEOUT")));
    assert_eq!((&fleet.job(&ids[0]).await["state"], fleet.models.count()), (&json!("active"), 2));
    let (status, body) = fleet.send(reqwest::Method::DELETE, &format!("/ojs/v1/jobs/{}", ids[0]), "").await;
    assert!(status.is_success(), "{body:#}");
    fleet.end().await;
}

/// RS-42: `timeout_seconds` is one deadline for all models and retries of a call.
#[tokio::test]
async fn timeout_seconds_bounds_fallbacks_and_retries_together() {
    let fleet = Fleet::builder().model(|_| Reply::Hang).start().await;
    let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: hasty}\nspec:\n  role: You wait.\n  \
                    llm: {provider: openai, model: m, fallback_models: [{provider: openai, model: n}]}\n  \
                    constraints: {timeout_seconds: 0.5}\n";
    fleet.register(manifest).await;
    let job = json!({"type": "agent.x", "args": ["hi"], "meta": {"agent": "hasty"},
                     "options": {"retry": {"max_attempts": 1}}});
    let ended = fleet.settled(&fleet.push(&job).await).await;
    assert_eq!((&ended["state"], &ended["error"]["code"]), (&json!("discarded"), &json!("OSSA_LLM_TIMEOUT")));
    assert_eq!(fleet.models.count(), 1, "the first model used up the time of both, and of every retry");
    fleet.end().await;
}

/// RS-42: `safety.guardrails.max_execution_time_seconds` ends an attempt with all its turns, however quick each of its
/// calls is.
#[tokio::test]
async fn max_execution_time_ends_an_attempt() {
    let fleet = Fleet::builder().model(|_| Reply::call("search", json!({}))).start().await;
    let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: busy}\nspec:\n  role: You search.\n  \
                    llm: {provider: openai, model: m}\n  tools: [{type: http, name: search}]\n  \
                    constraints: {max_turns: 1000000}\n  turn_chain: {max_tool_turns: 1000000}\n  \
                    safety: {guardrails: {max_execution_time_seconds: 1}}\n";
    fleet.register(manifest).await;
    let job = json!({"type": "agent.x", "args": ["hi"], "meta": {"agent": "busy"},
                     "options": {"retry": {"max_attempts": 1}}});
    let ended = fleet.settled(&fleet.push(&job).await).await;
    assert_eq!(ended["state"], "discarded", "{ended:#}");
    assert!(ended["error"]["message"].to_string().contains("max_execution_time_seconds"), "{ended:#}");
    fleet.end().await;
}

/// RS-19: a call with possibly truncated arguments is not made; a complete one is.
#[tokio::test]
async fn a_truncated_call_is_not_made() {
    let piece = |delta: Value, finish: Value| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let asks = move |finish: &str, calls: &[(&str, &str)]| {
        let calls: Vec<Value> = (0..)
            .zip(calls)
            .map(|(index, (name, arguments))| {
                json!({"index": index, "id": format!("c{index}"), "type": "function",
                       "function": {"name": name, "arguments": arguments}})
            })
            .collect();
        let text = piece(json!({"tool_calls": calls}), Value::Null) + &piece(json!({}), json!(finish));
        Reply::Wire((text + "data: [DONE]\n\n").into_bytes())
    };
    let script = move |request: &Value| {
        let input = request["messages"].as_array().unwrap().iter().find(|m| m["role"] == "user").unwrap();
        match (input["content"].as_str().unwrap(), turnstone_tests::model_server::outcomes(request)) {
            ("withheld", 0) => asks("content_filter", &[("search", "{\"q\": 1}")]),
            ("one", 0) => asks("length", &[("search", "")]),
            ("two", 0) => asks("length", &[("search", "{\"q\": 1}"), ("search", "")]),
            _ => Reply::text("done"),
        }
    };
    let fleet = Fleet::builder().model(script).start().await;
    for (input, state, code, calls) in [
        ("withheld", "discarded", json!("OSSA_CONTENT_FILTERED"), 0),
        ("one", "discarded", json!("OSSA_MAX_TOKENS_EXCEEDED"), 0),
        ("two", "completed", Value::Null, 1),
    ] {
        let job = json!({"type": "agent.x", "args": [input], "ext_agent_model": "m", "ext_agent_tools": [{"name": "search"}],
                         "options": {"retry": {"max_attempts": 1}}});
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        assert_eq!((&done["state"], &done["error"]["code"]), (&json!(state), &code), "{input}: {done:#}");
        assert_eq!(fleet.tools.calls().len(), calls, "{input}");
    }
    fleet.end().await;
}
