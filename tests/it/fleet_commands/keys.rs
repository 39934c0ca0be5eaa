//! Keys in several api processes.

use super::Site;
use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_tests::Reply;

/// How many keys are created.
const KEYS: usize = 40;

/// The other process has read the keys just before, as it is in use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_new_key_opens_every_api_process_at_once() {
    let site = Site::migrated(|_| Reply::text("done")).await;
    let (here, there) = tokio::join!(site.api(), site.api());
    let http = turnstone_tests::http::client();
    let post = async |path: String, body: Value| -> Value {
        let answer = http.post(format!("{}{path}", here.url)).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap()
    };
    let status = async |secret: &Value| {
        let request = http.get(format!("{}/principal", there.url)).bearer_auth(secret.as_str().unwrap());
        request.send().await.unwrap().status()
    };
    for number in 0..KEYS {
        let key =
            post("/keys".to_owned(), json!({"name": format!("key-{number}"), "roles": ["viewer"]})).await;
        assert_eq!(status(&key["secret"]).await, StatusCode::OK, "key {number}");
        let rotated = post(format!("/keys/{}/rotate", key["id"].as_str().unwrap()), json!({})).await;
        assert_eq!(status(&rotated["secret"]).await, StatusCode::OK, "the new secret of key {number}");
    }
    for api in [here, there] {
        api.program.stop().await;
    }
}
