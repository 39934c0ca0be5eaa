//! Principals over HTTP: roles, tenants, names in bodies, and the audit. Every case runs on SQLite and on PostgreSQL.

mod addresses;
mod agent_tenants;
mod approvals;
mod audit;
mod caps;
mod chosen_ids;
mod costly;
mod emails;
mod foreign;
mod freeze;
mod keys;
mod matrix;
mod peers;
mod rules;
mod tenants;
mod tokens;
mod tools;
mod work;

use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;
use turnstone_tests::ojs_server::Reply;

/// A client with a key of its own.
struct Client<'a> {
    server: &'a OjsServer,
    id: String,
    secret: String,
}

impl<'a> Client<'a> {
    /// Creates a key: `{"name", "roles", "tenant"?, "acts_for"?, …}`.
    async fn new(server: &'a OjsServer, key: &Value) -> Self {
        let created = server.post("/keys", key).await.expect(201).json();
        let text = |name: &str| created[name].as_str().unwrap().to_owned();
        Self { server, id: text("id"), secret: text("secret") }
    }

    /// Creates a key of a tenant with one role.
    async fn of(server: &'a OjsServer, tenant: &str, role: &str) -> Self {
        let name = format!("{role}-of-{tenant}");
        Self::new(server, &json!({"name": name, "tenant": tenant, "roles": [role]})).await
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Reply {
        self.send_with(method, path, &[], body).await
    }

    async fn send_with(&self, method: Method, path: &str, more: &[(&str, &str)], body: &Value) -> Reply {
        let key = format!("Bearer {}", self.secret);
        let headers = [&[("Authorization", key.as_str())][..], more].concat();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.server.send(method, path, &headers, body).await
    }

    async fn send_text(&self, method: Method, path: &str, body: String) -> Reply {
        let key = format!("Bearer {}", self.secret);
        self.server.send(method, path, &[("Authorization", key.as_str())], body).await
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &Value::Null).await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, body).await
    }
}

/// Returns the newest entries of the audit, of all tenants.
async fn audit(server: &OjsServer) -> Vec<Value> {
    let reply = server.get("/audit?limit=200").await.expect(200).json();
    reply["entries"].as_array().unwrap().clone()
}
