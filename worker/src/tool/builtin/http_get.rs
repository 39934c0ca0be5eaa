//! `http_get`: fetches a public page as text.

use crate::tool::address_guard::check_url;
use crate::tool::body_text::{self, BodyText};
use crate::tool::outbound;
use crate::tool::{Answer, Invocation, Tool, ToolError, Transport, within};
use async_trait::async_trait;
use encoding_rs::Encoding;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::agent::errors::Breaker;
use turnstone_outbound::OwnAddresses;
use turnstone_telemetry::redact;
use url::Url;

/// The most bytes of a page that are read.
const TEXT_CAP: usize = 256 * 1024;

/// Fetches a page of the public internet. Always behind the address guard; redirects are reported, not
/// followed.
#[derive(Debug)]
pub struct HttpGetTool {
    spec: ToolSpec,
    client: Client,
    own: OwnAddresses,
}

impl HttpGetTool {
    /// Returns a tool that fetches with `client`, which must be a guarded one.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let spec = ToolSpec {
            name: "http_get".to_owned(),
            description: "Fetches a page of the public web with GET and returns its text.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"url": {"type": "string", "description": "An absolute http or https URL"}},
                "required": ["url"],
                "additionalProperties": false,
            }),
            idempotent: true,
        };
        Self { spec, client, own: OwnAddresses::default() }
    }

    /// Returns the tool that never calls these addresses, on which this server listens.
    #[must_use]
    pub fn avoiding(self, own: OwnAddresses) -> Self {
        Self { own, ..self }
    }

    async fn fetch(&self, url: Url, call_id: &str) -> Result<Answer, ToolError> {
        let failed = |problem: String| ToolError::Answered(format!("tool http_get: {problem}"));
        // Another request would have the same answer.
        let refused = |problem: String| ToolError::Final(format!("tool http_get: {problem}"));
        let client = outbound::client_avoiding(&self.own, &url, false, &self.client)
            .map_err(|problem| ToolError::Refused(format!("tool http_get: {problem}")))?;
        let sent = client.get(url.clone()).header("idempotency-key", call_id).send().await;
        let response = sent.map_err(|error| failed(outbound::describe(&error)))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(refused(match target(&url, &response) {
                Some(target) => {
                    format!("status {}: the page is at {target}; ask for that URL", status.as_u16())
                }
                None => format!("status {} without a usable Location", status.as_u16()),
            }));
        }
        if !status.is_success() {
            let problem = format!("the server answered with status {}", status.as_u16());
            let defers = response.headers().contains_key(RETRY_AFTER);
            return Err(match (status.as_u16(), defers) {
                (429, _) | (503, true) => {
                    ToolError::Busy(format!("tool http_get: {problem}"), outbound::retry_after_ms(&response))
                }
                (408 | 425, _) | (500.., _) => failed(problem),
                _ => refused(problem),
            });
        }
        let content_type = outbound::content_type(&response);
        let media_type = outbound::essence(&content_type);
        let (body, whole) =
            outbound::read_start(response, TEXT_CAP).await.map_err(|error| failed(error.to_string()))?;
        let is_text = body_text::declared(&content_type).is_some() || Encoding::for_bom(&body).is_some();
        if !is_text && body.contains(&0) {
            return Err(refused(format!("the page is {media_type:?}, which is not text")));
        }
        let BodyText { text, note } = body_text::decode(&content_type, body);
        let text = redact(&text);
        let output =
            json!({"status": status.as_u16(), "content_type": media_type, "text": text, "truncated": !whole});
        Ok(Answer { notes: note.into_iter().collect(), ..Answer::from(output) })
    }
}

fn target(url: &Url, response: &Response) -> Option<Url> {
    let location = response.headers().get(reqwest::header::LOCATION)?.to_str().ok()?;
    url.join(location).ok()
}

#[async_trait]
impl Tool for HttpGetTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(20)
    }

    /// Returns a disabled breaker: a page that cannot be fetched implies nothing about other servers.
    fn breaker(&self) -> Option<Breaker> {
        Some(Breaker { enabled: false, ..Breaker::default() })
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        self.answer(invocation).await.map(|answer| answer.output)
    }

    async fn answer(&self, invocation: Invocation<'_>) -> Result<Answer, ToolError> {
        let refused = |problem: String| ToolError::Refused(format!("tool http_get: {problem}"));
        let text = invocation.input["url"]
            .as_str()
            .ok_or_else(|| refused("the argument `url` is missing".to_owned()))?;
        let url = Url::parse(text).map_err(|error| refused(format!("not a URL: {error}")))?;
        check_url(&url).map_err(refused)?;
        let fetch = self.fetch(url, invocation.call_id.as_str());
        within(invocation.timeout, fetch, || "tool http_get: no answer".to_owned()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::http::StatusCode;
    use axum::http::header::LOCATION;
    use axum::routing::get;
    use tokio_util::task::AbortOnDropHandle;

    async fn serve() -> (u16, AbortOnDropHandle<()>) {
        let app = Router::new()
            .route("/page", get(|| async { "hello" }))
            .route("/large", get(|| async { "x".repeat(TEXT_CAP + 1) }))
            .route("/moved", get(|| async { (StatusCode::FOUND, [(LOCATION, "/page")]) }))
            .route("/busy", get(|| async { (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "7")]) }))
            .route("/broken", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
            .route("/binary", get(|| async { vec![0_u8; 10] }));
        let (address, serving) = crate::served::serve(app).await;
        (address.port(), serving)
    }

    #[tokio::test]
    async fn local_addresses_are_refused_before_anything_is_sent() {
        let (port, _serving) = serve().await;
        let tool = HttpGetTool::new(outbound::guarded_client().unwrap());
        for host in ["127.0.0.1", "localhost", "[::1]", "2130706433"] {
            let input = json!({"url": format!("http://{host}:{port}/page")});
            let call = Invocation {
                call_id: &"c".into(),
                input: &input,
                timeout: tool.timeout(),
                identity: &crate::tool::Identity::default(),
            };
            assert!(matches!(tool.call(call).await, Err(ToolError::Refused(_))), "{host}");
        }
    }

    #[tokio::test]
    async fn pages_are_capped_and_a_missing_one_is_requested_once() {
        let (port, _serving) = serve().await;
        // The guard is in `call` and in the client; `fetch` with an open client tests the rest.
        let tool = HttpGetTool::new(outbound::open_client().unwrap());
        let fetch =
            |path: &str| tool.fetch(Url::parse(&format!("http://127.0.0.1:{port}{path}")).unwrap(), "c");
        let page = fetch("/page").await.unwrap().output;
        assert_eq!(
            (&page["text"], &page["truncated"], &page["status"]),
            (&json!("hello"), &json!(false), &json!(200))
        );
        let large = fetch("/large").await.unwrap().output;
        assert_eq!((large["text"].as_str().unwrap().len(), &large["truncated"]), (TEXT_CAP, &json!(true)));
        for (path, words) in [("/moved", "302: the page is at"), ("/binary", "not text"), ("/absent", "404")]
        {
            let error = fetch(path).await.unwrap_err();
            assert!(matches!(&error, ToolError::Final(text) if text.contains(words)), "once: {error:?}");
        }
        let busy = fetch("/busy").await.unwrap_err();
        assert!(matches!(&busy, ToolError::Busy(text, Some(7_000)) if text.contains("429")), "{busy:?}");
        let broken = fetch("/broken").await.unwrap_err();
        assert!(matches!(&broken, ToolError::Answered(text) if text.contains("500")), "{broken:?}");
    }
}
