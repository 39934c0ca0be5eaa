//! Time as an argument. Product code reads the time from a [`Clock`]; tests move one by hand.

mod steps;

pub use steps::{ClockStep, ClockSteps, Followed};

use chrono::{DateTime, Datelike as _, SecondsFormat, TimeDelta, Timelike as _, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use utoipa::ToSchema;

/// The nanoseconds of a second; chrono gives a leap second more.
const NANOSECONDS: u32 = 1_000_000_000;

/// A point in time: milliseconds since the Unix epoch, UTC. Stored as an integer, shown as RFC 3339.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time moved forward by `ms` milliseconds (backward if negative).
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time; negative if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// RFC 3339 in UTC with milliseconds and `Z`, as OJS core §3 requires.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        DateTime::<Utc>::from_timestamp_millis(self.0)
            .unwrap_or(DateTime::<Utc>::MIN_UTC)
            .to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    /// Reads RFC 3339; `None` for anything else. A time without a zone is not a point in time. A leap second is the end
    /// of a month in UTC, and the same time as the second after it. The year in UTC has four digits.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let at = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
        let is_leap = at.nanosecond() >= NANOSECONDS;
        let after = at.checked_add_signed(TimeDelta::seconds(1))?;
        let ends_month = (after.day(), after.num_seconds_from_midnight()) == (1, 0);
        let is_valid = (0..=9999).contains(&at.year()) && (!is_leap || ends_month);
        is_valid.then(|| Self(at.timestamp_millis()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

/// The source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns the steps that this clock made lately. A clock that never steps returns none.
    fn steps(&self) -> ClockSteps {
        ClockSteps::default()
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        Timestamp(Utc::now().timestamp_millis())
    }
}

/// The machine's clock, compared with monotonic time at each reading, so that its steps are known.
#[derive(Debug)]
pub struct MachineClock {
    begun: Instant,
    followed: Mutex<Followed>,
}

impl Default for MachineClock {
    fn default() -> Self {
        Self { begun: Instant::now(), followed: Mutex::new(Followed::new(SystemClock.now(), 0)) }
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemClock.now();
        followed.compare(now, i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX));
        now
    }

    fn steps(&self) -> ClockSteps {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).steps()
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    fn read(text: &str) -> Option<String> {
        Timestamp::parse_rfc3339(text).map(Timestamp::to_rfc3339)
    }

    #[test]
    fn every_form_of_rfc_3339_is_read() {
        for (text, at) in [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
            ("2026-01-31t12:00:00z", "2026-01-31T12:00:00.000Z"),
            ("2026-01-31 12:00:00Z", "2026-01-31T12:00:00.000Z"),
            ("2026-01-31T12:00:00.5-00:30", "2026-01-31T12:30:00.500Z"),
            ("2026-01-31T12:00:00+23:59", "2026-01-30T12:01:00.000Z"),
            ("2026-01-31T12:00:00.123456789012Z", "2026-01-31T12:00:00.123Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("2017-01-01T00:59:60+01:00", "2017-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(at), "{text}");
        }
    }

    #[test]
    fn another_time_is_refused() {
        for text in [
            "",
            "2026-01-31T12:00:00",
            "2026-01-31",
            "2026-01-31T12:00Z",
            "2026-02-30T12:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:00:60Z",
            "2026-01-30T23:59:60Z",
            "2016-12-31T23:59:61Z",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00+0100",
            "2026-01-31T12:00:00 01:00",
            "10000-01-01T00:00:00Z",
            "+10000-01-01T00:00:00Z",
            "9999-12-31T23:59:59-01:00",
            "0000-01-01T00:00:00+01:00",
            "2026-1-31T12:00:00Z",
            "tomorrow",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
