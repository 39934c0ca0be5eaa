//! A client that outlives its server: it repeats a request until the server answers.

use crate::wait::{self, Pauses};
use reqwest::{Client, Method};
use serde_json::Value;
use std::time::Duration;

/// The deadline of an answer: a server, and its database too, may have to start again.
const PATIENCE: Duration = Duration::from_secs(120);

/// Repeats a request until its answer is JSON with a status below 500.
///
/// # Panics
/// When there is no such answer in two minutes.
pub async fn insist(http: &Client, method: Method, url: &str, body: &Value) -> (u16, Value) {
    let what = format!("an answer to {method} {url}");
    wait::output_within(&what, PATIENCE, async {
        let mut pauses = Pauses::default();
        loop {
            if let Ok(answer) = http.request(method.clone(), url).json(body).send().await {
                let status = answer.status();
                if !status.is_server_error()
                    && let Ok(body) = answer.json().await
                {
                    return (status.as_u16(), body);
                }
            }
            pauses.next().await;
        }
    })
    .await
}
