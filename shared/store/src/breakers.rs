//! Circuit breakers that a whole fleet shares (OSSA §1.5, RS-26). The rules are in [`turnstone_domain::breaker`].

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::agent::errors::Breaker;
pub use turnstone_domain::breaker::Passage;
use turnstone_domain::{Lease, RawJson, Timestamp};

/// The detail of an error that names the breaker which refused a model call. A job that fails with it waits for that breaker.
pub const DETAIL: &str = "breaker";

/// The service that a breaker protects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BreakerKey(String);

impl BreakerKey {
    /// A tool as one agent calls it.
    #[must_use]
    pub fn tool(agent: &str, tool: &str) -> Self {
        Self(RawJson::list(&["tool", agent, tool]).into_text())
    }

    /// A model of a provider.
    #[must_use]
    pub fn model(provider: &str, model: &str) -> Self {
        Self(RawJson::list(&["model", provider, model]).into_text())
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

/// A breaker with failures that count, or one that is not closed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// The service.
    pub key: BreakerKey,
    /// The failures that count.
    pub failures: i64,
    /// Open until then, and half-open after it; `None` is still closed.
    pub open_until: Option<Timestamp>,
}

impl Trouble {
    /// Returns true when calls are refused at this time.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.open_until.is_some_and(|until| now < until)
    }
}

/// A call at a breaker, or its outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BreakerStep {
    /// A job asks for permission to make one call.
    Pass {
        /// The lease under which it makes the call.
        lease: Lease,
    },
    /// A call failed.
    Failed {
        /// The job's id.
        job: String,
        /// Successes before it that were not counted yet.
        successes: u32,
    },
    /// Calls succeeded that were not trial calls.
    Succeeded {
        /// How many.
        successes: u32,
    },
    /// A trial call succeeded.
    TrialSucceeded {
        /// The job's id.
        job: String,
    },
    /// A trial call was not made, or says nothing about the service.
    TrialNotMade {
        /// The job's id.
        job: String,
    },
}

/// The outcome of a [`BreakerStep`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stepped {
    /// The answer to [`BreakerStep::Pass`]; [`Passage::Free`] for every other step.
    pub passage: Passage,
    /// The time until which the breaker is open, when this step opened it.
    pub opened_until: Option<Timestamp>,
}

/// Keeps breakers. A closed one without failures has no row and costs nothing.
#[async_trait]
pub trait Breakers: Send + Sync + 'static {
    /// Returns every breaker with failures that count, and every one that is not closed.
    async fn troubled(&self) -> Result<Vec<Trouble>, StoreError>;

    /// Closes a breaker and releases the jobs that wait for it; returns whether there was anything to close.
    async fn reset(&self, key: &BreakerKey, now: Timestamp) -> Result<bool, StoreError>;

    /// Applies one step. A trial call that succeeds releases waiting jobs in the same transaction.
    async fn step(
        &self,
        key: &BreakerKey,
        rule: &Breaker,
        step: BreakerStep,
        now: Timestamp,
    ) -> Result<Stepped, StoreError>;
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
