//! Webhooks on the wire: requests for subscriptions, and the subscriptions and deliveries in responses (OJS webhooks).

use crate::request::{between, optional, required};
use crate::{Fields, OjsError, OpenValue, read};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use turnstone_domain::address;
use turnstone_domain::feed::is_pattern;
use turnstone_domain::webhook::{
    Delivery, DeliveryState, SigningSecret, Webhook, WebhookChange, WebhookFilter,
};
use turnstone_domain::{RawJson, RawObject, Timestamp};
use utoipa::ToSchema;

/// An address has at most this many characters.
const URL_CHARACTERS: usize = 2_048;
/// A secret has at most this many characters.
const SECRET_CHARACTERS: usize = 256;
/// A list has at most this many entries.
const ENTRIES: usize = 100;
/// Metadata has at most this many bytes.
const METADATA_BYTES: usize = 16 * 1024;

/// A subscription to be made.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
#[schema(as = NewWebhookSubscription, example = json!({
    "url": "https://example.com/hooks/ojs", "events": ["job.completed", "job.failed"], "filter": {"queues": ["mail"]}
}))]
pub struct NewSubscription {
    /// http or https, without credentials, at an address of the public internet unless the server allows others.
    pub url: String,
    /// Names, `*` and beginnings such as `job.*`.
    #[serde(deserialize_with = "patterns")]
    pub events: Vec<String>,
    /// Only these events.
    pub filter: Option<FilterBody>,
    /// The client's own notes.
    #[schema(value_type = Option<Map<String, Value>>)]
    pub metadata: Option<RawObject>,
    /// Signs deliveries; made by the server when it is left out.
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>)]
    pub secret: Option<SigningSecret>,
    /// True if it is left out.
    pub active: Option<bool>,
}

/// The changes; at least one of these.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
#[schema(as = WebhookSubscriptionChange, example = json!({"active": false}))]
pub struct SubscriptionChange {
    url: Option<String>,
    #[serde(default, deserialize_with = "new_patterns")]
    events: Option<Vec<String>>,
    filter: Option<FilterBody>,
    #[schema(value_type = Option<Map<String, Value>>)]
    metadata: Option<RawObject>,
    /// Events that occur while it is not active are never delivered; waiting deliveries continue when it is active
    /// again.
    active: Option<bool>,
}

/// The filter of the events; empty lists match all.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[schema(as = WebhookFilterRequest)]
pub struct FilterBody {
    #[serde(default, deserialize_with = "entries")]
    queues: Option<Vec<String>>,
    #[serde(default, deserialize_with = "entries")]
    job_types: Option<Vec<String>>,
}

impl From<FilterBody> for WebhookFilter {
    fn from(FilterBody { queues, job_types }: FilterBody) -> Self {
        Self { queues: queues.unwrap_or_default(), job_types: job_types.unwrap_or_default() }
    }
}

/// Reads the body that makes a subscription. With `allow_private`, addresses outside of the public internet are
/// allowed.
///
/// # Errors
/// 400 with the member that is missing or wrong.
pub fn read_new(body: &[u8], allow_private: bool) -> Result<NewSubscription, OjsError> {
    let fields = Fields::read(body)?;
    check_filter(&fields)?;
    let new: NewSubscription = fields.typed()?;
    check_url(&new.url, allow_private)?;
    check_metadata(new.metadata.as_ref())?;
    Ok(new)
}

/// Reads the body that changes a subscription; absent members stay unchanged.
///
/// # Errors
/// 400 with the member that is wrong, or when nothing is to be changed.
pub fn read_change(body: &[u8], allow_private: bool) -> Result<WebhookChange, OjsError> {
    let fields = Fields::read(body)?;
    if fields.raw("secret").is_some() {
        let why =
            "is not changed here; POST …/rotate-secret replaces it and lets the old one sign for a while";
        return Err(OjsError::invalid_request("secret", why));
    }
    check_filter(&fields)?;
    let SubscriptionChange { url, events, filter, metadata, active } = fields.typed()?;
    url.as_deref().map_or(Ok(()), |url| check_url(url, allow_private))?;
    check_metadata(metadata.as_ref())?;
    let filter = filter.map(WebhookFilter::from);
    let change = WebhookChange { url, events, filter, metadata, active, secret: None };
    if change == WebhookChange::default() {
        return Err(OjsError::invalid_request("the body", "names nothing that can be changed"));
    }
    Ok(change)
}

