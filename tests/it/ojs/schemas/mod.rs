//! Schemas of arguments: the registry, and validation when jobs are enqueued.

mod enqueue;
mod registry;

use serde_json::Value;
use turnstone_tests::OjsServer;
use turnstone_tests::ojs_server::Reply;

async fn register(server: &OjsServer, job_type: &str, version: i64, body: &Value) -> Reply {
    server.put(&format!("/ojs/v1/admin/schemas/{job_type}/{version}"), body).await
}
