//! The identity of tool calls: the truth table as the tools see it, and where credentials must not appear.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_store::EncryptionKeys;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

const SECRET: &str = "hush-hush-4711";

async fn fleet(backend: Backend) -> Fleet {
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": "x"})),
        _ => Reply::text(format!("outcome: {}", last_outcome(request))),
    };
    let fleet = Fleet::builder().on(backend).workers(1).model(script);
    fleet.sealed(EncryptionKeys::new::<&str>(key, &[]).unwrap()).start().await
}

/// Returns the last tool outcome in a model request.
fn last_outcome(request: &Value) -> &str {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tool = messages.iter().rev().find(|message| message["role"] == "tool");
    tool.and_then(|message| message["content"].as_str()).unwrap_or_default()
}

async fn keep(fleet: &Fleet, place: &str, body: Value) -> (u16, Value) {
    let (status, body) = fleet.send(Method::PUT, &format!("/credentials/{place}"), body.to_string()).await;
    (status.as_u16(), body)
}

/// OAS-23, OAS-25, OAS-26, OAS-27: all eight combinations of `user_identity`, a known caller and `static_identity`,
/// as the tool sees them.
#[tokio::test]
async fn a_tool_is_called_with_the_identity_of_the_truth_table() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        let header = |value: &str| json!({"header": "Authorization", "prefix": "Bearer ", "value": value});
        assert_eq!(keep(&fleet, "static:desk-key/search", header("of-the-desk-1")).await.0, 200);
        assert_eq!(keep(&fleet, "user:u-17/search", header("of-the-user-17")).await.0, 200);
        let (mut number, mut calls) = (0, 0);
        for (flag, known, is_set, expected) in [
            (true, true, true, Some((Some("Bearer of-the-user-17"), Some("u-17")))),
            (true, true, false, Some((Some("Bearer of-the-user-17"), Some("u-17")))),
            (true, false, true, Some((Some("Bearer of-the-desk-1"), None))),
            (true, false, false, None),
            (false, true, true, Some((Some("Bearer of-the-desk-1"), None))),
            (false, false, true, Some((Some("Bearer of-the-desk-1"), None))),
            (false, true, false, Some((None, None))),
            (false, false, false, Some((None, None))),
        ] {
            number += 1;
            let name = format!("agent-{number}");
            let fixed = if is_set { ", static_identity: desk-key" } else { "" };
            let text = oas(&name, &format!("capabilities: {{search: {{user_identity: {flag}{fixed}}}}}\n"));
            fleet.register(text).await;
            let mut job = json!({"type": "a.b", "args": ["go"], "meta": {"agent": name}});
            if known {
                job["meta"]["user"] = json!({"id": "u-17", "email": "ann@example.org"});
            }
            let id = fleet.push(&job).await;
            let done = fleet.settled(&id).await;
            assert_eq!(done["state"], "completed", "{done:#}");
            match expected {
                Some((authorization, user)) => {
                    calls += 1;
                    let call = fleet.tools.calls().last().unwrap().clone();
                    let seen = |name: &str| call.headers.get(name).map(String::as_str);
                    assert_eq!(
                        (seen("authorization"), seen("turnstone-user")),
                        (authorization, user),
                        "{job:#}"
                    );
                    assert_eq!(seen("turnstone-user-email"), user.map(|_| "ann@example.org"));
                }
                None => {
                    assert!(done["result"].as_str().unwrap().contains("did not name that user"), "{done:#}")
                }
            }
            assert_eq!(fleet.tools.calls().len(), calls, "{job:#}");
        }
        fleet.end().await;
    }))
    .await;
}

/// OAS-25, OAS-26: the client that enqueues sets the user's id, which selects credentials of the job's own tenant
/// only.
#[tokio::test]
async fn users_of_two_tenants_have_credentials_of_their_own() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        let text = oas("desk", "capabilities: {search: {}}\n");
        fleet.register(text).await;
        for (owner, key) in [("user:u-1", "key-of-nobody-1"), ("member:acme:u-1", "key-of-acme-1")] {
            let (status, kept) =
                keep(&fleet, &format!("{owner}/search"), json!({"header": "X-Key", "value": key})).await;
            assert_eq!((status, &kept["owner"]), (200, &json!(owner)), "{kept:#}");
        }
        for (tenant, expected) in
            [(None, Some("key-of-nobody-1")), (Some("acme"), Some("key-of-acme-1")), (Some("beta"), None)]
        {
            let mut job =
                json!({"type": "a.b", "args": ["go"], "meta": {"agent": "desk", "user": {"id": "u-1"}}});
            if let Some(tenant) = tenant {
                job["meta"]["tenant_id"] = json!(tenant);
            }
            let id = fleet.push(&job).await;
            assert_eq!(fleet.settled(&id).await["state"], "completed");
            let call = fleet.tools.calls().last().unwrap().clone();
            assert_eq!(call.headers.get("x-key").map(String::as_str), expected, "{tenant:?}");
        }
        fleet.end().await;
    }))
    .await;
}

