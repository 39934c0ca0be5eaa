//! A client that outlives its server: what is not answered is asked again.

use reqwest::{Client, Method};
use serde_json::Value;
use std::time::Duration;

/// The pause before something is asked again.
const AGAIN: Duration = Duration::from_millis(100);

/// Asks until somebody answers who is not about to fail: a status below 500, and a body that is JSON.
pub async fn insist(http: &Client, method: Method, url: &str, body: &Value) -> (u16, Value) {
    loop {
        if let Ok(answer) = http.request(method.clone(), url).json(body).send().await {
            let status = answer.status();
            if !status.is_server_error()
                && let Ok(body) = answer.json().await
            {
                return (status.as_u16(), body);
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
