//! Another server that has a key of its own: it uses the tenant, the agents and the users of its configuration, and sees
//! the engagements that it began.

use super::audit;
use crate::stores::on_stores;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_api::Peer;
use turnstone_domain::JobState;
use turnstone_telemetry::Secret;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, OjsServer};

on_stores!(
    everywhere: [],
    sqlite_first: [a_peer_names_no_other_user_tenant_or_agent, a_peer_sees_only_engagements_that_it_began],
);

const KEY: &str = "the-key-that-this-server-gave-to-the-office";
const OTHER: &str = "the-key-that-this-server-gave-to-the-branch";

fn peer(name: &str, key: &str, tenant: Option<&str>) -> Peer {
    Peer {
        name: name.to_owned(),
        key: Secret::given(key),
        tenant: tenant.map(str::to_owned),
        agents: Some(vec!["desk".to_owned()]),
        users: vec!["u-1".to_owned()],
    }
}

/// Returns a server with two agents and two peers: one of a tenant, and one of the fleet.
async fn server(backend: Backend) -> OjsServer {
    let fleet = Fleet::builder()
        .on(backend)
        .peer(peer("office", KEY, Some("acme")))
        .peer(peer("branch", OTHER, None));
    let server = OjsServer::over(fleet.start().await);
    for agent in ["desk", "vault"] {
        server.fleet.register(oas(agent, "")).await;
    }
    server
}

async fn sent(
    server: &OjsServer,
    key: &str,
    (method, path): (Method, &str),
    headers: &[(&str, &str)],
    body: &Value,
) -> (u16, String) {
    let bearer = format!("Bearer {key}");
    let own = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = server.send(method, path, &[&own[..], headers].concat(), body).await;
    (reply.status, reply.text)
}

/// Waits for an entry of the audit about a refused request of the peer.
async fn is_audited(server: &OjsServer, target: &str, status: u16) {
    let found = async || {
        audit(server).await.iter().any(|entry| {
            entry["principal"] == "peer/office"
                && entry["target"] == target
                && entry["outcome"].as_str().is_some_and(|outcome| outcome.starts_with(&status.to_string()))
        })
    };
    server.fleet.until(&format!("{target} is audited with {status}"), found).await;
}

async fn a_peer_names_no_other_user_tenant_or_agent(backend: Backend) {
    let server = server(backend).await;
    let text = json!({"input": "hi"});
    let of_user = json!({"input": "hi", "metadata": {"user": {"id": "u-2"}}});
    let process = json!({"type": "ChatRequest", "input": "hi"});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
        "message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}});
    for (path, headers, body) in [
        ("/agents/desk", vec![("turnstone-user", "u-2")], &text),
        ("/agents/desk", vec![], &of_user),
        ("/agents/desk", vec![("X-OJS-Tenant", "beta")], &text),
        ("/agents/desk/process", vec![("turnstone-user", "u-2")], &process),
        ("/a2a/desk", vec![("turnstone-user", "u-2"), ("A2A-Version", "1.0")], &message),
        ("/agents/vault", vec![], &text),
        ("/agents/vault/process", vec![], &process),
        ("/a2a/vault", vec![("A2A-Version", "1.0")], &message),
        ("/ojs/v1/jobs", vec![], &json!({"type": "a.b", "args": []})),
        ("/agents", vec![], &text),
    ] {
        let (status, answer) = sent(&server, KEY, (Method::POST, path), &headers, body).await;
        assert_eq!(status, 403, "{path} {headers:?}: {answer}");
        is_audited(&server, path, 403).await;
    }
    assert_eq!((server.stored_jobs().await, server.fleet.models.count()), (0, 0));
    // A peer of the fleet belongs to no tenant, and names none.
    let (status, answer) =
        sent(&server, OTHER, (Method::POST, "/agents/desk"), &[("X-OJS-Tenant", "acme")], &text).await;
    assert_eq!(status, 403, "{answer}");
    assert_eq!(server.stored_jobs().await, 0);

    let listed = sent(&server, KEY, (Method::GET, "/agents"), &[], &Value::Null).await;
    assert!(listed.0 == 200 && listed.1.contains("desk") && !listed.1.contains("vault"), "{listed:?}");
    for path in
        ["/agents/vault", "/agents/vault/describe", "/a2a/vault/.well-known/agent-card.json", "/reviews"]
    {
        assert_eq!(sent(&server, KEY, (Method::GET, path), &[], &Value::Null).await.0, 403, "{path}");
    }
    // A job that the peer may enqueue belongs to the tenant and the user of the peer.
    let user = [("turnstone-user", "u-1")];
    // The client follows the redirect to the engagement.
    let (status, answer) = sent(&server, KEY, (Method::POST, "/agents/desk"), &user, &text).await;
    assert_eq!(status, 200, "{answer}");
    let jobs = server.get("/ojs/v1/jobs").await.expect(200).json();
    let meta = &jobs["jobs"][0]["meta"];
    assert_eq!(
        (&meta["tenant_id"], &meta["user"]["id"], &meta["turnstone_submitted_by"]),
        (&json!("acme"), &json!("u-1"), &json!("peer/office"))
    );
    server.fleet.wait_for(jobs["jobs"][0]["id"].as_str().unwrap(), &[JobState::Completed]).await;
    server.fleet.end().await;
}

