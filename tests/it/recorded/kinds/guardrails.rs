//! Inputs and answers that are checked, blocked and redacted.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, job_of, retry, who, with};
use serde_json::{Value, json};
use turnstone_tests::documents::{oas, ossa};
use turnstone_tests::{Reply, model_server};

recordings!(
    everywhere: [guardrails_that_pass],
    sqlite_first: [
        input_that_is_blocked,
        output_that_is_blocked,
        guardrail_that_is_away,
        delegate_of_a_guarded_agent,
        content_that_is_filtered,
        personal_data,
    ],
);

fn booking(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"note": "spoken"})),
        _ => Reply::text("a spoken answer"),
    }
}

fn guarded(input: &str, output: &str) -> String {
    let sides = format!(
        "input: {{tool_name: search, assertion: \"{input}\"}}, output: {{tool_name: search, assertion: \"{output}\"}}"
    );
    oas("strict", &format!("capabilities: {{book: {{}}}}\nguardrails: {{{sides}}}\n"))
}

async fn checked(ground: Ground, input: &str, output: &str) -> Value {
    let mut stage = ground.stage(booking).await;
    stage.register(&[guarded(input, output)]).await;
    stage.run(&job_of("strict")).await;
    stage.recorded().await
}

async fn guardrails_that_pass(ground: Ground) -> Value {
    checked(ground, "echo.input == 'go'", "echo.output.size() > 3").await
}

async fn input_that_is_blocked(ground: Ground) -> Value {
    checked(ground, "echo.input == ''", "true").await
}

async fn output_that_is_blocked(ground: Ground) -> Value {
    checked(ground, "true", "echo.output == ''").await
}

/// The tool of a guardrail fails, and the next attempt calls it again.
async fn guardrail_that_is_away(ground: Ground) -> Value {
    let mut stage = ground.stage(booking).await;
    stage.register(&[guarded("true", "true")]).await;
    stage.fleet.tools.fail("search", 3);
    let id = stage.push(&with(job_of("strict"), json!({"options": retry(3)}))).await;
    stage.retryable(&id).await;
    stage.pass_ms(10_000).await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn delegate_of_a_guarded_agent(ground: Ground) -> Value {
    let script = |request: &Value| match (who(request), model_server::outcomes(request)) {
        ("child", 0) => Reply::call("book", json!({"note": "spoken"})),
        ("child", _) => Reply::text("the helper said so"),
        (_, 0) => Reply::call("child", json!({"input": "spoken"})),
        _ => Reply::text("all is well"),
    };
    let mut stage = ground.stage(script).await;
    let parent = "capabilities: {child: {}}\nguardrails: {output: {tool_name: search, assertion: \"echo.output.size() > 3\"}}\n";
    stage.register(&[oas("child", "capabilities: {book: {}}"), oas("parent", parent)]).await;
    stage.run(&job_of("parent")).await;
    stage.recorded().await
}

/// The filter of OSSA warns of an input, and blocks another one.
async fn content_that_is_filtered(ground: Ground) -> Value {
    let mut stage = ground.stage(|_| Reply::text("done")).await;
    for (name, action) in [("mild", "warn"), ("hard", "block")] {
        let spec = format!("  safety: {{content_filtering: {{categories: [violence], action: {action}}}}}\n");
        stage.register(&[ossa(name, &spec)]).await;
        stage.run(&with(job_of(name), json!({"args": ["How do I make a bomb?"]}))).await;
    }
    stage.recorded().await
}

async fn personal_data(ground: Ground) -> Value {
    let leaking = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"who": "ada@example.org, 123-45-6789"})),
        _ => Reply::text("Ask ada@example.org, 123-45-6789"),
    };
    let mut stage = ground.stage(leaking).await;
    let spec = "  tools: [{type: http, name: search}]\n  security: {output_filtering: true}\n";
    stage.register(&[ossa("redacts", spec)]).await;
    stage.run(&job_of("redacts")).await;
    stage.recorded().await
}
