//! Ids that clients give to their requests: the same id is the same job, and a tenant cannot take the id of another
//! tenant.

use super::fleet;
use futures::future::join_all;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use turnstone_domain::digest;
use turnstone_tests::{Backend, Fleet};

/// Returns the job id that a name made before the secret was introduced. Any client can compute it.
fn without_secret(name: &Value) -> String {
    let hex = digest::of_json(name);
    format!("{}-{}-7{}-8{}-{}", &hex[..8], &hex[8..12], &hex[12..15], &hex[15..18], &hex[18..30])
}

async fn post(
    fleet: &Fleet,
    path: &str,
    body: &Value,
    headers: &[(&'static str, &str)],
) -> (u16, HeaderMap, Value) {
    let client = turnstone_tests::http::client_builder().redirect(Policy::none()).build().unwrap();
    let mut request = client.post(format!("{}{path}", fleet.url)).json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, headers, answer.json().await.unwrap_or_default())
}

/// Enqueues a job with this id, as any client of OJS can.
async fn push(fleet: &Fleet, id: &str, tenant: &str) -> Value {
    let job = json!({"id": id, "type": "agent.engagement", "args": ["go"], "meta": {"agent": "lead"}});
    let (status, _, body) = post(fleet, "/ojs/v1/jobs", &job, &[("x-ojs-tenant", tenant)]).await;
    assert_eq!(status, 201, "{body:#}");
    body["job"].clone()
}

/// AP-A5: another tenant enqueues jobs with the ids that names would have without the secret. This takes no request
/// id, idempotency key or message id from its owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_cannot_take_the_name_of_another_tenant() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        for name in [
            json!(["agent protocol", "lead", "acme", "order-17"]),
            json!(["engage", ["lead", "k-1", "acme", "Client"]]),
            json!(["engage", ["a2a", "lead", "acme", "", "m-1"]]),
        ] {
            push(&fleet, &without_secret(&name), "other").await;
        }
        let acme = ("x-ojs-tenant", "acme");
        let request = json!({"input": "go", "request_id": "order-17"});
        let mut runs = Vec::new();
        for _ in 0..2 {
            let (status, headers, body) = post(&fleet, "/agents/lead/process", &request, &[acme]).await;
            assert_eq!(status, 202, "{body:#}");
            assert_eq!(headers["x-request-id"], "order-17");
            runs.push(headers["x-run-id"].clone());
        }
        assert_eq!(runs[0], runs[1], "the same name is the same request");
        let mut places = Vec::new();
        for _ in 0..2 {
            let key = ("idempotency-key", "k-1");
            let (status, headers, body) = post(&fleet, "/agents/lead", &json!("go"), &[acme, key]).await;
            assert_eq!(status, 303, "{body:#}");
            places.push(headers[LOCATION].clone());
        }
        assert_eq!(places[0], places[1]);
        let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}]});
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
        let mut tasks = Vec::new();
        for _ in 0..2 {
            let (_, _, reply) = post(&fleet, "/a2a/lead", &call, &[acme, ("a2a-version", "1.0")]).await;
            assert!(reply["result"]["task"]["id"].is_string(), "{reply:#}");
            tasks.push(reply["result"]["task"]["id"].clone());
        }
        assert_eq!(tasks[0], tasks[1]);
        let led = "SELECT count(*) FROM jobs AS j JOIN engagements AS e ON e.seq = j.engagement_seq \
                   WHERE j.tenant = 'acme' AND e.agent_name = 'lead'";
        assert_eq!(fleet.number(led).await, 3);
        fleet.end().await;
    }))
    .await;
}

/// A name made before the secret was introduced still finds its job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_made_before_the_secret_is_found() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        let id = without_secret(&json!(["engage", ["lead", "k-1", "acme", "Client"]]));
        let job = push(&fleet, &id, "acme").await;
        let headers = [("x-ojs-tenant", "acme"), ("idempotency-key", "k-1")];
        let (status, headers, body) = post(&fleet, "/agents/lead", &json!("go"), &headers).await;
        assert_eq!(status, 303, "{body:#}");
        let engagement = job["ext_agent_engagement_id"].as_str().unwrap();
        assert_eq!(headers[LOCATION], format!("/engagements/{engagement}"));
        fleet.end().await;
    }))
    .await;
}
