//! The options of a scheduler.

use std::time::Duration;

/// The options of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchedulerOptions {
    /// Its name among the schedulers of a fleet. It must be different in every run of every process: two schedulers of
    /// the same name would both claim the leadership.
    pub holder: String,
    /// How long it leads without renewing its term, which it does three times as often. When it dies, another one
    /// leads after at most four thirds of this.
    pub term: Duration,
    /// How long engagements and plain jobs are kept after their end; `None` keeps them for ever.
    pub retention: Option<Duration>,
}

impl SchedulerOptions {
    /// The term in a fleet: a dead leader is replaced within 1.6 s.
    pub const TERM: Duration = Duration::from_millis(1_200);
    /// How long ended engagements and jobs are kept.
    pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    /// Returns the usual terms and retention, for a scheduler of this name.
    #[must_use]
    pub fn new(holder: impl Into<String>) -> Self {
        Self { holder: holder.into(), term: Self::TERM, retention: Some(Self::RETENTION) }
    }

    /// For the only scheduler of a store that one process has for itself. Its name is always the same, so that it
    /// leads at once after a crash. Its term lasts an hour, so that it writes next to nothing while it is idle.
    #[must_use]
    pub fn alone() -> Self {
        Self { term: Duration::from_secs(60 * 60), ..Self::new("alone") }
    }
}
