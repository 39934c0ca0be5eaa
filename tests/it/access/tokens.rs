//! Tokens of identity providers: their claims make principals, and tokens that are not valid change nothing.

use super::Client;
use crate::program::run;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::Clock as _;
use turnstone_tests::token_issuer::{TokenIssuer, TokenKey, url_safe};
use turnstone_tests::{Backend, Fleet, OjsServer, Reply, model_server, wait};

const AUDIENCE: &str = "turnstone";

/// Returns the section of an issuer, with these differences.
pub(super) fn section(issuer: &TokenIssuer, more: &Value) -> Value {
    let mut section = json!({
        "issuer": issuer.url,
        "audience": [AUDIENCE],
        "algorithms": ["ES256", "RS256", "EdDSA"],
        "tenant_claim": "org",
        "fleet": true,
        "roles_claim": "realm.roles",
        "acts_for_claim": "for",
        "roles": {"users": ["submitter"], "bosses": ["approver", "operator"], "roots": ["admin"]},
        "allow_private": true,
    });
    for (key, value) in more.as_object().unwrap() {
        section[key] = value.clone();
    }
    section
}

async fn server(backend: Backend, issuer: &TokenIssuer, more: &Value) -> OjsServer {
    let fleet = Fleet::builder().on(backend).workers(0).issuer("corp", section(issuer, more));
    OjsServer::over(fleet.start().await)
}

/// Returns the claims of a token of ann that is valid for five minutes, with these differences; null removes one.
pub(super) fn claims(server: &OjsServer, issuer: &TokenIssuer, more: &Value) -> Value {
    let now = server.fleet.clock.now().0 / 1_000;
    let mut claims = json!({
        "iss": issuer.url, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 300,
        "org": "acme", "realm": {"roles": ["users"]},
    });
    for (key, value) in more.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(key)),
            value => claims[key] = value.clone(),
        }
    }
    claims
}

pub(super) fn with<'a>(server: &'a OjsServer, token: impl Into<String>) -> Client<'a> {
    Client { server, id: String::new(), secret: token.into() }
}

#[tokio::test]
async fn the_claims_of_a_token_make_its_principal() {
    for backend in Backend::ALL {
        let keys = [TokenKey::ec(), TokenKey::rsa(), TokenKey::ed()];
        let listed: Vec<Value> =
            keys.iter().zip(["ec", "rsa", "ed"]).map(|(key, id)| key.listed(id)).collect();
        let issuer = TokenIssuer::start(&listed).await;
        let server = server(backend, &issuer, &json!({})).await;
        for (key, id) in keys.iter().zip(["ec", "rsa", "ed"]) {
            let ann = with(&server, key.token(id, &claims(&server, &issuer, &json!({"for": ["ben"]}))));
            let own = ann.get("/principal").await.expect(200).json();
            let expected = json!({"name": "ann", "key_id": null, "tenant": "acme", "roles": ["submitter"],
                                  "acts_for": ["ben"]});
            assert_eq!(own, expected, "{id}");
        }
        let ann = with(&server, keys[0].token("ec", &claims(&server, &issuer, &json!({}))));
        let job = json!({"type": "agent.ask", "args": ["hi"], "ext_agent_model": "test/m"});
        let job = ann.post("/ojs/v1/jobs", &job).await.expect(201).json()["job"].clone();
        assert_eq!(job["meta"]["turnstone_submitted_by"], "acme/ann via corp");
        ann.send_with(Method::GET, "/ojs/v1/jobs/x", &[("X-OJS-Tenant", "beta")], &Value::Null)
            .await
            .expect(403);
        assert_eq!(ann.get("/keys").await.expect(403).json()["error"]["details"]["role"], "admin");
        let id = job["id"].as_str().unwrap();
        let beta = json!({"org": "beta", "realm": {"roles": ["users", "bosses"]}});
        let beta = with(&server, keys[2].token("ed", &claims(&server, &issuer, &beta)));
        beta.get(&format!("/ojs/v1/jobs/{id}")).await.expect(404);
        let root = json!({"sub": "root", "org": null, "realm": {"roles": ["roots"]}});
        let root = with(&server, keys[1].token("rsa", &claims(&server, &issuer, &root)));
        root.get(&format!("/ojs/v1/jobs/{id}")).await.expect(200);
        let created =
            root.post("/keys", &json!({"name": "bot", "roles": ["viewer"]})).await.expect(201).json();
        assert_eq!(created["created_by"], "root via corp");
        let folder = turnstone_tests::scratch::folder();
        let env = [("TURNSTONE_API_KEY", root.secret.as_str())];
        let shown = run(folder.path(), &["key", "--url", &server.fleet.url, "whoami"], &env).await;
        assert_eq!(shown.stdout.trim(), "root: admin of the whole fleet, acts for itself");
        // A server with an issuer is open to no client without a key.
        server.get("/principal").await.expect(401);
        with(&server, "other").get("/principal").await.expect(401);
        assert_eq!(issuer.reads(), 1);
        server.end().await;
    }
}

