//! Calls of an MCP server, which need Python.

use crate::recorded::stage::{Ground, Stage, job, with};
use crate::tools::{parrot, with_servers};
use serde_json::{Value, json};
use turnstone_tests::{Reply, model_server};

/// The names of the kinds in this file.
pub(super) const KINDS: &[&str] = &["mcp_server"];

mod sqlite {
    #[tokio::test]
    #[cfg_attr(no_python, ignore = "needs Python 3")]
    async fn mcp_server() {
        crate::recorded::compare::on_sqlite("mcp_server", super::mcp_server).await;
    }
}

mod postgres {
    #[tokio::test]
    #[ignore = "long: the same answers on PostgreSQL"]
    async fn mcp_server() {
        crate::recorded::compare::on_postgres("mcp_server", super::mcp_server).await;
    }
}

/// One tool of the server answers, one fails, and one does not exist.
async fn mcp_server(ground: Ground) -> Value {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("parrot_echo", json!({"text": "polly"})),
        1 => Reply::call("parrot_fail", json!({})),
        _ => Reply::text("done"),
    };
    let mut stage = Stage::of(ground.fleet(script).workers(0)).await;
    let servers = json!({"parrot": parrot("well", &json!({}))});
    stage.fleet.add_worker_with(4, |deps| with_servers(deps, &servers));
    let tools = ["parrot.echo", "parrot.fail", "gone.echo"].map(|name| json!({"name": name}));
    stage.run(&with(job("go"), json!({"ext_agent_tools": tools}))).await;
    stage.recorded().await
}
