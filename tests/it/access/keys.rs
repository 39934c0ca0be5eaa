//! Keys: refused when they are unknown, expired or revoked; a stream ends with its key.

use super::{Client, audit};
use crate::ojs::on_sqlite_first;
use crate::program::run;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_api::DEFAULT_FAILED_LOGINS;
use turnstone_domain::Clock as _;
use turnstone_tests::{OjsServer, wait};

/// Each leaves nothing but a line of the audit.
async fn a_key_that_does_not_open_changes_nothing(server: &OjsServer) {
    let job = json!({"type": "a.b", "args": []});
    let end = server.fleet.clock.now().plus_ms(60_000).to_rfc3339();
    let key = json!({"name": "short", "roles": ["submitter"], "expires_at": end});
    let expiring = Client::new(server, &key).await;
    let revoked = Client::new(server, &json!({"name": "gone", "roles": ["submitter"]})).await;
    for client in [&expiring, &revoked] {
        client.post("/ojs/v1/jobs", &job).await.expect(201);
    }
    server.delete(&format!("/keys/{}", revoked.id)).await.expect(200);
    server.fleet.clock.advance_ms(60_000);
    let unknown = |secret: &str| Client { server, id: String::new(), secret: secret.to_owned() };
    let cut = &expiring.secret[..expiring.secret.len() - 1];
    for client in [expiring.secret.as_str(), &revoked.secret, "tsk_", "tsk_AAAA", cut].map(unknown) {
        let refused = client.post("/ojs/v1/jobs", &job).await.expect(401);
        assert_eq!((refused.code().as_str(), refused.header("www-authenticate")), ("unauthorized", "Bearer"));
    }
    assert_eq!(server.stored_jobs().await, 2);
    server
        .fleet
        .until("each is recorded", async || {
            let is_refusal =
                |entry: &&Value| entry["outcome"] == "401 unauthorized" && entry["principal"] == "-";
            audit(server).await.iter().filter(is_refusal).count() == 5
        })
        .await;
}

async fn a_rotated_key_opens_for_its_grace(server: &OjsServer) {
    let old = Client::new(server, &json!({"name": "ann", "roles": ["viewer"]})).await;
    let path = format!("/keys/{}/rotate", old.id);
    let rotated = server.post(&path, &json!({"grace_seconds": 60})).await.expect(200).json();
    let secret = rotated["secret"].as_str().unwrap().to_owned();
    let new = Client { server, id: old.id.clone(), secret };
    for client in [&old, &new] {
        let own = client.get("/principal").await.expect(200).json();
        assert_eq!((&own["name"], &own["roles"]), (&json!("ann"), &json!(["viewer"])));
    }
    server.fleet.clock.advance_ms(60_000);
    old.get("/principal").await.expect(401);
    new.get("/principal").await.expect(200);
    let listed = server.get("/keys").await.expect(200);
    for secret in [&old.secret, &new.secret] {
        assert!(!listed.text.contains(secret.as_str()));
    }
}

/// A client that guesses is slowed, and no valid key is: not one that was used, and not one that is new.
async fn guesses_of_an_address_are_slowed(server: &OjsServer) {
    let ann = Client::new(server, &json!({"name": "ann", "roles": ["viewer"]})).await;
    let guess = async |number: usize| {
        let secret = format!("tsk_{number:043}");
        Client { server, id: String::new(), secret }.get("/principal").await
    };
    let most = usize::try_from(DEFAULT_FAILED_LOGINS).unwrap();
    for number in 0..most {
        assert_eq!(guess(number).await.expect(401).code(), "unauthorized");
    }
    for number in 0..50 {
        let refused = guess(number).await.expect(429);
        assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("rate_limited", "1"));
    }
    ann.get("/principal").await.expect(200);
    Client::new(server, &json!({"name": "ben", "roles": ["viewer"]}))
        .await
        .get("/principal")
        .await
        .expect(200);
    // A request without a key is no guess.
    server.get("/principal").await.expect(200);
    server.fleet.clock.advance_ms(1_000);
    guess(1).await.expect(401);
    guess(2).await.expect(429);
    server
        .fleet
        .until("refused requests are recorded", async || {
            let of = |entries: &[Value], outcome: &str| {
                entries.iter().filter(|entry| entry["outcome"] == outcome).count()
            };
            let entries = audit(server).await;
            (of(&entries, "401 unauthorized"), of(&entries, "429 rate_limited")) == (most + 1, 51)
        })
        .await;
}