/// Returns tokens that are refused, by the reason.
fn refused(server: &OjsServer, issuer: &TokenIssuer, key: &TokenKey) -> Vec<(&'static str, String)> {
    let of = |more: Value| claims(server, issuer, &more);
    let (now, valid) = (server.fleet.clock.now().0 / 1_000, of(json!({})));
    let good = key.token("ec", &valid);
    let parts: Vec<&str> = good.split('.').collect();
    let forged = url_safe(of(json!({"realm": {"roles": ["roots"]}})).to_string().as_bytes());
    let header = |more: Value| {
        let mut header = json!({"alg": "ES256", "kid": "ec"});
        header.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key.token_of(&header, &valid)
    };
    vec![
        ("expired", key.token("ec", &of(json!({"exp": now - 30})))),
        ("not valid yet", key.token("ec", &of(json!({"nbf": now + 31})))),
        ("not valid yet", key.token("ec", &of(json!({"nbf": "now"})))),
        ("no time of expiry", key.token("ec", &of(json!({"exp": null})))),
        ("no time of expiry", key.token("ec", &of(json!({"exp": (now + 300).to_string()})))),
        ("another audience", key.token("ec", &of(json!({"aud": "other"})))),
        ("another audience", key.token("ec", &of(json!({"aud": ["other", "turnstone2"]})))),
        ("another audience", key.token("ec", &of(json!({"aud": null})))),
        ("issuer", key.token("ec", &of(json!({"iss": "https://login.example.com"})))),
        ("issuer", key.token("ec", &of(json!({"iss": [issuer.url]})))),
        ("issuer", key.token("ec", &of(json!({"iss": null})))),
        ("signature", TokenKey::ec().token("ec", &valid)),
        ("signature", format!("{}.{forged}.{}", parts[0], parts[2])),
        ("signature", format!("{}.{}.", parts[0], parts[1])),
        ("signature", format!("{}.{}.{}", parts[0], parts[1], url_safe(&[0; 64]))),
        ("names no known algorithm", TokenKey::None.token("ec", &valid)),
        ("names no known algorithm", header(json!({"alg": "None"}))),
        ("algorithm", TokenKey::Hmac(key.public()).token("ec", &valid)),
        ("algorithm", TokenKey::Hmac(b"secret".to_vec()).token("oct", &valid)),
        ("algorithm", header(json!({"alg": "ES384"}))),
        ("no such key", TokenKey::ed().token("ec", &valid)),
        ("no such key", key.token("other", &valid)),
        ("no such key", key.token("enc", &valid)),
        ("crit", header(json!({"crit": ["exp"]}))),
        ("header", format!("x.{}.{}", parts[1], parts[2])),
        ("claims", key.token_of(&json!({"alg": "ES256", "kid": "ec"}), &json!([1]))),
        ("too long", format!("{good}{}", "A".repeat(20_000))),
    ]
}

#[tokio::test]
async fn a_token_that_is_not_valid_changes_nothing() {
    for backend in Backend::ALL {
        let (key, job) = (TokenKey::ec(), json!({"type": "a.b", "args": []}));
        let mut enciphering = key.listed("enc");
        enciphering["use"] = json!("enc");
        let symmetric = TokenKey::Hmac(b"secret".to_vec()).listed("oct");
        let issuer =
            TokenIssuer::start(&[json!({"kty": "new"}), symmetric, enciphering, key.listed("ec")]).await;
        let server = server(backend, &issuer, &json!({"fleet": false})).await;
        let bad = refused(&server, &issuer, &key);
        for (reason, token) in &bad {
            let refused = with(&server, token.as_str()).post("/ojs/v1/jobs", &job).await.expect(401);
            assert_eq!(
                (refused.code().as_str(), refused.header("www-authenticate")),
                ("unauthorized", "Bearer")
            );
            let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains(reason), "{reason}: {message}");
        }
        // Valid tokens whose claims make no principal, or one that may do nothing.
        let unfit = [
            json!({"realm": {"roles": ["others"]}}),
            json!({"realm": null}),
            json!({"org": null}),
            json!({"org": "a b"}),
            json!({"sub": null}),
        ];
        for more in &unfit {
            let token = key.token("ec", &claims(&server, &issuer, more));
            for path in ["/ojs/v1/jobs", "/principal"] {
                let method = if path == "/principal" { Method::GET } else { Method::POST };
                let refused = with(&server, token.as_str()).send(method, path, &job).await.expect(403);
                assert_eq!(refused.code(), "forbidden", "{more}");
            }
        }
        assert_eq!((server.stored_jobs().await, issuer.reads()), (0, 1));
        let root = json!({"sub": "root", "realm": {"roles": ["roots"]}});
        let root = with(&server, key.token("ec", &claims(&server, &issuer, &root)));
        root.get("/audit").await.expect(200);
        server
            .fleet
            .until("each is recorded", async || {
                let count =
                    |outcome: &str| format!("SELECT count(*) FROM audit_entries WHERE outcome = '{outcome}'");
                let (unknown, unfit_count) = (count("401 unauthorized"), count("403 forbidden"));
                server.fleet.number(&unknown).await == bad.len() as i64
                    && server.fleet.number(&unfit_count).await == 2 * unfit.len() as i64
            })
            .await;
        let named = "SELECT count(*) FROM audit_entries WHERE principal = 'acme/ann via corp'";
        assert_eq!(server.fleet.number(named).await, 4);
        server.end().await;
    }
}

