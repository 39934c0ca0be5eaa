//! Cron entries: a request to enqueue, and the times at which it becomes a job (OJS cron §3).

#[cfg(test)]
mod clock_changes;
mod fields;
mod schedule;

pub use schedule::Schedule;

use crate::{JobId, Timestamp};

/// The most missed occurrences that [`Missed::All`] makes up for after a pause of the whole fleet, oldest first; the
/// rest is dropped.
pub const MOST_MISSED: usize = 100;

/// An occurrence that is later than this was missed: [`Missed::Skip`] passes over it. In milliseconds.
pub const GRACE_MS: i64 = 15_000;

macro_rules! words {
    ($(#[$about:meta])+ $name:ident { $($(#[$detail:meta])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$about])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub enum $name {
            $($(#[$detail])+ $variant,)+
        }

        impl $name {
            /// The words of all of them.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Returns the word as on the wire and in the database.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads a word; `None` for an unknown one.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words! {
    /// The treatment of an occurrence while an earlier job of the entry has not ended (OJS cron §5).
    Overlap {
        /// No job is made; an event records it.
        #[default]
        Skip = "skip",
        /// The new job runs beside it.
        Allow = "allow",
        /// The earlier one is cancelled.
        CancelPrevious = "cancel_previous",
        /// The new job waits until the earlier ones have ended.
        Enqueue = "enqueue",
    }
}

words! {
    /// The treatment of occurrences that passed while no scheduler ran.
    Missed {
        /// One job is made for all of them.
        #[default]
        Once = "once",
        /// Each is made up for, up to [`MOST_MISSED`].
        All = "all",
        /// They are passed over.
        Skip = "skip",
    }
}

words! {
    /// The outcome of an occurrence.
    Outcome {
        /// A job was made.
        #[default]
        Triggered = "triggered",
        /// An earlier job had not ended.
        Skipped = "skipped",
        /// No job could be made.
        Failed = "failed",
    }
}

/// A cron entry as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CronEntry {
    /// Unique within its tenant.
    pub name: String,
    /// The tenant; `None` belongs to none.
    pub tenant: Option<String>,
    /// As it was sent: five or six fields, or an alias.
    pub expression: String,
    /// An IANA name.
    pub timezone: String,
    /// See [`Overlap`].
    pub overlap: Overlap,
    /// See [`Missed`].
    pub missed: Missed,
    /// True if it makes jobs.
    pub enabled: bool,
    /// The request to enqueue: JSON text.
    pub template: String,
    /// In the operator's words.
    pub description: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// The next occurrence; `None` while it is disabled, or when there is none.
    pub next_run_at: Option<Timestamp>,
    /// When it made its latest job.
    pub last_run_at: Option<Timestamp>,
    /// The latest job it made.
    pub last_job_id: Option<JobId>,
    /// How many jobs it made.
    pub runs: i64,
    /// Why the latest occurrence made no job, if it was for an error.
    pub last_error: Option<String>,
}

impl CronEntry {
    /// Returns the occurrences up to `now` for which a job is due, oldest first, and the next one after `now`.
    #[must_use]
    pub fn due(&self, schedule: &Schedule, now: Timestamp) -> (Vec<Timestamp>, Option<Timestamp>) {
        let next = schedule.next_after(now, self.created_at);
        let Some(first) = self.next_run_at.filter(|at| *at <= now) else { return (Vec::new(), next) };
        let latest = schedule.latest_until(now, self.created_at).filter(|at| *at > first).unwrap_or(first);
        let due = match self.missed {
            Missed::Once => vec![latest],
            Missed::Skip if now.since(latest) > GRACE_MS => Vec::new(),
            Missed::Skip => vec![latest],
            Missed::All => {
                let following = |at: &Timestamp| schedule.next_after(*at, self.created_at);
                let all = std::iter::successors(Some(first), following);
                all.take_while(|at| *at <= now).take(MOST_MISSED).collect()
            }
        };
        (due, next)
    }
}

/// The changes of an entry; `None` leaves a field as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CronChange {
    /// The expression, checked.
    pub expression: Option<String>,
    /// The time zone, checked.
    pub timezone: Option<String>,
    /// See [`Overlap`].
    pub overlap: Option<Overlap>,
    /// See [`Missed`].
    pub missed: Option<Missed>,
    /// True if it makes jobs.
    pub enabled: Option<bool>,
    /// The request to enqueue: JSON text, checked.
    pub template: Option<String>,
    /// In the operator's words.
    pub description: Option<String>,
    /// The next occurrence, when the expression, the time zone or `enabled` is changed.
    pub next_run_at: Option<Option<Timestamp>>,
}

/// One occurrence of an entry, as recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CronRun {
    /// The time of the occurrence; for a manual trigger, the time of the request.
    pub scheduled_at: Timestamp,
    /// When the scheduler processed it.
    pub at: Timestamp,
    /// The outcome.
    pub outcome: Outcome,
    /// The job that was made, or the one that prevented it.
    pub job_id: Option<JobId>,
    /// Why there is no job, if it was for an error.
    pub message: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED: Timestamp = Timestamp(1_767_225_600_000);

    fn entry(missed: Missed) -> (CronEntry, Schedule) {
        let entry = CronEntry {
            name: "n".into(),
            tenant: None,
            expression: "* * * * *".into(),
            timezone: "UTC".into(),
            overlap: Overlap::Skip,
            missed,
            enabled: true,
            template: "{}".into(),
            description: None,
            created_at: CREATED,
            updated_at: CREATED,
            next_run_at: Some(CREATED.plus_ms(60_000)),
            last_run_at: None,
            last_job_id: None,
            runs: 0,
            last_error: None,
        };
        (entry, Schedule::parse("* * * * *", "UTC").unwrap())
    }

    fn due(missed: Missed, after_ms: i64) -> (Vec<i64>, Option<i64>) {
        let (entry, schedule) = entry(missed);
        let (due, next) = entry.due(&schedule, CREATED.plus_ms(after_ms));
        (due.iter().map(|at| at.since(CREATED)).collect(), next.map(|at| at.since(CREATED)))
    }

    #[test]
    fn an_occurrence_in_time_is_due_whatever_the_policy() {
        for missed in [Missed::Once, Missed::All, Missed::Skip] {
            assert_eq!(due(missed, 59_999), (vec![], Some(60_000)));
            assert_eq!(due(missed, 60_000), (vec![60_000], Some(120_000)));
            assert_eq!(due(missed, 61_000), (vec![60_000], Some(120_000)));
        }
    }

    #[test]
    fn missed_occurrences_follow_the_policy() {
        let long = 60_000 * 5 + 30_000;
        assert_eq!(due(Missed::Once, long), (vec![300_000], Some(360_000)));
        assert_eq!(due(Missed::All, long), (vec![60_000, 120_000, 180_000, 240_000, 300_000], Some(360_000)));
        assert_eq!(due(Missed::Skip, long), (vec![], Some(360_000)));
        assert_eq!(due(Missed::Skip, 300_000 + GRACE_MS), (vec![300_000], Some(360_000)));
        let (all, next) = due(Missed::All, 60_000 * 100_000);
        assert_eq!((all.len(), all[99], next), (MOST_MISSED, 6_000_000, Some(6_000_060_000)));
    }

    #[test]
    fn words_round_trip() {
        for word in Overlap::WORDS {
            assert_eq!(Overlap::parse(word).map(Overlap::as_str), Some(*word));
        }
        assert_eq!((Missed::parse("never"), Outcome::parse("")), (None, None));
    }
}
