//! The cost of access checks: jobs enqueued over HTTP without a key, with a stored key, and with a token.
//!
//! The requests alternate on one connection, so that the machine's other load concerns all of them. Without `--bench`, as
//! `cargo test --benches` runs it, everything is tried once.

#![expect(clippy::expect_used, reason = "a bench that cannot continue has to stop")]

use reqwest::Client;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use turnstone_tests::token_issuer::{TokenIssuer, TokenKey};
use turnstone_tests::{Backend, Fleet};

/// Requests of each kind.
const REQUESTS: usize = 10_000;
/// The most that a check may cost, in percent.
const AIM: f64 = 2.0;

/// A server without workers on an SQLite file of its own.
async fn fleet(issuer: Option<&TokenIssuer>) -> Fleet {
    let builder = Fleet::builder().on(Backend::Sqlite).workers(0);
    let section = |issuer: &TokenIssuer| {
        json!({"issuer": issuer.url, "audience": ["turnstone"], "fleet": true, "allow_private": true,
               "algorithms": ["EdDSA"], "roles": {"users": ["submitter"], "roots": ["admin"]}})
    };
    match issuer {
        Some(issuer) => builder.issuer("bench", section(issuer)).start().await,
        None => builder.start().await,
    }
}

/// Enqueues a job and returns the time that it took.
async fn enqueue(client: &Client, url: &str, bearer: Option<&str>) -> Duration {
    let request = client.post(url).header("content-type", "application/openjobspec+json");
    let request = bearer.into_iter().fold(request, |request, bearer| request.bearer_auth(bearer));
    let body = r#"{"type":"bench.access","args":["a question of some length"]}"#;
    let begun = Instant::now();
    let answer = request.body(body).send().await.expect("an answer");
    let is_created = answer.status() == 201;
    answer.bytes().await.expect("a body");
    assert!(is_created, "the job is enqueued");
    begun.elapsed()
}

/// Returns the median times of two kinds of requests, which alternate.
async fn compared(url: &str, bearers: [Option<&str>; 2], requests: usize) -> [Duration; 2] {
    let (client, url) = (turnstone_tests::http::client(), format!("{url}/ojs/v1/jobs"));
    let mut times = [Vec::with_capacity(requests), Vec::with_capacity(requests)];
    for number in 0..requests {
        // Each is the first of a pair as often as the other.
        let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
        for kind in order {
            times[kind].push(enqueue(&client, &url, bearers[kind]).await);
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}

fn print(names: [&str; 2], [before, after]: [Duration; 2]) {
    let more = (after.as_secs_f64() / before.as_secs_f64() - 1.0) * 100.0;
    let said = if more < AIM { "met" } else { "missed" };
    println!(
        "{}: {:.1} µs, {}: {:.1} µs at the median, {more:+.2} % (aim: below {AIM} %, {said})",
        names[0],
        before.as_secs_f64() * 1e6,
        names[1],
        after.as_secs_f64() * 1e6,
    );
}

async fn key_of(fleet: &Fleet, bearer: Option<&str>) -> String {
    let key = json!({"name": "bench", "roles": ["submitter"]});
    let request = turnstone_tests::http::client().post(format!("{}/keys", fleet.url)).json(&key);
    let request = bearer.into_iter().fold(request, |request, bearer| request.bearer_auth(bearer));
    let answer: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    answer["secret"].as_str().expect("a secret").to_owned()
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_trial =
        !arguments.iter().any(|word| word == "--bench") || arguments.iter().any(|word| word == "--test");
    let requests = if is_trial { 4 } else { REQUESTS };
    let open = fleet(None).await;
    let key = key_of(&open, None).await;
    compared(&open.url, [None, Some(key.as_str())], requests / 4).await;
    print(["no key", "stored key"], compared(&open.url, [None, Some(key.as_str())], requests).await);
    // The token is compared with a key: a server with an issuer accepts no request without either.
    let signing = TokenKey::ed();
    let issuer = TokenIssuer::start(&[signing.listed("k")]).await;
    let closed = fleet(Some(&issuer)).await;
    let end = closed.now().0 / 1_000 + 86_400;
    let token_of = |role: &str| {
        let claims = json!({"iss": issuer.url, "aud": "turnstone", "sub": role, "exp": end, "roles": [role]});
        signing.token("k", &claims)
    };
    let (token, root) = (token_of("users"), token_of("roots"));
    let key = key_of(&closed, Some(root.as_str())).await;
    compared(&closed.url, [Some(key.as_str()), Some(token.as_str())], requests / 4).await;
    print(
        ["stored key", "token"],
        compared(&closed.url, [Some(key.as_str()), Some(token.as_str())], requests).await,
    );
    open.end_unchecked().await;
    closed.end_unchecked().await;
}
