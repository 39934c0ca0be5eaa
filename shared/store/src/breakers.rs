//! Circuit breakers that a whole fleet shares (OSSA §1.5, RS-26): what has failed too often lately is left alone for a while.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::errors::Breaker;

/// What a breaker stands before.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BreakerKey(String);

impl BreakerKey {
    /// A tool as one agent calls it.
    #[must_use]
    pub fn tool(agent: &str, tool: &str) -> Self {
        Self(serde_json::json!(["tool", agent, tool]).to_string())
    }

    /// A model of a provider.
    #[must_use]
    pub fn model(provider: &str, model: &str) -> Self {
        Self(serde_json::json!(["model", provider, model]).to_string())
    }

    /// Reads the name of [`BreakerKey::name`].
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.splitn(3, '/').filter(|part| !part.is_empty());
        match (parts.next()?, parts.next()?, parts.next()?) {
            ("tool", agent, tool) => Some(Self::tool(agent, tool)),
            ("model", provider, model) => Some(Self::model(provider, model)),
            _ => None,
        }
    }

    /// The key for people and paths: `tool/AGENT/TOOL` or `model/PROVIDER/MODEL`.
    #[must_use]
    pub fn name(&self) -> String {
        let parts: Vec<String> = serde_json::from_str(&self.0).unwrap_or_default();
        parts.join("/")
    }

    /// The key as in the database.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn of(name: String) -> Self {
        Self(name)
    }
}

/// A breaker that is not well: something has failed and not succeeded since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// What it stands before.
    pub key: BreakerKey,
    /// Failures in a row.
    pub failures: i64,
    /// Open until then, and half-open after it; `None` is still closed.
    pub open_until: Option<Timestamp>,
}

impl Trouble {
    /// Whether calls are refused at this time.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.open_until.is_some_and(|until| now < until)
    }
}

/// Whether a call may be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// It may; the breaker is closed.
    Free,
    /// It may, as one of the few that find out whether all is well again.
    Probe,
    /// It may not.
    Refused {
        /// When it is worth asking again.
        until: Timestamp,
    },
}

/// Keeps breakers. What is well has no row and costs nothing.
#[async_trait]
pub trait Breakers: Send + Sync + 'static {
    /// Every breaker that is not well.
    async fn troubled(&self) -> Result<Vec<Trouble>, StoreError>;

    /// Forgets what is known against something, so that its breaker is closed; whether anything was.
    async fn reset(&self, key: &BreakerKey) -> Result<bool, StoreError>;

    /// Asks for one call past a breaker that was not well when it was last looked at.
    async fn pass(&self, key: &BreakerKey, rule: &Breaker, now: Timestamp) -> Result<Passage, StoreError>;

    /// Counts a failure; returns until when the breaker is open now, if it is.
    async fn failed(
        &self,
        key: &BreakerKey,
        rule: &Breaker,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError>;

    /// Counts a success of something that was not well. `probe` says that it was let through half-open.
    async fn succeeded(
        &self,
        key: &BreakerKey,
        rule: &Breaker,
        probe: bool,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Gives back the place of a call that was let through half-open and was not made, or tells nothing of how well it is.
    async fn not_made(&self, key: &BreakerKey, now: Timestamp) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::BreakerKey;

    #[test]
    fn names_are_for_people_and_paths() {
        for key in [BreakerKey::tool("desk", "search"), BreakerKey::model("openrouter", "meta/llama")] {
            assert_eq!(BreakerKey::parse(&key.name()), Some(key));
        }
        for wrong in ["", "tool", "tool/desk", "tool//search", "queue/a/b"] {
            assert_eq!(BreakerKey::parse(wrong), None, "{wrong}");
        }
    }
}
