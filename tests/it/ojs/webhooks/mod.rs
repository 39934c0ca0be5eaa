//! Webhooks: subscriptions, signed deliveries, retries.

mod addresses;
mod deliveries;
mod failures;
mod subscriptions;

use serde_json::{Value, json};
use turnstone_tests::OjsServer;

/// Where subscriptions are.
const SUBSCRIPTIONS: &str = "/ojs/v1/webhooks/subscriptions";

/// Makes a subscription, which has to be accepted; returns it with its secret.
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

/// The deliveries of a subscription, newest first.
async fn deliveries(server: &OjsServer, subscription: &Value) -> Vec<Value> {
    let list = server.get(&path(subscription, "/deliveries?limit=200")).await.expect(200).json();
    list["deliveries"].as_array().unwrap().clone()
}

/// Lets the scheduler tell what there is to tell, until it has made this many deliveries. On PostgreSQL a transaction of
/// another test may hold an event back for a moment.
async fn told(server: &OjsServer, subscription: &Value, enough: usize) -> Vec<Value> {
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
