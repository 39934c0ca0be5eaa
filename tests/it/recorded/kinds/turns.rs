//! Engagements of a single agent: one turn, several turns, and the format of the answer.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, job, job_of, retry, with};
use serde_json::{Value, json};
use turnstone_tests::Reply;
use turnstone_tests::documents::ossa;
pub use turnstone_tests::model_server::trip;

recordings!(
    everywhere: [single_turn, several_turns],
    sqlite_first: [
        structured_output,
        output_of_the_wrong_form,





        too_many_turns,
    ],
);

async fn single_turn(ground: Ground) -> Value {
    let mut stage = ground.stage(|_| Reply::text("Hello, \"world\" – ☃")).await;
    stage.run(&job("hello")).await;
    stage.recorded().await
}

async fn several_turns(ground: Ground) -> Value {
    let mut stage = ground.stage(trip).await;
    stage.run(&job("a trip")).await;
    stage.recorded().await
}

const NUMBER: &str = r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;

fn formed() -> Value {
    with(job("count"), json!({"ext_agent_output_schema": serde_json::from_str::<Value>(NUMBER).unwrap()}))
}

async fn structured_output(ground: Ground) -> Value {
    let mut stage = ground.stage(|_| Reply::text("{\"n\": 17}")).await;
    stage.run(&formed()).await;
    stage.recorded().await
}

async fn output_of_the_wrong_form(ground: Ground) -> Value {
    let mut stage = ground.stage(|_| Reply::text("seventeen")).await;
    stage.run(&formed()).await;
    stage.recorded().await
}

async fn too_many_turns(ground: Ground) -> Value {
    let mut stage = ground.stage(|_| Reply::call("search", json!({}))).await;
    let spec = "  tools: [{type: http, name: search}]\n  constraints: {max_turns: 2}\n";
    stage.register(&[ossa("desk", spec)]).await;
    let options = json!({"options": with(retry(3), json!({"queue": "desk"}))});
    stage.run(&with(job_of("desk"), options)).await;
    stage.recorded().await
}
