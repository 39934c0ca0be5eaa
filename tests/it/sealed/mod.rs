//! Encryption at rest: a database that is read without the key, or opened with a wrong one.

mod content;
mod keys;
mod programs;
mod sweep;
mod tampered;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use turnstone_store::EncryptionKeys;
use turnstone_tests::{Backend, Fleet, OjsServer};

/// Returns the text of a key of one repeated byte.
pub fn key(byte: u8) -> String {
    BASE64_STANDARD.encode([byte; 32])
}

/// Returns a current key, and previous ones for reading.
fn keys(current: u8, previous: &[u8]) -> EncryptionKeys {
    let previous: Vec<String> = previous.iter().map(|byte| key(*byte)).collect();
    EncryptionKeys::new(&key(current), &previous).unwrap()
}

/// Starts a server with an encrypted database.
pub async fn sealed(backend: Backend) -> OjsServer {
    OjsServer::over(Fleet::builder().on(backend).sealed(keys(1, &[])).workers(0).start().await)
}

/// Enqueues, fetches and completes a job of queue `q`, and returns its id.
async fn completed(server: &OjsServer, args: Value, result: Value) -> String {
    let id = server.push(&json!({"type": "mail.send", "args": args, "options": {"queue": "q"}})).await;
    server.post("/ojs/v1/workers/fetch", &json!({"queues": ["q"], "worker_id": "w"})).await.expect(200);
    let ack = json!({"job_id": id, "result": result});
    server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
    id
}
