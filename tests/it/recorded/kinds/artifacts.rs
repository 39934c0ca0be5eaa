//! Agents that make files.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, job_of};
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::{Reply, model_server};

recordings!(everywhere: [], sqlite_first: [artifact_that_is_saved]);

async fn artifact_that_is_saved(ground: Ground) -> Value {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => {
            let file = json!({"name": "note.txt", "media_type": "text/plain", "content": "a note"});
            Reply::call("save-artifact", file)
        }
        _ => Reply::text("it is saved"),
    };
    let mut stage = ground.stage(script).await;
    stage.register(&[oas("maker", "capabilities: {save-artifact: {user_identity: false}}")]).await;
    stage.run(&job_of("maker")).await;
    stage.recorded().await
}
