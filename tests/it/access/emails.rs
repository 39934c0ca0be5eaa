//! `user.email` in a policy is the verified address of a token, or stated by a principal that acts for the user.

use super::Client;
use super::tokens::{claims, section, with};
use crate::stores::on_stores;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_api::Peer;
use turnstone_domain::JobState;
use turnstone_telemetry::Secret;
use turnstone_tests::documents::oas;
use turnstone_tests::token_issuer::{TokenIssuer, TokenKey};
use turnstone_tests::{Backend, Fleet, OjsServer, Reply, model_server};

on_stores!(
    everywhere: [],
    sqlite_first: [
        a_principal_states_no_email_of_its_own,
        a_policy_reads_the_verified_email_of_a_token,
        a_peer_states_the_email_of_its_users_alone,
    ],
);

const ADDRESS: &str = "boss@corp.example";

/// Calls `search`, which the agent may call for users of one domain alone.
fn script(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": "x"})),
        _ => Reply::text("done"),
    }
}

fn agent() -> String {
    let assertion = "user.email.endsWith('@corp.example')";
    let restriction = format!("{{search: {{input_restriction: {{assertion: \"{assertion}\"}}}}}}");
    oas("desk", &format!("capabilities: {restriction}\n"))
}

fn job(user: &Value) -> Value {
    json!({"type": "agent.ask", "args": ["hi"], "meta": {"agent": "desk", "user": user}})
}

/// Returns the requests of every protocol that name a user.
fn requests(user: &Value) -> Vec<(&'static str, Value)> {
    let cron =
        |name: &str, template: &Value| json!({"name": name, "cron": "@yearly", "job_template": template});
    let input = json!({"input": "hi", "request_metadata": {"user": user}});
    vec![
        ("/ojs/v1/jobs", job(user)),
        ("/ojs/v1/jobs/batch", json!({"jobs": [job(user)]})),
        ("/ojs/v1/workflows", json!({"type": "chain", "name": "c", "steps": [job(user), job(user)]})),
        ("/ojs/v1/cron", cron("c", &job(user))),
        ("/ojs/v1/crons", cron("d", &job(user))),
        ("/agents/desk", json!({"input": "hi", "metadata": {"user": user}})),
        ("/agents/desk/process", input.clone()),
        ("/agents/desk/stream_request", input),
    ]
}

/// The address is refused by the name of its member, and not dropped.
#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_principal_states_no_email_of_its_own(backend: Backend) {
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    server.fleet.register(agent()).await;
    let key = |name: &str, acts_for: &[&str]| json!({"name": name, "roles": ["submitter", "operator"], "acts_for": acts_for});
    // The right to use its own name is no proof of an address.
    let eve = Client::new(&server, &key("eve", &["eve", "ben"])).await;
    for (path, body) in requests(&json!({"id": "eve", "email": ADDRESS})) {
        let refused = eve.post(path, &body).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text);
        assert!(refused.text.contains(".user.email"), "{path}: {}", refused.text);
    }
    let cron = json!({"name": "own", "cron": "@yearly", "job_template": job(&json!({"id": "eve"}))});
    eve.post("/ojs/v1/cron", &cron).await.expect(201);
    let forged = json!({"job_template": job(&json!({"id": "eve", "email": ADDRESS}))});
    eve.send(Method::PATCH, "/ojs/v1/cron/own", &forged).await.expect(403);
    assert_eq!(server.stored_jobs().await, 0);
    let id = eve.post("/ojs/v1/jobs", &job(&Value::Null)).await.expect(201).json();
    let id = id["job"]["id"].as_str().unwrap();
    server.fleet.wait_for(id, &[JobState::Completed]).await;
    let engagement = server.fleet.engagement_of(id).await;
    for user in [json!({"id": "eve", "email": ADDRESS}), json!({"id": "eve", "email": ""})] {
        let said = json!({"input": "more", "metadata": {"user": user}});
        let refused = eve.post(&format!("/engagements/{engagement}?reopen=true"), &said).await.expect(403);
        assert!(refused.text.contains("user.email"), "{}", refused.text);
    }
    let mut record = eve.get(&format!("/engagements/{engagement}/export")).await.expect(200).text;
    assert!(!record.contains(ADDRESS) && server.fleet.tools.calls().is_empty());
    let state = server.get(&format!("/engagements/{engagement}")).await.expect(200).json();
    assert_eq!(state["user"], json!({"id": "eve", "email": null}));
    // An import is content of the importing principal.
    let mut document = turnstone_domain::record::EngagementRecord::read(&record).unwrap();
    let new = document.job.engagement.as_mut().unwrap();
    new.user.email = Some(ADDRESS.to_owned());
    record = document.write().unwrap();
    let bearer = format!("Bearer {}", eve.secret);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/x-ndjson")];
    let refused = server.send(Method::POST, "/engagements/import", &headers, record).await.expect(403);
    assert!(refused.text.contains("user.email"), "{}", refused.text);
    // A back end is believed about its users, and they continue its engagements with the address.
    let ben = Client::new(&server, &json!({"name": "ben", "roles": ["submitter"]})).await;
    for (name, acts_for) in [("desk-of-ben", "ben"), ("desk-of-all", "*")] {
        let calls = server.fleet.tools.calls().len();
        let desk = Client::new(&server, &key(name, &[acts_for])).await;
        let user = json!({"id": "ben", "email": ADDRESS});
        let id = desk.post("/ojs/v1/jobs", &job(&user)).await.expect(201).json();
        let id = id["job"]["id"].as_str().unwrap().to_owned();
        server.fleet.wait_for(&id, &[JobState::Completed]).await;
        assert_eq!(server.fleet.tools.calls().len(), calls + 1);
        let engagement = server.fleet.engagement_of(&id).await;
        let path = format!("/engagements/{engagement}?reopen=true");
        ben.post(&path, &json!({"input": "more"})).await.expect(200);
        ben.post(&path, &json!({"input": "more", "metadata": {"user": user}})).await.expect(200);
        let state = server.get(&format!("/engagements/{engagement}")).await.expect(200).json();
        assert_eq!(state["user"], user);
    }
    let open = "SELECT count(*) FROM jobs WHERE state IN ('pending', 'available', 'active')";
    server.fleet.until("all jobs end", async || server.fleet.number(open).await == 0).await;
    server.end().await;
}

