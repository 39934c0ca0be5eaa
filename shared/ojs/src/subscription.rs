//! Webhooks on the wire: requests for subscriptions, and the subscriptions and deliveries in responses (OJS webhooks).

use crate::{Fields, OjsError};
use serde::{Deserialize, Serialize};
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

/// A request for a subscription.
#[derive(Clone, PartialEq, Debug)]
pub struct NewSubscription {
    /// Where deliveries go.
    pub url: String,
    /// The names of events, and patterns such as `job.*`.
    pub events: Vec<String>,
    /// The filter of the events.
    pub filter: WebhookFilter,
    /// The client's own notes.
    pub metadata: RawObject,
    /// The client's own secret.
    pub secret: Option<SigningSecret>,
    /// True if it is active from its creation on.
    pub active: bool,
}

/// Reads the body that makes a subscription. With `allow_private`, addresses outside of the public internet are
/// allowed.
///
/// # Errors
/// 400 with the member that is missing or wrong.
pub fn read_new(body: &[u8], allow_private: bool) -> Result<NewSubscription, OjsError> {
    let fields = Fields::read(body)?;
    let missing = |name: &str| OjsError::invalid_request(name, "is missing");
    Ok(NewSubscription {
        url: url(&fields, allow_private)?.ok_or_else(|| missing("url"))?,
        events: events(&fields)?.ok_or_else(|| missing("events"))?,
        filter: filter(&fields)?.unwrap_or_default(),
        metadata: metadata(&fields)?.unwrap_or_default(),
        secret: secret(&fields)?,
        active: fields.flag("active")?.unwrap_or(true),
    })
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
    let change = WebhookChange {
        url: url(&fields, allow_private)?,
        events: events(&fields)?,
        filter: filter(&fields)?,
        metadata: metadata(&fields)?,
        active: fields.flag("active")?,
        secret: None,
    };
    if change == WebhookChange::default() {
        return Err(OjsError::invalid_request("the body", "names nothing that can be changed"));
    }
    Ok(change)
}

/// Reads `secret`.
///
/// # Errors
/// 400 when it is not 1 to 256 visible ASCII characters. It is not repeated.
fn secret(fields: &Fields) -> Result<Option<SigningSecret>, OjsError> {
    let Some(text) = fields.text("secret")? else { return Ok(None) };
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if !visible || !(1..=SECRET_CHARACTERS).contains(&text.len()) {
        return Err(OjsError::invalid_request("secret", "must be 1 to 256 visible ASCII characters"));
    }
    Ok(Some(SigningSecret(text)))
}

/// A request to replace the secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// The client's own new secret.
    pub secret: Option<SigningSecret>,
    /// How long the old one signs beside it.
    pub grace_ms: i64,
}

impl Rotation {
    /// Reads the body, which may be empty.
    ///
    /// # Errors
    /// 400 with the member that is wrong.
    pub fn read(body: &[u8]) -> Result<Self, OjsError> {
        let fields = Fields::read_if_any(body)?;
        let grace_ms = fields.integer("grace_seconds", 0, 30 * 24 * 60 * 60)?.map(|seconds| seconds * 1_000);
        Ok(Self {
            secret: secret(&fields)?,
            grace_ms: grace_ms.unwrap_or(turnstone_domain::webhook::GRACE_MS),
        })
    }
}

fn url(fields: &Fields, allow_private: bool) -> Result<Option<String>, OjsError> {
    let Some(text) = fields.text("url")? else { return Ok(None) };
    let wrong = |why: &str| OjsError::invalid_request("url", why);
    if text.len() > URL_CHARACTERS || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("must be an absolute URL of at most 2048 visible ASCII characters"));
    }
    address::check_text(&text, allow_private).map_err(|why| wrong(&format!("is refused: {why}")))?;
    Ok(Some(text))
}

fn events(fields: &Fields) -> Result<Option<Vec<String>>, OjsError> {
    let Some(events) = fields.texts("events")? else { return Ok(None) };
    let wrong = |why: String| OjsError::invalid_request("events", why);
    if events.is_empty() || events.len() > ENTRIES {
        return Err(wrong(format!("must name 1 to {ENTRIES} events")));
    }
    match events.iter().position(|event| !is_pattern(event)) {
        Some(at) => {
            Err(wrong(format!("[{at}] must be `*`, the name of an event, or a beginning such as `job.*`")))
        }
        None => Ok(Some(events)),
    }
}

fn filter(fields: &Fields) -> Result<Option<WebhookFilter>, OjsError> {
    let Some(object) = fields.object("filter")? else { return Ok(None) };
    if let Some(unknown) = object.names().find(|name| !matches!(*name, "queues" | "job_types")) {
        let shown: String = unknown.chars().take(100).collect();
        return Err(OjsError::invalid_request(
            "filter",
            format!("knows queues and job_types, not `{shown}`"),
        ));
    }
    let filter = Fields(object);
    let list = |name: &str| {
        let list = filter.texts(name)?.unwrap_or_default();
        if list.len() > ENTRIES {
            let why = format!("must have at most {ENTRIES} entries");
            return Err(OjsError::invalid_request(&format!("filter.{name}"), why));
        }
        Ok(list)
    };
    Ok(Some(WebhookFilter { queues: list("queues")?, job_types: list("job_types")? }))
}

fn metadata(fields: &Fields) -> Result<Option<RawObject>, OjsError> {
    let metadata = fields.object("metadata")?;
    if metadata.as_ref().is_some_and(|object| object.to_raw().as_str().len() > METADATA_BYTES) {
        return Err(OjsError::invalid_request(
            "metadata",
            format!("must have at most {METADATA_BYTES} bytes"),
        ));
    }
    Ok(metadata)
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
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = WebhookSubscriptionReply)]
pub struct SubscriptionReply {
    /// The subscription.
    pub subscription: SubscriptionBody,
    #[serde(flatten, deserialize_with = "crate::unread")]
    #[schema(value_type = SubscriptionBody)]
    flat: Option<SubscriptionBody>,
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
        Self { flat: Some(subscription.clone()), subscription, old_secret_until: None }
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
    pub state: DeliveryState,
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
            state: delivery.state,
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
            (r#""filter":{"queues":"q"}"#, "queues"),
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