/// Reads a secret of 1 to 256 visible ASCII characters. A wrong one is not repeated.
fn secret<'de, D: Deserializer<'de>>(member: D) -> Result<Option<SigningSecret>, D::Error> {
    optional(member, |value| {
        let text = read::text(value)?;
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible || !(1..=SECRET_CHARACTERS).contains(&text.len()) {
            return Err("must be 1 to 256 visible ASCII characters".to_owned());
        }
        Ok(SigningSecret(text.to_owned()))
    })
}

/// The replacement of the secret.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[schema(as = WebhookRotation)]
pub struct Rotation {
    /// The new secret; made by the server when it is left out.
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>)]
    pub secret: Option<SigningSecret>,
    /// How long the old one signs beside it, in seconds: a day by default.
    #[serde(default, deserialize_with = "between::<_, 0, 2_592_000>")]
    #[schema(minimum = 0, maximum = 2_592_000)]
    grace_seconds: Option<i64>,
}

impl Rotation {
    /// Returns how long the old secret signs beside the new one.
    #[must_use]
    pub fn grace_ms(&self) -> i64 {
        self.grace_seconds.map_or(turnstone_domain::webhook::GRACE_MS, |seconds| seconds * 1_000)
    }
}

fn check_url(text: &str, allow_private: bool) -> Result<(), OjsError> {
    let wrong = |why: &str| OjsError::invalid_request("url", why);
    if text.len() > URL_CHARACTERS || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("must be an absolute URL of at most 2048 visible ASCII characters"));
    }
    address::check_text(text, allow_private).map_err(|why| wrong(&format!("is refused: {why}")))
}

fn patterns<'de, D: Deserializer<'de>>(member: D) -> Result<Vec<String>, D::Error> {
    required(member, pattern_list)
}

fn new_patterns<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Vec<String>>, D::Error> {
    optional(member, pattern_list)
}

fn pattern_list(value: &Value) -> Result<Vec<String>, String> {
    let events = read::texts(value)?;
    if events.is_empty() || events.len() > ENTRIES {
        return Err(format!("must name 1 to {ENTRIES} events"));
    }
    match events.iter().position(|event| !is_pattern(event)) {
        Some(at) => Err(format!("[{at}] must be `*`, the name of an event, or a beginning such as `job.*`")),
        None => Ok(events),
    }
}

fn entries<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Vec<String>>, D::Error> {
    optional(member, |value| match read::texts(value)? {
        long if long.len() > ENTRIES => Err(format!("must have at most {ENTRIES} entries")),
        list => Ok(list),
    })
}

/// Refuses an unknown member of a filter: without it, more events would be sent than were meant.
fn check_filter(fields: &Fields) -> Result<(), OjsError> {
    let filter = fields.object("filter")?.unwrap_or_default();
    match filter.names().find(|name| !matches!(*name, "queues" | "job_types")) {
        Some(unknown) => {
            let shown: String = unknown.chars().take(100).collect();
            let why = format!("knows queues and job_types, not `{shown}`");
            Err(OjsError::invalid_request("filter", why))
        }
        None => Ok(()),
    }
}

fn check_metadata(metadata: Option<&RawObject>) -> Result<(), OjsError> {
    if metadata.is_some_and(|object| object.to_raw().as_str().len() > METADATA_BYTES) {
        let why = format!("must have at most {METADATA_BYTES} bytes");
        return Err(OjsError::invalid_request("metadata", why));
    }
    Ok(())
}

/// A subscription to events.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = WebhookSubscription)]
pub struct SubscriptionBody {
    /// `sub_` and a UUID.
    pub id: String,
    /// Where deliveries go.
    #[schema(example = "https://example.com/hooks/ojs")]
    pub url: String,
    /// Names, `*` and beginnings such as `job.*`.
    pub events: Vec<String>,
    /// The filter of the events.
    pub filter: SubscriptionFilter,
    /// The client's own notes.
    #[schema(value_type = Map<String, Value>)]
    pub metadata: RawJson,
    /// True if it receives events.
    pub active: bool,
    /// Only in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// When it was changed last.
    pub updated_at: String,
}

/// The filter of the events; empty lists match all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = WebhookFilter)]
pub struct SubscriptionFilter {
    /// Jobs in these queues, and workflows with such jobs.
    pub queues: Vec<String>,
    /// Jobs of these types.
    pub job_types: Vec<String>,
}

/// A subscription, and the same flat.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = WebhookSubscriptionReply)]
pub struct SubscriptionReply {
    /// The subscription.
    pub subscription: SubscriptionBody,
    #[serde(flatten)]
    flat: SubscriptionBody,
    /// Until when the replaced secret signs beside the new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<String>,
}

