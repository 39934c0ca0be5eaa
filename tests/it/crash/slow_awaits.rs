//! A worker process is killed after its model has answered, while the turn waits for a guardrail or an MCP server.
//! The answer is committed before the wait and is not bought again.

use super::{FREE, killed, on_every_store, start};
use crate::tools::parrot;
use serde_json::json;
use std::path::Path;
use turnstone_domain::JobState;
use turnstone_tests::documents::oas;
use turnstone_tests::wait::until;
use turnstone_tests::{Backend, Fleet, Gate};

/// A fleet without workers, and a job whose answer has to pass a guardrail with this tool.
async fn guarded_by(backend: Backend, tool: &str) -> (Fleet, String) {
    let fleet = Fleet::builder().on(backend).workers(0).mcp_servers(&["parrot"]).start().await;
    let body = format!("guardrails:\n  output: {{tool_name: {tool}, assertion: \"true\"}}");
    fleet.register(oas("quiet", &body)).await;
    let job = json!({"type": "agent.crash", "args": ["go"], "meta": {"agent": "quiet", "user": {"id": "u-17"}},
                     "ext_agent_model": "m", "ext_agent_token_budget": 50_000});
    let id = fleet.push(&job).await;
    (fleet, id)
}

/// A worker with the first settings is killed while the turn waits; a worker with the second ones ends the job.
async fn is_paid_once(
    (fleet, id): (Fleet, String),
    [first, second]: [&str; 2],
    waits: impl AsyncFnOnce(&Fleet),
    heals: impl FnOnce(),
) {
    let mut worker = start(&fleet, 4, 15_000, first, None);
    waits(&fleet).await;
    worker.start_kill().expect("SIGKILL");
    killed(worker).await;
    assert_eq!(fleet.models.count(), 1);
    heals();
    fleet.release_all().await;
    let worker = start(&fleet, 4, 15_000, second, None);
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    drop(worker);
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("done")), "{done:#}");
    assert_eq!(fleet.models.count(), 1, "an answer that was paid for was bought again");
    assert_eq!(done["ext_agent_tokens_used"], 10 + 5, "{done:#}");
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_committed_before_its_guardrail_is_called() {
    on_every_store(async |backend| {
        let gate = Gate::default();
        let (fleet, id) = guarded_by(backend, "search").await;
        fleet.tools.hold(&gate);
        let waits = async |fleet: &Fleet| fleet.tools.seen(1).await;
        is_paid_once((fleet, id), [FREE, FREE], waits, || gate.open()).await;
    })
    .await;
}

/// Waits until the MCP server has logged this method.
async fn noted(log: &Path, method: &str) {
    until(method, async || {
        std::fs::read_to_string(log).is_ok_and(|log| log.lines().any(|line| line == method))
    })
    .await;
}

/// The MCP server does not answer the first worker's list of tools, or its call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn an_answer_is_committed_before_an_mcp_server_is_called() {
    on_every_store(async |backend| {
        for (mode, meet, method) in [("deaf", "1", "initialize"), ("well", "2", "tools/call echo")] {
            let folder = turnstone_tests::scratch::folder();
            let log = folder.path().join("calls");
            let config = parrot(mode, &json!({"env": {"CALLS": log.to_str().unwrap(), "MEET": meet}}));
            let first = json!({"mcp": {"parrot": config}}).to_string();
            let second = json!({"mcp": {"parrot": parrot("well", &json!({}))}}).to_string();
            let scene = guarded_by(backend, "parrot.echo").await;
            let waits = async |_: &Fleet| noted(&log, method).await;
            is_paid_once(scene, [&first, &second], waits, || {}).await;
        }
    })
    .await;
}