/// Engagements of others do not exist for a peer, also those of its own tenant and of another peer.
#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_peer_sees_only_engagements_that_it_began(backend: Backend) {
    let server = server(backend).await;
    let job = json!({"type": "agent.ask", "args": ["hi"], "meta": {"agent": "desk"}}).to_string();
    let own =
        server.send(Method::POST, "/ojs/v1/jobs", &[("X-OJS-Tenant", "acme")], job).await.expect(201).json();
    let foreign = server.fleet.engagement_of(own["job"]["id"].as_str().unwrap()).await;
    let text = json!({"input": "hi"});
    let begun = async |key: &str| {
        let (status, answer) = sent(&server, key, (Method::POST, "/agents/desk"), &[], &text).await;
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["engagement_id"].as_str().unwrap().to_owned()
    };
    let (of_office, of_branch) = (begun(KEY).await, begun(OTHER).await);
    let seen = async |key: &str, id: &str| {
        sent(&server, key, (Method::GET, &format!("/engagements/{id}")), &[], &Value::Null).await.0
    };
    assert_eq!((seen(KEY, &of_office).await, seen(OTHER, &of_branch).await), (200, 200));
    for id in [&foreign, &of_branch] {
        assert_eq!(seen(KEY, id).await, 404, "{id}");
    }
    for id in [&foreign, &of_office] {
        assert_eq!(seen(OTHER, id).await, 404, "{id}");
    }
    let further = json!({"type": "ChatRequest", "input": "more", "run_id": foreign});
    let (status, answer) = sent(&server, KEY, (Method::POST, "/agents/desk/process"), &[], &further).await;
    assert_eq!(status, 403, "{answer}");
    is_audited(&server, "/agents/desk/process", 403).await;
    for part in [json!({"contextId": foreign}), json!({"taskId": own["job"]["id"]})] {
        let mut message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "more"}]});
        message.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
        let version = [("A2A-Version", "1.0")];
        let (_, answer) = sent(&server, KEY, (Method::POST, "/a2a/desk"), &version, &call).await;
        assert!(answer.contains("\"error\""), "{part}: {answer}");
    }
    for path in ["answer", "further", "fork", "messages"] {
        let path = format!("/engagements/{foreign}/{path}");
        assert_eq!(sent(&server, KEY, (Method::POST, &path), &[], &text).await.0, 403, "{path}");
    }
    assert_eq!(server.stored_jobs().await, 3);
    let ended = "SELECT count(*) FROM jobs WHERE state = 'completed'";
    server.fleet.until("all jobs end", async || server.fleet.number(ended).await == 3).await;
    server.fleet.end().await;
}
