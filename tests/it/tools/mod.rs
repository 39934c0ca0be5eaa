//! The tools of a turn: RESOL, and the tools of MCP servers.

mod manifest;
mod mcp;
mod page;
mod programs;
mod stdio;
mod unusual;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use turnstone_tests::Fleet;
use turnstone_tests::servers::need_python;
use turnstone_worker::Deps;
use turnstone_worker::tool::McpConfig;

/// The MCP server of the tests in this folder.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/tools/mcp_server.py");

/// Returns a Python that every user can start, if the system has one.
pub fn system_python() -> &'static str {
    need_python();
    let of_system = ["/usr/bin/python3", "/usr/local/bin/python3"];
    of_system.into_iter().find(|path| std::path::Path::new(path).exists()).unwrap_or("python3")
}

/// Configures an MCP server over stdio with the behaviour of `mode`.
pub fn parrot(mode: &str, more: &Value) -> Value {
    need_python();
    let mut config = json!({"command": ["python3", SCRIPT, mode], "connect_timeout_ms": 60_000});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

/// Adds these MCP servers to a worker.
pub fn with_servers(mut deps: Deps, servers: &Value) -> Deps {
    let configs: BTreeMap<String, McpConfig> = serde_json::from_value(servers.clone()).unwrap();
    let clock = Arc::clone(&deps.clock);
    deps.toolbox = deps.toolbox.with_mcp(&configs, &clock).unwrap();
    deps
}

/// Returns the body of the newest checkpoint of RESOL.
async fn resolved(fleet: &Fleet, job: &str) -> Value {
    let engagement = fleet.engagement_of(job).await;
    let body = fleet.get(&format!("/engagements/{engagement}/checkpoints?bodies=true")).await;
    let checkpoints = body["checkpoints"].as_array().cloned().unwrap_or_default();
    let newest = checkpoints.iter().rfind(|checkpoint| checkpoint["phase"] == "resol");
    newest.unwrap_or_else(|| panic!("no RESOL in {body:#}"))["body"].clone()
}
