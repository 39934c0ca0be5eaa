//! Agents with state between their turns.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, job_of, retry, with};
use serde_json::{Value, json};
use turnstone_tests::documents::ossa;
use turnstone_tests::model_server::calls;

recordings!(
    everywhere: [session_state],
    sqlite_first: [state_that_is_rolled_back],
);

async fn session_state(ground: Ground) -> Value {
    let script = calls(vec![
        vec![
            ("state_set", json!({"key": "plan", "value": {"step": 1}})),
            ("state_append", json!({"key": "log", "value": "a"})),
        ],
        vec![
            ("state_get", json!({"key": "plan"})),
            ("state_checkpoint", json!({})),
            ("state_set", json!({"key": "b", "value": 2})),
            ("state_rollback", json!({"checkpoint": "checkpoint-1"})),
            ("state_delete", json!({"key": "plan"})),
        ],
    ]);
    let mut stage = ground.stage(script).await;
    stage.register(&[ossa("desk", "  state: {mode: session}\n")]).await;
    stage.run(&job_of("desk")).await;
    stage.recorded().await
}

/// The turn that changed the state times out.
async fn state_that_is_rolled_back(ground: Ground) -> Value {
    let script = calls(vec![
        vec![("state_set", json!({"key": "a", "value": 1}))],
        vec![("state_set", json!({"key": "a", "value": 2})), ("hang", json!({}))],
    ]);
    let mut stage = ground.stage(script).await;
    stage.register(&[ossa("desk", "  state: {mode: session}\n  tools: [{type: http, name: hang}]\n")]).await;
    let options = with(retry(1), json!({"timeout_ms": 700}));
    stage.run(&with(job_of("desk"), json!({"options": options}))).await;
    stage.recorded().await
}