/// A key that another process revokes is refused within a second, and its stream of events ends.
async fn a_stream_ends_with_its_key(server: &OjsServer) {
    let ann = Client::new(server, &json!({"name": "ann", "roles": ["viewer"]})).await;
    let url = format!("{}/ojs/v1/events/stream", server.fleet.url);
    let mut stream = turnstone_tests::http::client().get(url).bearer_auth(&ann.secret).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let now = server.fleet.now();
    server.fleet.store.keys.revoke(&ann.id, None, now).await.unwrap().expect("the key");
    wait::output("the stream ends", async { while let Ok(Some(_)) = stream.chunk().await {} }).await;
    ann.get("/principal").await.expect(401);
}

async fn a_rate_is_kept_with_a_time_to_wait(server: &OjsServer) {
    let key = json!({"name": "slow", "roles": ["viewer"], "rate_per_minute": 6});
    let slow = Client::new(server, &key).await;
    slow.get("/principal").await.expect(200);
    let refused = slow.get("/principal").await.expect(429);
    assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("rate_limited", "10"));
    server.fleet.clock.advance_ms(10_000);
    slow.get("/principal").await.expect(200);
}

async fn a_role_that_is_missing_is_named(server: &OjsServer) {
    let viewer = Client::new(server, &json!({"name": "v", "roles": ["viewer"]})).await;
    let refused = viewer.post("/ojs/v1/jobs", &json!({"type": "a.b", "args": []})).await.expect(403);
    assert_eq!(refused.json()["error"]["details"]["role"], "submitter");
    for wrong in [
        json!({"name": "x", "roles": []}),
        json!({"name": "x", "roles": ["root"]}),
        json!({"name": "", "roles": ["viewer"]}),
        json!({"name": "x", "roles": ["viewer"], "expires_at": "2001-01-01T00:00:00Z"}),
        json!({"name": "x", "roles": ["viewer"], "secret": "mine"}),
    ] {
        server.send(Method::POST, "/keys", &[], wrong.to_string()).await.expect(400);
    }
    assert_eq!(viewer.get("/keys").await.status, 403);
}

/// `turnstone key` shows a secret once; 3 is the exit code of a key that does not open.
async fn the_command_line_manages_keys(server: &OjsServer) {
    let folder = turnstone_tests::scratch::folder();
    let turnstone = async |arguments: &[&str], secret: &str| {
        let all = [&["key", "--url", server.fleet.url.as_str()][..], arguments].concat();
        let env = [("TURNSTONE_API_KEY", secret)];
        run(folder.path(), &all, if secret.is_empty() { &[] } else { &env }).await
    };
    let create = ["create", "ann", "--role", "viewer,approver", "--expires-in", "90d", "--acts-for", "ben"];
    let created = turnstone(&create, "").await;
    let first = created.stdout.trim().to_owned();
    assert!(created.code == Some(0) && first.starts_with("tsk_") && first.len() > 40, "{created:?}");
    let own = turnstone(&["whoami"], &first).await;
    assert_eq!(own.stdout.trim(), "ann: viewer, approver of the whole fleet, acts for itself, ben");
    let second = turnstone(&["rotate", "ann"], "").await.stdout.trim().to_owned();
    assert_eq!(turnstone(&["whoami"], &first).await.code, Some(3));
    let listed = turnstone(&["list"], "").await;
    assert!(listed.stdout.contains("ann") && listed.stdout.contains("active"), "{listed:?}");
    assert!(!listed.stdout.contains(&first) && !listed.stdout.contains(&second), "{listed:?}");
    assert_eq!(turnstone(&["revoke", "ann"], "").await.code, Some(0));
    assert_eq!(turnstone(&["whoami"], &second).await.code, Some(3));
}

on_sqlite_first!(
    a_key_that_does_not_open_changes_nothing,
    a_rotated_key_opens_for_its_grace,
    a_stream_ends_with_its_key,
    guesses_of_an_address_are_slowed,
    the_command_line_manages_keys,
    a_rate_is_kept_with_a_time_to_wait,
    a_role_that_is_missing_is_named,
);
