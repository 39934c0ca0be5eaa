//! Providers of models to which no connection is made, and the attempts that wait for them.

use super::JobError;
use crate::retry::OUTAGE_ATTEMPTS;
use crate::{Job, JobState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The member of an error's details that [`JobError::of_unreached`] sets.
const UNREACHED: &str = "unreached";

/// A provider to which no connection was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unreached {
    /// The provider's name.
    pub provider: String,
    /// The problem: `connection refused`, `unknown host`, or the words of the connection.
    pub problem: String,
    /// Its scheme, host and port, without a path.
    pub address: String,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "provider {}: {} at {}", self.provider, self.problem, self.address)
    }
}

/// The wait of a job for its next attempt after its provider could not be reached.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProviderWait {
    /// `provider`.
    pub kind: String,
    /// The provider.
    #[serde(flatten)]
    pub unreached: Unreached,
    /// The attempts that have failed, as the retry policy counts them.
    pub attempt: usize,
    /// The most attempts.
    pub max_attempts: u32,
    /// The time of the next attempt, in RFC 3339.
    pub next_retry_at: String,
}

impl ProviderWait {
    /// Returns the wait of a job, if its latest call of a model did not reach the provider. An attempt that was held back made
    /// no call.
    #[must_use]
    pub fn of(job: &Job) -> Option<Self> {
        let made = job.errors.iter().map(|failed| &failed.error).filter(|error| error.costs_a_retry());
        let latest = made.clone().next_back().filter(|_| job.state == JobState::Retryable)?;
        let unreached = latest.unreached()?;
        let of_outage = latest.is_of_an_outage();
        let attempt = made.filter(|error| error.is_of_an_outage() == of_outage).count();
        let max_attempts = if of_outage { OUTAGE_ATTEMPTS } else { job.retry.max_attempts };
        let next_retry_at = job.run_at.to_rfc3339();
        Some(Self { kind: "provider".to_owned(), unreached, attempt, max_attempts, next_retry_at })
    }

    /// Returns the wait in a sentence without a full stop; `at` is the time of the next attempt as it is displayed.
    #[must_use]
    pub fn sentence(&self, at: &str) -> String {
        format!("{} (attempt {} of {}, again at {at})", self.unreached, self.attempt, self.max_attempts)
    }
}

impl JobError {
    /// Adds the provider to which no connection was made.
    #[must_use]
    pub fn of_unreached(self, unreached: &Unreached) -> Self {
        match serde_json::to_value(unreached) {
            Ok(value) => self.with(UNREACHED, value),
            Err(_) => self,
        }
    }

    /// Returns the provider to which no connection was made, if that is the error.
    #[must_use]
    pub fn unreached(&self) -> Option<Unreached> {
        let named = self.details.get(UNREACHED).filter(|_| self.reported.is_none());
        named.cloned().and_then(|value: Value| serde_json::from_value(value).ok())
    }
}