/// A key of the set is unknown for at most half a minute, and a withdrawn one is refused with its tokens.
#[tokio::test]
async fn keys_are_read_again_when_the_issuer_changes_them() {
    let (old, new) = (TokenKey::ec(), TokenKey::ed());
    let issuer = TokenIssuer::start(&[old.listed("old")]).await;
    let server = server(Backend::Sqlite, &issuer, &json!({})).await;
    let far = json!({"exp": server.fleet.clock.now().0 / 1_000 + 86_400});
    let of_old = with(&server, old.token("old", &claims(&server, &issuer, &far)));
    let of_new = with(&server, new.token("new", &claims(&server, &issuer, &far)));
    of_old.get("/principal").await.expect(200);
    issuer.serve(&[new.listed("new")]);
    for _ in 0..5 {
        of_new.get("/principal").await.expect(401);
    }
    of_old.get("/principal").await.expect(200);
    assert_eq!(issuer.reads(), 1);
    server.fleet.clock.advance_ms(30_000);
    of_new.get("/principal").await.expect(200);
    of_old.get("/principal").await.expect(401);
    assert_eq!(issuer.reads(), 2);
    // Without an unknown key they are read again after five minutes, beside a request.
    issuer.serve(&[old.listed("old")]);
    server.fleet.clock.advance_ms(300_000);
    server
        .fleet
        .until("the withdrawn key is refused", async || of_new.get("/principal").await.status == 401)
        .await;
    of_old.get("/principal").await.expect(200);
    server.end().await;
}

/// Keys that were read count for an hour while the issuer does not answer.
#[tokio::test]
async fn an_issuer_that_does_not_answer_is_503() {
    let key = TokenKey::ec();
    let issuer = TokenIssuer::start(&[key.listed("ec")]).await;
    let server = server(Backend::Sqlite, &issuer, &json!({})).await;
    let far = json!({"exp": server.fleet.clock.now().0 / 1_000 + 86_400});
    let ann = with(&server, key.token("ec", &claims(&server, &issuer, &far)));
    issuer.go_down(true);
    let refused = ann.get("/principal").await.expect(503);
    assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("issuer_unreachable", "30"));
    issuer.go_down(false);
    ann.get("/principal").await.expect(503);
    server.fleet.clock.advance_ms(30_000);
    issuer.call_itself("https://login.example.com");
    let refused = ann.get("/principal").await.expect(503);
    assert!(refused.text.contains("another issuer"), "{}", refused.text);
    issuer.call_itself(&issuer.url);
    server.fleet.clock.advance_ms(30_000);
    ann.get("/principal").await.expect(200);
    issuer.go_down(true);
    server.fleet.clock.advance_ms(3_599_999);
    ann.get("/principal").await.expect(200);
    server.fleet.clock.advance_ms(60_000);
    ann.get("/principal").await.expect(503);
    let many: Vec<Value> = (0..101).map(|number| key.listed(&number.to_string())).collect();
    issuer.go_down(false);
    issuer.serve(&many);
    server.fleet.clock.advance_ms(60_000);
    assert!(ann.get("/principal").await.expect(503).text.contains("more than 100 keys"));
    server.end().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let key = TokenKey::ec();
    let issuer = TokenIssuer::start(&[key.listed("ec")]).await;
    let server = server(Backend::Sqlite, &issuer, &json!({})).await;
    let ann = with(&server, key.token("ec", &claims(&server, &issuer, &json!({}))));
    let url = format!("{}/ojs/v1/events/stream", server.fleet.url);
    let mut stream = turnstone_tests::http::client().get(url).bearer_auth(&ann.secret).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    // The clocks of issuer and server may differ by half a minute.
    server.fleet.clock.advance_ms(329_999);
    ann.get("/principal").await.expect(200);
    server.fleet.clock.advance_ms(1);
    wait::output("the stream ends", async { while let Ok(Some(_)) = stream.chunk().await {} }).await;
    ann.get("/principal").await.expect(401);
    server.end().await;
}

