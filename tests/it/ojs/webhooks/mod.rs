//! Webhooks: subscriptions, signed deliveries, retries.

mod addresses;
mod deliveries;
mod failures;
mod subscriptions;

use serde_json::{Value, json};
use turnstone_tests::OjsServer;

/// The path of subscriptions.
const SUBSCRIPTIONS: &str = "/ojs/v1/webhooks/subscriptions";

/// Creates a subscription and returns it with its secret.
async fn subscribe(server: &OjsServer, url: &str, more: &Value) -> Value {
    let mut body = json!({"url": url, "events": ["*"]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    server.post(SUBSCRIPTIONS, &body).await.expect(201).json()["subscription"].clone()
}

fn path(subscription: &Value, rest: &str) -> String {
    format!("{SUBSCRIPTIONS}/{}{rest}", subscription["id"].as_str().unwrap())
}

/// Returns the deliveries of a subscription, newest first.
async fn deliveries(server: &OjsServer, subscription: &Value) -> Vec<Value> {
    let list = server.get(&path(subscription, "/deliveries?limit=200")).await.expect(200).json();
    list["deliveries"].as_array().unwrap().clone()
}

/// Runs the scheduler until it has made this many deliveries. On PostgreSQL a transaction of another test may delay
/// an event.
async fn settled_deliveries(server: &OjsServer, subscription: &Value, enough: usize) -> Vec<Value> {
    let mut made = Vec::new();
    server
        .fleet
        .until("the deliveries are made", async || {
            server.fleet.tick().await;
            made = deliveries(server, subscription).await;
            made.len() >= enough
        })
        .await;
    made
}
