//! The occurrences of an expression's fields in a time zone, through every change of its clock.
//!
//! croner finds the times that the fields match. The rule for changes of the clock is this module's:
//!
//! - An entry **repeats** when its field of minutes or seconds has `*` or a step, or when it occurs in three or more hours in a
//!   row. It occurs whenever the clock shows a time of it, so repeated times occur again. A skipped time occurs when the clock
//!   without the change would show it. Most of these are occurrences anyway: an hour after 01:30 it is 03:30.
//! - Any other entry **names** its hours. A repeated time occurs the first time only. A skipped time occurs at the first
//!   time after the gap; several are one occurrence.

use crate::Timestamp;
use chrono::{DateTime, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use croner::Cron;

/// The most times of the wall clock that are passed over in search of one that is new. A change of the clock repeats at
/// most a day, which has fewer seconds.
const MOST_PASSED_OVER: usize = 100_000;

/// No clock was ever changed by more, in seconds.
const LONGEST_CHANGE: i64 = 24 * 3_600;

/// The fields of an expression.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    cron: Cron,
    pace: Pace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pace {
    /// At hours that it names, such as `30 2 * * *`.
    Names,
    /// Within the hour, such as `*/15 2 * * *`, or in several hours in a row, such as `0 0-6 * * *`.
    Repeats,
    /// In each hour, such as `30 * * * *`.
    RepeatsEveryHour,
}

/// Returns true if these hours are three in a row somewhere. In an entry of every day, 0 follows 23.
fn has_hours_in_a_row(hours: &[u16], is_daily: bool) -> bool {
    let contains = |hour: u16| hours.contains(&if is_daily { hour % 24 } else { hour });
    hours.iter().any(|hour| contains(hour + 1) && contains(hour + 2))
}

/// A change of the clock. Times and offsets are in seconds.
struct Change {
    at: i64,
    before: i64,
    after: i64,
}

impl Fields {
    /// Takes the five or six fields that were read into `cron`.
    pub(super) fn new(fields: &[&str], cron: Cron) -> Self {
        let pattern = &cron.pattern;
        let (hours, minutes, seconds) = (&pattern.hours, &pattern.minutes, &pattern.seconds);
        let below_hours = &fields[..fields.len() - 4];
        let pace = if hours.values().len() == 24 {
            Pace::RepeatsEveryHour
        } else if below_hours.iter().any(|field| field.contains(['*', '/']))
            || [minutes, seconds].iter().any(|field| field.values().len() == 60)
            || has_hours_in_a_row(
                &hours.values(),
                fields[fields.len() - 3..].iter().all(|field| *field == "*"),
            )
        {
            Pace::Repeats
        } else {
            Pace::Names
        };
        Self { cron, pace }
    }

    /// Returns the first occurrence after `at`.
    pub(super) fn next_after(&self, at: Timestamp, zone: Tz) -> Option<Timestamp> {
        if self.pace != Pace::Names {
            let seconds = at.0.div_euclid(1000);
            return self.repeated_after(seconds, zone).map(|found| Timestamp(found * 1000));
        }
        let mut clock = zoned(at, zone)?.naive_local();
        for _ in 0..MOST_PASSED_OVER {
            clock = self.cron.find_next_occurrence(&clock, false).ok()?;
            if let Some(found) = first_valid(clock, zone).filter(|found| *found > at) {
                return Some(found);
            }
        }
        None
    }

    /// Returns the latest occurrence that is not after `at`.
    pub(super) fn latest_until(&self, at: Timestamp, zone: Tz) -> Option<Timestamp> {
        let shown = zoned(at, zone)?;
        if self.pace != Pace::Names {
            let mut latest = self.cron.find_previous_occurrence(&shown, true).ok()?.timestamp();
            // Occurrences at times that were skipped may follow.
            while let Some(next) = self.repeated_after(latest, zone).filter(|next| *next <= shown.timestamp())
            {
                latest = next;
            }
            return Some(Timestamp(latest * 1000));
        }
        let mut clock = shown.naive_local();
        if let Some(change) = change(shown.timestamp() - LONGEST_CHANGE, shown.timestamp(), zone) {
            // The clock may have shown later times before.
            clock = clock.max(naive(change.at - 1 + change.before)?);
        }
        for passed_over in 0..MOST_PASSED_OVER {
            clock = self.cron.find_previous_occurrence(&clock, passed_over == 0).ok()?;
            if let Some(found) = first_valid(clock, zone).filter(|found| *found <= at) {
                return Some(found);
            }
        }
        None
    }

    /// Returns the first occurrence after `at` of an entry that repeats, in seconds.
    fn repeated_after(&self, at: i64, zone: Tz) -> Option<i64> {
        let shown = zoned(Timestamp(at * 1000), zone)?;
        let next = self.cron.find_next_occurrence(&shown, false).ok().map(|next| next.timestamp());
        let horizon = next.map_or(at + LONGEST_CHANGE, |next| next.min(at + LONGEST_CHANGE));
        let change = change(at - LONGEST_CHANGE, horizon, zone);
        let skipped = self.skipped_after(&shown, change.as_ref(), zone);
        let between = change.and_then(|change| self.between_after(at, &change));
        [next, skipped, between].into_iter().flatten().min()
    }

    /// Returns the first skipped time that the clock without the change shows after `shown`.
    fn skipped_after(&self, shown: &DateTime<Tz>, change: Option<&Change>, zone: Tz) -> Option<i64> {
        let at = shown.timestamp();
        let within =
            change.filter(|change| (change.at..change.at + change.after - change.before).contains(&at));
        let clock = within.map_or(Some(shown.naive_local()), |change| naive(at + change.before))?;
        let clock = self.cron.find_next_occurrence(&clock, false).ok()?;
        let (_, before) = GapInfo::new(&clock, &zone)?.begin?;
        Some(clock.and_utc().timestamp() - i64::from(before.fix().local_minus_utc()))
    }

    /// Returns the first time after `at` that keeps the pace of an entry of every hour, when the clock is set back by
    /// less than an hour. Half an hour more would pass between 01:15 and 02:15. The minutes are then also those of the
    /// clock without the change, for as long as times are repeated.
    fn between_after(&self, at: i64, change: &Change) -> Option<i64> {
        let back = change.before - change.after;
        if self.pace != Pace::RepeatsEveryHour || back <= 0 || back % 3_600 == 0 {
            return None;
        }
        let mut clock = naive(at.max(change.at - 1) + change.before)?;
        loop {
            clock = self.cron.find_next_occurrence(&clock, false).ok()?;
            let found = clock.and_utc().timestamp() - change.before;
            if found >= change.at + back {
                return None;
            }
            // The day is that of the clock.
            let day = naive(found + change.after)?.date();
            if self.cron.is_time_matching(&day.and_time(clock.time())).unwrap_or(false) {
                return Some(found);
            }
        }
    }
}

/// Returns the first time at which the clock shows this or, when it skips this, a later time.
fn first_valid(clock: NaiveDateTime, zone: Tz) -> Option<Timestamp> {
    let shown = zone.from_local_datetime(&clock).earliest();
    let found = shown.or_else(|| GapInfo::new(&clock, &zone)?.end)?;
    Some(Timestamp(found.timestamp_millis()))
}

/// Returns the time in the zone, to the second.
fn zoned(at: Timestamp, zone: Tz) -> Option<DateTime<Tz>> {
    let instant = DateTime::<Utc>::from_timestamp(at.0.div_euclid(1000), 0)?;
    Some(instant.with_timezone(&zone))
}

fn naive(seconds: i64) -> Option<NaiveDateTime> {
    DateTime::<Utc>::from_timestamp(seconds, 0).map(|at| at.naive_utc())
}

/// Returns a change of the clock after `from` and not after `until`, which are at most two days apart.
fn change(from: i64, until: i64, zone: Tz) -> Option<Change> {
    let offset = |at| {
        let offset = zone.offset_from_utc_datetime(&naive(at)?);
        Some(i64::from(offset.fix().local_minus_utc()))
    };
    let before = offset(from)?;
    if offset(until)? == before {
        return None;
    }
    let (mut earlier, mut at) = (from, until);
    while at - earlier > 1 {
        let between = earlier + (at - earlier) / 2;
        if offset(between)? == before {
            earlier = between;
        } else {
            at = between;
        }
    }
    Some(Change { at, before, after: offset(at)? })
}