#[tokio::test]
async fn the_tokens_of_a_principal_share_its_rate() {
    let key = TokenKey::ec();
    let issuer = TokenIssuer::start(&[key.listed("ec")]).await;
    let server = server(Backend::Sqlite, &issuer, &json!({"rate_per_minute": 6})).await;
    let [one, two] = ["a", "b"].map(|id| key.token("ec", &claims(&server, &issuer, &json!({"jti": id}))));
    with(&server, one).get("/principal").await.expect(200);
    let refused = with(&server, two.as_str()).get("/principal").await.expect(429);
    assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("rate_limited", "10"));
    let ben = key.token("ec", &claims(&server, &issuer, &json!({"sub": "ben"})));
    with(&server, ben).get("/principal").await.expect(200);
    server.fleet.clock.advance_ms(10_000);
    with(&server, two).get("/principal").await.expect(200);
    server.end().await;
}

/// `turnstone doctor` reads the keys of every issuer.
#[tokio::test]
async fn doctor_names_an_issuer_whose_keys_cannot_be_used() {
    let key = TokenKey::ec();
    let issuer = TokenIssuer::start(&[key.listed("ec")]).await;
    let folder = turnstone_tests::scratch::folder();
    let doctor = async |algorithm: &str| {
        let section = format!(
            "[server.issuers.corp]\nissuer = '{}'\naudience = ['turnstone']\nalgorithms = ['{algorithm}']\nfleet = true\n\
             roles = {{ users = ['viewer'] }}\nallow_private = true\n",
            issuer.url
        );
        std::fs::write(folder.path().join("turnstone.toml"), section).unwrap();
        run(folder.path(), &["doctor"], &[]).await.stdout
    };
    let usable = doctor("ES256").await;
    assert!(usable.contains("the issuer corp has usable keys (1)"), "{usable}");
    let unusable = doctor("RS256").await;
    assert!(unusable.contains("the issuer corp has no key for its algorithms"), "{unusable}");
    issuer.go_down(true);
    let down = doctor("ES256").await;
    assert!(down.contains("the public keys of the issuer corp cannot be read"), "{down}");
}

const AGENT: &str = "kind: openagentspec:v1/agent\nname: booker\ndescription: It books.\nintent: You book.\nowner: olga\n\
                     capabilities:\n  book:\n    user_identity: false\n    input_restriction:\n      require_review: ben\n";

/// Where duties are separate, a person does not submit with a key and approve with a token.
#[tokio::test]
async fn a_key_and_a_token_of_one_name_have_one_duty() {
    let key = TokenKey::ec();
    let issuer = TokenIssuer::start(&[key.listed("ec")]).await;
    let books = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 640})),
        _ => Reply::text("booked"),
    };
    let fleet = Fleet::builder().model(books).reviews(json!({"separate_duties": true}));
    let server = OjsServer::over(fleet.issuer("corp", section(&issuer, &json!({}))).start().await);
    let token = |more: Value| key.token("ec", &claims(&server, &issuer, &more));
    let root = with(&server, token(json!({"sub": "root", "org": null, "realm": {"roles": ["roots"]}})));
    let bearer = format!("Bearer {}", root.secret);
    server.send(Method::POST, "/agents", &[("Authorization", &bearer)], AGENT).await.expect(201);
    let roles = json!({"name": "ann", "tenant": "acme", "roles": ["submitter"], "acts_for": ["*"]});
    let secret = root.post("/keys", &roles).await.expect(201).json()["secret"].as_str().unwrap().to_owned();
    let job = json!({"type": "agent.book", "args": ["it"], "meta": {"agent": "booker"}});
    let job = with(&server, secret).post("/ojs/v1/jobs", &job).await.expect(201).json();
    let approver = |sub: &str| token(json!({"sub": sub, "realm": {"roles": ["bosses"]}, "for": "ben"}));
    let ann = with(&server, approver("ann"));
    let mut open = Value::Null;
    server
        .fleet
        .until("the job waits for its review", async || {
            open = ann.get("/reviews?state=open").await.expect(200).json()["items"][0]["id"].clone();
            open.is_string()
        })
        .await;
    let approve = format!("/reviews/{}/approve", open.as_str().unwrap());
    let refused = ann.post(&approve, &json!({"by": "ben"})).await.expect(403);
    assert!(refused.text.contains("submitted the job"), "{}", refused.text);
    with(&server, approver("cem")).post(&approve, &json!({"by": "ben"})).await.expect(200);
    let id = job["job"]["id"].as_str().unwrap().to_owned();
    server
        .fleet
        .until("the job completes", async || {
            ann.get(&format!("/ojs/v1/jobs/{id}")).await.expect(200).json()["job"]["state"] == "completed"
        })
        .await;
    server.fleet.end().await;
}