/// `email` counts unless `email_verified` is false. It is added where the request leaves it out.
async fn a_policy_reads_the_verified_email_of_a_token(backend: Backend) {
    let key = TokenKey::ec();
    let issuer = TokenIssuer::start(&[key.listed("ec")]).await;
    for (claim, more) in [("email", json!({})), ("upn", json!({"email_claim": "upn"}))] {
        let fleet = Fleet::builder().on(backend).model(script).issuer("corp", section(&issuer, &more));
        let server = OjsServer::over(fleet.start().await);
        let token = |more: &Value| with(&server, key.token("ec", &claims(&server, &issuer, more)));
        let root = token(&json!({"sub": "root", "org": null, "realm": {"roles": ["roots"]}}));
        let bearer = format!("Bearer {}", root.secret);
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/yaml")];
        server.send(Method::POST, "/agents", &headers, agent()).await.expect(201);
        let ended = |count: i64| {
            let sql = "SELECT count(*) FROM jobs WHERE state = 'completed'";
            let server = &server;
            async move {
                server.fleet.until("the job ends", async || server.fleet.number(sql).await == count).await
            }
        };
        let (own, named) = (json!({"id": "ann"}), json!({"id": "ann", "email": "ann@corp.example"}));
        let verified = token(&json!({claim: "ann@corp.example", "email_verified": true}));
        for (user, made) in [(&Value::Null, 1), (&own, 2), (&named, 3)] {
            let kept = verified.post("/ojs/v1/jobs", &job(user)).await.expect(201).json();
            assert_eq!(kept["job"]["meta"]["user"], named, "{user}");
            ended(made).await;
            assert_eq!(server.fleet.tools.calls().len(), usize::try_from(made).unwrap(), "{user}");
        }
        let other = json!({"id": "ann", "email": ADDRESS});
        let refused = verified.post("/ojs/v1/jobs", &job(&other)).await.expect(403);
        assert_eq!(refused.json()["error"]["details"]["field"], "meta.user.email");
        for unverified in [json!({claim: ADDRESS, "email_verified": false}), json!({"mail": ADDRESS})] {
            let unverified = token(&unverified);
            unverified.post("/ojs/v1/jobs", &job(&other)).await.expect(403);
        }
        let unverified = token(&json!({claim: ADDRESS, "email_verified": false}));
        let kept = unverified.post("/ojs/v1/jobs", &job(&own)).await.expect(201).json();
        assert_eq!(kept["job"]["meta"]["user"], own);
        ended(4).await;
        assert_eq!(server.fleet.tools.calls().len(), 3, "the policy denies a user without an address");
        server.end().await;
    }
}

/// A peer states addresses of the users that it may name, and of no user that it does not name.
async fn a_peer_states_the_email_of_its_users_alone(backend: Backend) {
    const KEY: &str = "the-key-that-this-server-gave-to-the-office";
    let peer = Peer {
        name: "office".to_owned(),
        key: Secret::given(KEY),
        tenant: None,
        agents: None,
        users: vec!["u-1".to_owned()],
    };
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).peer(peer).start().await);
    server.fleet.register(agent()).await;
    let send = async |path: &str, more: &[(&str, &str)], body: &Value| {
        let bearer = format!("Bearer {KEY}");
        let own = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("A2A-Version", "1.0"),
        ];
        server.send(Method::POST, path, &[&own[..], more].concat(), body.to_string()).await
    };
    let message = |id: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
            "message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": "hi"}]}}})
    };
    let input = json!({"input": "hi"});
    let email = ("turnstone-user-email", "boss%40corp.example");
    for user in [None, Some(("turnstone-user", "office"))] {
        let headers: Vec<_> = user.into_iter().chain([email]).collect();
        for (path, body) in
            [("/agents/desk", &input), ("/agents/desk/process", &input), ("/a2a/desk", &message("m"))]
        {
            let refused = send(path, &headers, body).await;
            let names = refused.text.contains("user.email") || refused.text.contains("user-email");
            assert!(names && refused.status != 202, "{path} {headers:?}: {}", refused.text);
        }
    }
    assert_eq!(server.stored_jobs().await, 0);
    let headers = [("turnstone-user", "u-1"), email];
    send("/agents/desk", &headers, &input).await.expect(200);
    send("/agents/desk/process", &headers, &input).await.expect(202);
    send("/a2a/desk", &headers, &message("n")).await.expect(200);
    let ended = "SELECT count(*) FROM jobs WHERE state = 'completed'";
    server.fleet.until("the jobs end", async || server.fleet.number(ended).await == 3).await;
    assert_eq!(server.fleet.tools.calls().len(), 3);
    server.end().await;
}
