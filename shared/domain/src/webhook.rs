//! Webhooks: subscriptions to events over HTTP, and the outcome of their deliveries.

use crate::feed::{FeedEvent, among};
use crate::{RawObject, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The time for which the previous secret still signs beside the current one, in milliseconds, unless the request sets
/// another: a day.
pub const GRACE_MS: i64 = 24 * 60 * 60 * 1_000;

/// A secret that only its owner and the receiver know. It is shown once, in the response that makes it, and never
/// logged.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(pub String);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(***)")
    }
}

/// The filter of an event's subject; an empty list matches all.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WebhookFilter {
    /// Jobs in these queues, and workflows with such jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// Jobs of these types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub job_types: Vec<String>,
}

/// A subscription.
#[derive(Clone, PartialEq, Debug)]
pub struct Webhook {
    /// `sub_` and a UUID.
    pub id: String,
    /// The tenant whose jobs' events it receives; `None` receives those of all tenants.
    pub tenant: Option<String>,
    /// Where deliveries go.
    pub url: String,
    /// Names and patterns (`*`, `job.*`).
    pub events: Vec<String>,
    /// The filter of the events.
    pub filter: WebhookFilter,
    /// The client's own notes.
    pub metadata: RawObject,
    /// Signs every delivery.
    pub secret: SigningSecret,
    /// Signs beside it until then.
    pub old_secret: Option<(SigningSecret, Timestamp)>,
    /// True if it receives events.
    pub active: bool,
    /// The number of the commit after which events are delivered.
    pub since: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

impl Webhook {
    /// Returns true if it receives this event, provided that its patterns match the name.
    #[must_use]
    pub fn is_concerned(&self, event: &FeedEvent) -> bool {
        self.active
            && !event.is_imported()
            && event.cursor.number > self.since
            && event.concerns(&self.filter.queues)
            && among(&self.filter.job_types, event.job_type())
            && self.tenant.as_ref().is_none_or(|tenant| event.tenant.as_ref() == Some(tenant))
    }

    /// Returns the secrets that sign at this time, the current one first.
    pub fn secrets(&self, now: Timestamp) -> impl Iterator<Item = &SigningSecret> {
        let old = self.old_secret.as_ref().filter(|(_, until)| *until > now).map(|(secret, _)| secret);
        std::iter::once(&self.secret).chain(old)
    }
}

/// The changes of a webhook; `None` leaves a field as it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WebhookChange {
    /// Where deliveries go from now on.
    pub url: Option<String>,
    /// The events that it receives.
    pub events: Option<Vec<String>>,
    /// The filter of the events.
    pub filter: Option<WebhookFilter>,
    /// The client's own notes.
    pub metadata: Option<RawObject>,
    /// True if it receives events. Events that occur while it is not active are never delivered.
    pub active: Option<bool>,
    /// A new secret, and until when the one before it signs as well.
    pub secret: Option<(SigningSecret, Timestamp)>,
}

/// The state of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is to be posted, for the first time or again.
    Pending,
    /// The receiver took it.
    Delivered,
    /// It was given up.
    Failed,
}

impl DeliveryState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// Returns the word on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// One event on its way to one webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// `msg_` and a UUID; the same in every attempt, so that a receiver can detect a repetition.
    pub id: String,
    /// To which webhook.
    pub webhook_id: String,
    /// Of which event.
    pub event_id: String,
    /// The event's name.
    pub event: String,
    /// The body of the request.
    pub body: String,
    /// The state.
    pub state: DeliveryState,
    /// How often it was posted, or was about to be.
    pub attempts: i64,
    /// When it is posted next, while it is pending.
    pub next_at: Option<Timestamp>,
    /// The last HTTP status of the receiver.
    pub status: Option<i64>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was delivered or given up.
    pub ended_at: Option<Timestamp>,
}

/// A delivery to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewDelivery {
    /// `msg_` and a UUID.
    pub id: String,
    /// To which webhook.
    pub webhook_id: String,
    /// Of which event.
    pub event_id: String,
    /// The event's name.
    pub event: String,
    /// The body of the request.
    pub body: String,
    /// When it was made; it is posted at once.
    pub created_at: Timestamp,
}

/// The outcome of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempted {
    /// The HTTP status of the receiver, if it answered.
    pub status: Option<i64>,
    /// Why it failed; `None` when the receiver took it.
    pub error: Option<String>,
    /// The next step.
    pub next: AfterAttempt,
}

/// The next step after an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterAttempt {
    /// Nothing: the receiver took it.
    Delivered,
    /// Another attempt at this time.
    Again(Timestamp),
    /// Nothing: it is given up.
    GiveUp,
    /// Nothing more for this webhook: the receiver returned that it is gone for good (410).
    Gone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show() {
        assert!(!format!("{:?}", SigningSecret("hunter2".to_owned())).contains("hunter2"));
    }
}
