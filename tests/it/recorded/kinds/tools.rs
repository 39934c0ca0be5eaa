//! Tool calls: HTTP, built in and MCP; parallel, failing, retried, and with an unknown outcome.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, Stage, job, job_of, with};
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_tests::documents::{oas, ossa};
use turnstone_tests::{Gate, Reply, model_server};

recordings!(
    everywhere: [parallel_calls, unknown_outcome],
    sqlite_first: [
        built_in_tool,
        tool_that_fails,
        tool_that_is_tried_again,

        unknown_tool_and_wrong_arguments,

        restricted_calls,

    ],
);

/// Makes these calls in one answer, and then answers.
fn at_once(tools: &'static [&'static str]) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| match model_server::outcomes(request) {
        0 => {
            let calls = tools.iter().enumerate();
            Reply::Calls(calls.map(|(n, name)| ((*name).to_owned(), json!({"n": n}))).collect(), (12, 7))
        }
        _ => Reply::text("done"),
    }
}

async fn parallel_calls(ground: Ground) -> Value {
    let mut stage = ground.stage(at_once(&["web_search", "search", "search"])).await;
    let spec = "  tools:\n    - {type: http, name: search, parallel: true}\n    \
                - {type: http, name: web_search, config: {parallel: true}}\n";
    stage.register(&[ossa("desk", spec)]).await;
    stage.run(&job_of("desk")).await;
    stage.recorded().await
}

async fn built_in_tool(ground: Ground) -> Value {
    let mut stage = ground.stage(at_once(&["clock"])).await;
    stage.run(&with(job("what time is it?"), json!({"ext_agent_tools": [{"name": "clock"}]}))).await;
    stage.recorded().await
}

async fn tool_that_fails(ground: Ground) -> Value {
    let mut stage = ground.stage(at_once(&["broken", "search"])).await;
    stage.run(&with(job("go"), json!({"ext_agent_tools": [{"name": "broken"}, {"name": "search"}]}))).await;
    stage.recorded().await
}

const QUICK: &str = "retry_policy: {initial_delay_ms: 1, backoff: fixed}";

async fn tool_that_is_tried_again(ground: Ground) -> Value {
    let mut stage = ground.stage(at_once(&["search"])).await;
    stage
        .register(&[ossa("desk", &format!("  tools:\n    - {{type: http, name: search, {QUICK}}}\n"))])
        .await;
    stage.fleet.tools.fail("search", 2);
    stage.run(&job_of("desk")).await;
    stage.recorded().await
}

/// A worker drains during a call that is not idempotent; the next worker opens a review.
async fn unknown_outcome(ground: Ground) -> Value {
    let fleet = ground.fleet(at_once(&["book"])).drain_grace(Duration::from_millis(1));
    let mut stage = Stage::of(fleet).await;
    let gate = Gate::default();
    stage.fleet.tools.hold(&gate);
    let id = stage.push(&job("book")).await;
    stage.fleet.tools.seen(1).await;
    stage.fleet.stop_workers().await;
    gate.open();
    stage.fleet.add_worker(4);
    stage.parked(&id).await;
    stage.get("/reviews").await;
    stage.answer_review("approve", "operator").await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn unknown_tool_and_wrong_arguments(ground: Ground) -> Value {
    let mut stage = ground.stage(at_once(&["nothing", "search"])).await;
    let schema = "{type: object, properties: {n: {type: string}}}";
    stage
        .register(&[ossa(
            "desk",
            &format!("  tools:\n    - {{type: http, name: search, input_schema: {schema}}}\n"),
        )])
        .await;
    stage.run(&job_of("desk")).await;
    stage.recorded().await
}

/// Restrictions in CEL refuse an input and an output, and withhold a result.
async fn restricted_calls(ground: Ground) -> Value {
    let calls = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 900})),
        1 => Reply::call("book", json!({"price": 640})),
        2 => Reply::call("search", json!({"q": "x"})),
        3 => Reply::call("clock", json!({})),
        _ => Reply::text("done"),
    };
    let mut stage = ground.stage(calls).await;
    let rest = "capabilities:\n  book: {input_restriction: {assertion: 'recent[\"book\"].inputs.price <= 800'}}\n  \
                search: {output_restriction: {assertion: 'recent.search.outputs.tool == \"another\"'}}\n  \
                clock: {collect_results: false}\n";
    stage.register(&[oas("booker", rest)]).await;
    stage.run(&job_of("booker")).await;
    stage.recorded().await
}
