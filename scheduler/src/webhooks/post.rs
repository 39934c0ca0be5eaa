//! One attempt: a POST that reaches public addresses only, follows no redirects, and reads little of the response.

use super::sign;
use reqwest::header::{CONTENT_TYPE, USER_AGENT};
use reqwest::{Client, Response};
use std::error::Error;
use std::time::Duration;
use turnstone_domain::Timestamp;
use turnstone_domain::address::check_text;
use turnstone_domain::webhook::{Delivery, Webhook};
use turnstone_outbound::{OpenResolver, PublicResolver, client_builder};

/// The most bytes of a failed response that are kept, to explain the failure.
const EXCERPT_BYTES: usize = 300;

/// The response of a receiver.
pub(super) enum ReceiverAnswer {
    /// It accepted the delivery.
    Taken(u16),
    /// It is gone for good.
    Gone(String),
    /// It returned another status.
    Refused(u16, String),
    /// It did not answer.
    Silent(String),
}

/// Posts deliveries.
pub(super) struct Post {
    client: Client,
    allow_private: bool,
}

impl Post {
    /// # Errors
    /// A sentence that says why the client cannot be built.
    pub(super) fn new(allow_private: bool, timeout: Duration) -> Result<Self, String> {
        let builder = client_builder().timeout(timeout).connect_timeout(timeout);
        let builder = match allow_private {
            true => builder.dns_resolver(OpenResolver),
            false => builder.dns_resolver(PublicResolver),
        };
        let client = builder
            .build()
            .map_err(|error| format!("the client for webhooks cannot be built: {}", describe(&error)))?;
        Ok(Self { client, allow_private })
    }

    /// Posts a delivery, signed as of `now`.
    pub(super) async fn send(
        &self,
        webhook: &Webhook,
        delivery: &Delivery,
        now: Timestamp,
    ) -> ReceiverAnswer {
        // The address was checked when it was registered; the rules may have changed since.
        if let Err(why) = check_text(&webhook.url, self.allow_private) {
            return ReceiverAnswer::Silent(why);
        }
        let timestamp = (now.0 / 1_000).to_string();
        let (id, body) = (delivery.id.as_str(), delivery.body.as_str());
        let standard: Vec<String> =
            webhook.secrets(now).map(|secret| sign::standard(secret, id, &timestamp, body)).collect();
        let mut request = self
            .client
            .post(&webhook.url)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("turnstone/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", id)
            .header("webhook-timestamp", &timestamp)
            .header("webhook-signature", standard.join(" "))
            .header("x-ojs-delivery-id", id)
            .header("x-ojs-event", &delivery.event)
            .header("x-ojs-timestamp", &timestamp);
        for (secret, header) in webhook.secrets(now).zip(["x-ojs-signature", "x-ojs-signature-previous"]) {
            request = request.header(header, sign::ojs(secret, &timestamp, body));
        }
        match request.body(delivery.body.clone()).send().await {
            Ok(response) => receiver_answer(response).await,
            Err(error) => ReceiverAnswer::Silent(describe(&error)),
        }
    }
}

async fn receiver_answer(response: Response) -> ReceiverAnswer {
    let status = response.status();
    if status.is_success() {
        return ReceiverAnswer::Taken(status.as_u16());
    }
    let said = excerpt(response).await;
    let what = if status.is_redirection() { " (redirects are not followed)" } else { "" };
    let why = format!("the receiver answered {}{what}{said}", status.as_u16());
    if status.as_u16() == 410 {
        ReceiverAnswer::Gone(why)
    } else {
        ReceiverAnswer::Refused(status.as_u16(), why)
    }
}

/// Returns the beginning of an answer, in one line; nothing when it is not text.
async fn excerpt(mut response: Response) -> String {
    let mut read = Vec::new();
    while read.len() < EXCERPT_BYTES {
        match response.chunk().await {
            Ok(Some(chunk)) => read.extend_from_slice(&chunk[..chunk.len().min(EXCERPT_BYTES - read.len())]),
            _ => break,
        }
    }
    let text: String = String::from_utf8_lossy(&read).chars().filter(|c| !c.is_control()).collect();
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!(": {}", turnstone_telemetry::redact(text)) }
}

/// Returns an error with its last cause, without the URL, which may hold a secret.
fn describe(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "the receiver did not answer in time"
    } else if error.is_connect() {
        "the receiver cannot be reached"
    } else if error.is_builder() {
        "the request cannot be made"
    } else {
        "the connection was lost before an answer came"
    };
    let mut last = None;
    let mut cause = error.source();
    while let Some(inner) = cause {
        last = Some(inner.to_string());
        cause = inner.source();
    }
    let text = last.map_or_else(|| what.to_owned(), |last| format!("{what}: {last}"));
    turnstone_telemetry::redact(&text).chars().take(EXCERPT_BYTES).collect()
}