/// OAS-27: a static identity without credentials makes no call; credentials for every tool apply where the tool has
/// none of its own.
#[tokio::test]
async fn a_static_identity_needs_credentials() {
    let fleet = fleet(Backend::Sqlite).await;
    let text = oas("desk", "capabilities: {search: {user_identity: false, static_identity: desk}}\n");
    fleet.register(text).await;
    let job = json!({"type": "a.b", "args": ["go"], "meta": {"agent": "desk"}});
    let id = fleet.push(&job).await;
    let reported = fleet.settled(&id).await["result"].as_str().unwrap().to_owned();
    assert!(reported.contains("turnstone credential set static:desk search"), "{reported}");
    assert!(fleet.tools.calls().is_empty());
    let everywhere = json!({"header": "X-Key", "value": "everywhere-1"});
    let (status, refused) = keep(&fleet, "desk/search", everywhere.clone()).await;
    assert!(
        status == 400 && refused["error"]["message"].as_str().unwrap().contains("is `desk`"),
        "{refused:#}"
    );
    let (status, kept) = keep(&fleet, "static:desk/serch", everywhere.clone()).await;
    assert_eq!((status, kept["remarks"].as_array().map(Vec::len)), (200, Some(1)), "{kept:#}");
    let (status, kept) = keep(&fleet, "static:desk/*", everywhere).await;
    assert_eq!((status, &kept["remarks"]), (200, &json!([])), "{kept:#}");
    let id = fleet.push(&job).await;
    fleet.settled(&id).await;
    assert_eq!(fleet.tools.calls()[0].headers["x-key"], "everywhere-1");
    fleet.end().await;
}

/// OAS-26: a credential is in the call, and in nothing that is stored, returned or sent to a model.
#[tokio::test]
async fn only_the_tool_sees_a_credential() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        let text = oas("desk", "capabilities: {search: {}}\n");
        fleet.register(text).await;
        let (status, kept) =
            keep(&fleet, "user:u-1/search", json!({"header": "X-Key", "value": SECRET})).await;
        assert_eq!((status, &kept["form"]), (200, &json!("value")));
        let id = fleet
            .push(&json!({"type": "a.b", "args": ["go"], "meta": {"agent": "desk", "user": {"id": "u-1"}}}))
            .await;
        let done = fleet.settled(&id).await;
        assert_eq!(fleet.tools.calls()[0].headers["x-key"], SECRET);
        let engagement = fleet.engagement_of(&id).await;
        let mut shown = format!("{kept}{done}{:?}", fleet.models.calls());
        for path in ["", "/events", "/audit", "/messages", "/checkpoints", "/tool-calls"] {
            shown.push_str(
                &fleet.send(Method::GET, &format!("/engagements/{engagement}{path}"), "").await.1.to_string(),
            );
        }
        shown.push_str(&fleet.get("/credentials").await.to_string());
        assert!(!shown.contains(SECRET), "{shown}");
        let listed = fleet.get("/credentials").await;
        assert_eq!(listed["credentials"][0]["owner"], "user:u-1", "{listed:#}");
        let stored = format!("SELECT count(*) FROM credentials WHERE content LIKE '%{SECRET}%'");
        assert_eq!(fleet.number(&stored).await, 0, "it is stored in the clear");
        let (status, _) = fleet.send(Method::DELETE, "/credentials/user:u-1/search?header=x-key", "").await;
        assert_eq!(status.as_u16(), 200);
        let (status, _) = fleet.send(Method::DELETE, "/credentials/user:u-1/search", "").await;
        assert_eq!(status.as_u16(), 404);
        fleet.end().await;
    }))
    .await;
}

/// OAS-26: without encryption a secret is not stored, and its refusal does not repeat it. Its name is stored.
#[tokio::test]
async fn a_secret_is_not_stored_in_the_clear() {
    let fleet = Fleet::builder().workers(0).start().await;
    let (status, refused) =
        keep(&fleet, "user:u-1/search", json!({"header": "X-Key", "value": SECRET})).await;
    assert_eq!((status, &refused["error"]["code"]), (422, &json!("encryption_required")));
    assert!(!refused.to_string().contains(SECRET));
    assert_eq!(keep(&fleet, "user:u-1/search", json!({"header": "X-Key", "secret": "CRM_KEY"})).await.0, 200);
    for (place, body) in [
        ("nobody/search", json!({"header": "X-Key", "secret": "K"})),
        ("user:u-1/a b", json!({"header": "X-Key", "secret": "K"})),
        ("user:u-1/search", json!({"header": "Host", "secret": "K"})),
        ("user:u-1/search", json!({"header": "turnstone-user", "secret": "K"})),
        ("user:u-1/search", json!({"header": "X-Key"})),
        ("user:u-1/search", json!({"header": "X-Key", "secret": "K", "value": SECRET})),
        ("user:u-1/search", json!({"header": "X-Key", "secret": "K\r\nX-Other: 1"})),
        ("user:u-1/search", json!({"header": "X-Key", "sekret": SECRET})),
    ] {
        let (status, refused) = keep(&fleet, place, body).await;
        assert_eq!(status, 400, "{place}");
        assert!(!refused.to_string().contains(SECRET), "{refused:#}");
    }
    assert_eq!(fleet.number("SELECT count(*) FROM credentials").await, 1);
    fleet.end().await;
}