impl From<&Webhook> for SubscriptionBody {
    /// Returns a subscription without its secret.
    fn from(webhook: &Webhook) -> Self {
        let WebhookFilter { queues, job_types } = webhook.filter.clone();
        Self {
            id: webhook.id.clone(),
            url: webhook.url.clone(),
            events: webhook.events.clone(),
            filter: SubscriptionFilter { queues, job_types },
            metadata: webhook.metadata.to_raw(),
            active: webhook.active,
            secret: None,
            created_at: webhook.created_at.to_rfc3339(),
            updated_at: webhook.updated_at.to_rfc3339(),
        }
    }
}

impl SubscriptionReply {
    /// Returns the answer. The secret is included only `with_secret`: in the response that made it.
    #[must_use]
    pub fn of(webhook: &Webhook, with_secret: bool) -> Self {
        let secret = with_secret.then(|| webhook.secret.0.clone());
        let subscription = SubscriptionBody { secret, ..webhook.into() };
        Self { flat: subscription.clone(), subscription, old_secret_until: None }
    }
}

/// One event on its way to one subscription, without its body.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub struct DeliveryBody {
    /// `webhook-id` of every attempt.
    pub id: String,
    /// The subscription.
    pub subscription_id: String,
    /// The event.
    pub event_id: String,
    /// Its name.
    #[schema(example = "job.completed")]
    pub event: String,
    /// pending, delivered or failed.
    #[schema(value_type = String)]
    pub state: OpenValue<DeliveryState>,
    /// How often it was posted.
    pub attempts: i64,
    /// The last HTTP status of the receiver.
    pub status: Option<i64>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// When it is posted next.
    pub next_attempt_at: Option<String>,
    /// When it was delivered or given up.
    pub ended_at: Option<String>,
}

impl From<Delivery> for DeliveryBody {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id,
            subscription_id: delivery.webhook_id,
            event_id: delivery.event_id,
            event: delivery.event,
            state: delivery.state.into(),
            attempts: delivery.attempts,
            status: delivery.status,
            error: delivery.error,
            created_at: delivery.created_at.to_rfc3339(),
            next_attempt_at: delivery.next_at.map(Timestamp::to_rfc3339),
            ended_at: delivery.ended_at.map(Timestamp::to_rfc3339),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(member: &str) -> String {
        format!(r#"{{"url":"https://example.com/h","events":["job.*"],{member}}}"#)
    }

    #[test]
    fn a_wrong_member_is_named() {
        for (member, field) in [
            (r#""x":1,"url2":1"#, ""),
            (r#""secret":"""#, "secret"),
            (r#""secret":"a b""#, "secret"),
            (r#""filter":[]"#, "filter"),
            (r#""filter":{"tags":["x"]}"#, "filter"),
            (r#""filter":{"queues":"q"}"#, "filter.queues"),
            (r#""metadata":"x""#, "metadata"),
            (r#""active":"yes""#, "active"),
        ] {
            match read_new(with(member).as_bytes(), false) {
                Ok(_) => assert_eq!(field, "", "{member}"),
                Err(error) => assert_eq!(error.details["field"], field, "{member}: {error}"),
            }
        }
        for (body, field) in [
            (r#"{"events":["*"]}"#, "url"),
            (r#"{"url":"https://example.com"}"#, "events"),
            (r#"{"url":"https://example.com","events":[]}"#, "events"),
            (r#"{"url":"https://example.com","events":["*.job"]}"#, "events"),
            (r#"{"url":"example.com","events":["*"]}"#, "url"),
            (r#"{"url":"ftp://example.com","events":["*"]}"#, "url"),
            (r#"{"url":"https://u:p@example.com","events":["*"]}"#, "url"),
            (r#"{"url":"http://2130706433/","events":["*"]}"#, "url"),
            (r#"{"url":"http://localhost/","events":["*"]}"#, "url"),
        ] {
            let error = read_new(body.as_bytes(), false).unwrap_err();
            assert_eq!((error.status, &error.details["field"]), (400, &json!(field)), "{body}: {error}");
        }
        let private = br#"{"url":"http://127.0.0.1:8080/","events":["*"]}"#;
        assert!(read_new(private, true).is_ok());
    }

    #[test]
    fn a_secret_is_never_repeated_and_not_patched() {
        let error = read_new(with(r#""secret":"hunter2 hunter2""#).as_bytes(), false).unwrap_err();
        assert!(!error.message.contains("hunter2"), "{error}");
        assert!(read_change(br#"{"secret":"x"}"#, false).unwrap_err().message.contains("rotate-secret"));
        assert!(read_change(b"{}", false).is_err());
        assert_eq!(read_change(br#"{"active":false}"#, false).unwrap().active, Some(false));
    }
}
