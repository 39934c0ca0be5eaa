//! Secrets that are changed, and authorities that are private, while the server runs.

use super::Dev;
use crate::openagentspec::Authority;
use crate::program::{Program, run};
use axum::extract::{Path as Segment, State};
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_tests::wait;

const PUSH: [&str; 8] =
    ["job", "push", "--type", "agent.ask", "--args", "[\"hi\"]", "--set", "ext_agent_model=m"];

/// The calls that reached the server: the path, and the header `authorization`.
type Calls = Arc<Mutex<Vec<(String, String)>>>;

/// A provider, a tool and a receiver of webhooks behind one certificate, or without one.
struct Far {
    url: String,
    calls: Calls,
    _serving: AbortOnDropHandle<std::io::Result<()>>,
}

impl Far {
    async fn start(certificate: Option<&Path>) -> Self {
        let tls = certificate.map(|folder| {
            turnstone_api::Tls::load(&folder.join("cert.pem"), &folder.join("key.pem")).unwrap()
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let calls = Calls::default();
        let app = Router::new().route("/{*path}", post(answer)).with_state(Arc::clone(&calls));
        let limits = turnstone_api::ServeLimits::default();
        let serving = turnstone_api::serve(listener, tls, app, limits, CancellationToken::new());
        Self { url, calls, _serving: AbortOnDropHandle::new(tokio::spawn(serving)) }
    }

    fn calls(&self, path: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(called, _)| called == path).map(|(_, key)| key.clone()).collect()
    }
}

/// A model that calls the tool once and then answers.
async fn answer(
    State(calls): State<Calls>,
    Segment(path): Segment<String>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Json<Value> {
    let key = headers.get("authorization").map_or("", |key| key.to_str().unwrap()).to_owned();
    calls.lock().unwrap().push((path.clone(), key));
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let has_outcome = messages.iter().any(|message| message["role"] == "tool");
    let call = json!({"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}});
    let (message, reason) = match has_outcome {
        true => (json!({"role": "assistant", "content": "done"}), "stop"),
        false => (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls"),
    };
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7});
    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
    let completion =
        json!({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage});
    Json(if path.starts_with("v1/") { completion } else { json!({"found": 1}) })
}

/// Settings with secrets in files of the folder.
fn settings(far: &Far, folder: &Path) -> String {
    let place = folder.display();
    format!(
        "[providers.far]\nkind = 'openai'\nbase_url = '{0}/v1'\napi_key = 'file:{place}/model.key'\n\
         breaker = {{enabled = false}}\n[models]\ndefault_model = 'm'\n[webhooks]\nallow_private = true\n\
         [tools.search]\ndescription = 'searches'\nurl = '{0}/search'\nallow_private = true\nidempotent = true\n\
         headers = {{ Authorization = {{ secret = 'file:{place}/tool.key', prefix = 'Bearer ' }} }}\n",
        far.url
    )
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

/// Runs a job that calls the tool, and returns it.
async fn job(dev: &Dev) -> Value {
    let tools = ["--set", "ext_agent_tools=[{\"name\": \"search\"}]", "--set", "retry={\"max_attempts\": 1}"];
    let id = dev.says_ok(&[&PUSH[..], &tools, &["-o", "ids"]].concat()).await;
    dev.run(&["job", "watch", &id]).await;
    dev.get(&format!("/ojs/v1/jobs/{id}")).await["job"].clone()
}

/// Files of secrets are read for each call, so a new key counts from the next call on. SIGHUP checks them.
#[tokio::test]
async fn new_keys_of_models_and_tools_count_from_the_next_call_on() {
    let far = Far::start(None).await;
    let folder = turnstone_tests::scratch::folder();
    write(folder.path(), "turnstone.toml", &settings(&far, folder.path()));
    write(folder.path(), "model.key", "model-key-1");
    write(folder.path(), "tool.key", "tool-key-1");
    let mut dev = Dev::start(folder.path(), &[]).await;
    assert_eq!(job(&dev).await["state"], "completed");
    write(folder.path(), "model.key", "model-key-2\n");
    write(folder.path(), "tool.key", "tool-key-2\n");
    dev.signal("HUP");
    dev.warns("the secrets of models and tools were read again").await;
    assert_eq!(job(&dev).await["state"], "completed");
    let model = ["Bearer model-key-1", "Bearer model-key-1", "Bearer model-key-2", "Bearer model-key-2"];
    assert_eq!(far.calls("v1/chat/completions"), model);
    assert_eq!(far.calls("search"), ["Bearer tool-key-1", "Bearer tool-key-2"]);
    std::fs::remove_file(folder.path().join("model.key")).unwrap();
    dev.signal("HUP");
    let log = dev.warns("a secret cannot be used; calls that need it fail").await;
    assert!(log.contains("model.key"), "{log}");
    let failed = job(&dev).await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("model.key"), "{failed}");
}

/// SIGHUP reads the keys of clients again: the old key is refused, and a key that cannot be used changes nothing.
#[tokio::test]
async fn keys_of_clients_are_read_again_at_hangup() {
    let folder = turnstone_tests::scratch::folder();
    let key = |digit: &str| format!("{digit}123456789abcdef0123456789abcdef");
    let place = folder.path().display();
    write(folder.path(), "turnstone.toml", &format!("[server]\napi_keys = ['file:{place}/api.key']\n"));
    write(folder.path(), "api.key", &key("a"));
    let mut dev = Dev::start(folder.path(), &[]).await;
    let status = async |url: &str, key: &str| {
        let request = turnstone_tests::http::client().get(format!("{url}/ojs/v1/jobs")).bearer_auth(key);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((status(&dev.url, &key("a")).await, status(&dev.url, &key("b")).await), (200, 401));
    write(folder.path(), "api.key", &key("b"));
    dev.signal("HUP");
    dev.warns("the configured keys of clients were read again").await;
    assert_eq!((status(&dev.url, &key("a")).await, status(&dev.url, &key("b")).await), (401, 200));
    write(folder.path(), "api.key", "short");
    dev.signal("HUP");
    dev.warns("the api keeps its current ones").await;
    assert_eq!(status(&dev.url, &key("b")).await, 200);
    assert!(!dev.program.warned().contains(&key("b")), "a key is never logged");
}

/// `SSL_CERT_FILE` names the authorities that calls of models, tools and webhooks trust.
#[tokio::test]
async fn a_private_authority_is_trusted_by_models_tools_and_webhooks() {
    turnstone_tests::fleet::install_crypto();
    let folder = turnstone_tests::scratch::folder();
    Authority::new().equip(folder.path());
    let far = Far::start(Some(folder.path())).await;
    write(folder.path(), "turnstone.toml", &settings(&far, folder.path()));
    write(folder.path(), "model.key", "model-key-1");
    write(folder.path(), "tool.key", "tool-key-1");
    let stranger = Dev::start(folder.path(), &[]).await;
    let refused = job(&stranger).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("certificate is refused"), "{refused}");
    drop(stranger);

    let authority = folder.path().join("ca.pem");
    let env = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let dev = ["dev", "--data", "other", "--bind", "127.0.0.1:0"];
    let mut program = Program::start(folder.path(), &dev, &env);
    let url = program.first_line("turnstone listens on ").await;
    let dev = Dev { program, url, http: turnstone_tests::http::client() };
    let hook = format!("{}/hook", far.url);
    dev.says_ok(&["webhook", "add", &hook, "--events", "job.completed"]).await;
    assert_eq!(job(&dev).await["state"], "completed");
    wait::until("the webhook", async || far.calls("hook").len() == 1).await;
    assert_eq!((far.calls("v1/chat/completions").len(), far.calls("search").len()), (2, 1));
}

/// A server without a certificate of a known authority is refused by each process of a fleet; `sslrootcert` of the
/// address, or `SSL_CERT_FILE`, names the authority.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_private_authority_is_trusted_for_postgresql() {
    let folder = turnstone_tests::scratch::folder();
    Authority::new().equip(folder.path());
    let server = turnstone_tests::servers::Postgres::own_over_tls(folder.path()).await;
    let database = server.database().await;
    let url = format!("{}?sslmode=verify-full", database.url);
    let authority = folder.path().join("ca.pem");
    let authority = authority.to_str().unwrap();
    let client = turnstone_tests::scratch::folder();
    let migrate = async |env: &[(&str, &str)]| run(client.path(), &["migrate"], env).await;
    let refused = migrate(&[("DATABASE_URL", &url)]).await;
    assert!(refused.code != Some(0) && refused.stderr.contains("certificate"), "{refused:?}");
    let by_address = format!("{url}&sslrootcert={authority}");
    let trusted = migrate(&[("DATABASE_URL", &by_address)]).await;
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let by_variable = migrate(&[("DATABASE_URL", &url), ("SSL_CERT_FILE", authority)]).await;
    assert_eq!(by_variable.code, Some(0), "{by_variable:?}");
}
