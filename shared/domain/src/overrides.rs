//! New settings for a job that an operator has tried again after its end.

use crate::retry::RetryPolicy;

/// New settings; an absent one stays as it was.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Overrides {
    /// Its queue.
    pub queue: Option<String>,
    /// −100 to 100; higher goes first.
    pub priority: Option<i64>,
    /// The longest one attempt may be active, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// When and how often it is tried again.
    pub retry: Option<RetryPolicy>,
}
