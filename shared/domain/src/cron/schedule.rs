//! The times at which a cron entry occurs (OJS cron §3 and §4).

use super::fields::Fields;
use crate::Timestamp;
use crate::duration::Span;
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// Longer expressions are refused.
const MOST_CHARACTERS: usize = 256;

/// The shortest and the longest `@every`, in milliseconds.
const SHORTEST_MS: i64 = 1_000;
const LONGEST_MS: i64 = 366 * 24 * 3_600_000;

/// The names of the six fields.
const FIELDS: [&str; 6] = ["second", "minute", "hour", "day of the month", "month", "day of the week"];

/// A read expression in its time zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    rule: Rule,
    zone: Tz,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Times of the wall clock.
    Clock(Box<Fields>),
    /// A period from the making of the entry on, in milliseconds.
    Every(i64),
}

impl Schedule {
    /// Reads an expression of five fields, six with seconds in front, or an alias such as `@daily` and `@every 5m`.
    /// `timezone` is the IANA name of a time zone.
    ///
    /// # Errors
    /// The field, `expression` or `timezone`, and words that complete a sentence that begins with it.
    pub fn parse(expression: &str, timezone: &str) -> Result<Self, (&'static str, String)> {
        let zone = zone(timezone).map_err(|why| ("timezone", why))?;
        let rule = rule(expression).map_err(|why| ("expression", why))?;
        let schedule = Self { rule, zone };
        if matches!(schedule.rule, Rule::Clock(_))
            && schedule.next_after(Timestamp(0), Timestamp(0)).is_none()
        {
            let shown = shown(expression);
            return Err(("expression", format!("`{shown}` names a time that never comes")));
        }
        Ok(schedule)
    }

    /// Returns the first occurrence after `at`; `None` when there is none. `anchor` is where a period begins.
    #[must_use]
    pub fn next_after(&self, at: Timestamp, anchor: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(ms) => {
                let passed = at.since(anchor).div_euclid(*ms);
                Some(anchor.plus_ms(passed.checked_add(1)?.checked_mul(*ms)?))
            }
            Rule::Clock(fields) => fields.next_after(at, self.zone),
        }
    }

    /// Returns the latest occurrence that is not after `at`; `None` when there is none. `anchor` is where a period
    /// begins.
    #[must_use]
    pub fn latest_until(&self, at: Timestamp, anchor: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(ms) => {
                let passed = at.since(anchor).div_euclid(*ms);
                (passed > 0).then(|| anchor.plus_ms(passed.saturating_mul(*ms)))
            }
            Rule::Clock(fields) => fields.latest_until(at, self.zone),
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

fn zone(name: &str) -> Result<Tz, String> {
    name.parse().map_err(|_| {
        let shown = shown(name);
        format!("`{shown}` is not the IANA name of a time zone, such as Europe/Berlin or UTC; offsets are not names")
    })
}

fn rule(expression: &str) -> Result<Rule, String> {
    let text = expression.trim();
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.chars().count() > MOST_CHARACTERS {
        return Err(format!("must have at most {MOST_CHARACTERS} characters"));
    }
    if let Some(alias) = text.strip_prefix('@') {
        return aliased(alias);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if !matches!(fields.len(), 5 | 6) {
        return Err(format!(
            "`{}` has {} fields; five are understood (minute, hour, day of the month, month, day of the week), or \
             six with seconds in front",
            shown(text),
            fields.len()
        ));
    }
    match read(text) {
        Ok(cron) => Ok(Rule::Clock(Box::new(Fields::new(&fields, cron)))),
        Err(why) => Err(wrong_field(&fields).unwrap_or(why)),
    }
}

fn read(text: &str) -> Result<Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    parser.parse(text).map_err(|error| format!("`{}` cannot be read: {error}", shown(text)))
}

/// Returns the first field that cannot be read alone, and why.
fn wrong_field(fields: &[&str]) -> Option<String> {
    let names = &FIELDS[FIELDS.len() - fields.len()..];
    fields.iter().zip(names).enumerate().find_map(|(at, (field, name))| {
        let mut alone = vec!["*"; fields.len()];
        alone[at] = field;
        let why = read(&alone.join(" ")).err()?;
        let why = why.rsplit_once(": ").map_or(why.as_str(), |(_, last)| last).trim_end_matches('.');
        Some(format!("has `{}` for the {name}, which cannot be read: {why}", shown(field)))
    })
}

fn aliased(alias: &str) -> Result<Rule, String> {
    let lower = alias.to_ascii_lowercase();
    let fields = match lower.as_str() {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        other => match other.strip_prefix("every ") {
            Some(period) => {
                // ISO 8601 has capital letters.
                let given = alias["every ".len()..].trim();
                let period = if given.starts_with('P') { given } else { period.trim() };
                return period_ms(period).map(Rule::Every);
            }
            None => {
                return Err(format!(
                    "`@{}` is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly and \
                     @every with a period such as 5m",
                    shown(other)
                ));
            }
        },
    };
    rule(fields)
}

/// Reads a period such as `5m`, `90s`, `1h30m`, `2d` or `PT1.5H` into milliseconds.
fn period_ms(text: &str) -> Result<i64, String> {
    let wrong = || {
        let shown = shown(text);
        format!(
            "`@every {shown}` must have a period of whole days, hours, minutes and seconds, such as 1h30m or 90s"
        )
    };
    let total = Span::parse_short(text).map_or(0, Span::ms);
    if total == 0 || total % 1_000 != 0 {
        return Err(wrong());
    }
    if (SHORTEST_MS..=LONGEST_MS).contains(&total) {
        Ok(total)
    } else {
        Err("must have a period from one second to 366 days".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    /// Returns the occurrences after a time, in UTC without milliseconds.
    fn occurrences(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(expression, zone).unwrap();
        let mut now = at(after);
        (0..count)
            .map(|_| {
                now = schedule.next_after(now, Timestamp(0)).unwrap();
                now.to_rfc3339().replace(":00.000Z", "Z")
            })
            .collect()
    }

    #[test]
    fn fields_names_lists_ranges_and_steps() {
        for (expression, after, expected) in [
            ("*/15 9-17 * * MON-FRI", "2026-01-02T17:45:00Z", "2026-01-05T09:00Z"),
            ("0 0 1 JAN,JUL *", "2026-01-01T00:00:00Z", "2026-07-01T00:00Z"),
            ("5 4 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T04:05Z"),
            ("0 12 L * *", "2026-02-01T00:00:00Z", "2026-02-28T12:00Z"),
            ("0 12 15W * *", "2026-02-01T00:00:00Z", "2026-02-16T12:00Z"),
            ("0 12 * * FRI#2", "2026-01-01T00:00:00Z", "2026-01-09T12:00Z"),
            ("30 0 0 1 1 *", "2026-01-01T00:00:00Z", "2026-01-01T00:00:30.000Z"),
            ("@hourly", "2026-01-01T00:30:00Z", "2026-01-01T01:00Z"),
            ("@MIDNIGHT", "2026-01-01T00:30:00Z", "2026-01-02T00:00Z"),
            ("@weekly", "2026-01-01T00:30:00Z", "2026-01-04T00:00Z"),
        ] {
            assert_eq!(occurrences(expression, "UTC", after, 1), [expected], "{expression}");
        }
    }

    #[test]
    fn times_are_those_of_the_zone() {
        assert_eq!(
            occurrences("0 9 * * *", "Asia/Tokyo", "2026-01-01T00:00:00Z", 2),
            ["2026-01-02T00:00Z", "2026-01-03T00:00Z"]
        );
    }

    #[test]
    fn the_latest_occurrence_is_the_one_before_the_next() {
        for (expression, zone) in [
            ("*/7 * * * *", "UTC"),
            ("30 2 * * *", "Europe/Berlin"),
            ("@every 90s", "UTC"),
            ("0 0 29 2 *", "UTC"),
        ] {
            let schedule = Schedule::parse(expression, zone).unwrap();
            let (anchor, now) = (at("2020-01-01T00:00:00Z"), at("2026-10-25T01:10:00.500Z"));
            let latest = schedule.latest_until(now, anchor).unwrap();
            assert!(latest <= now);
            assert_eq!(
                schedule.next_after(latest.plus_ms(-1), anchor),
                Some(latest),
                "{expression}: the latest one is an occurrence"
            );
            assert!(schedule.next_after(latest, anchor).unwrap() > now, "{expression}");
            assert_eq!(schedule.latest_until(latest, anchor), Some(latest), "{expression}");
        }
    }

    #[test]
    fn periods_count_from_the_anchor_and_do_not_drift() {
        let schedule = Schedule::parse("@every 1m30s", "UTC").unwrap();
        let anchor = Timestamp(1_000_123);
        assert_eq!(schedule.next_after(anchor, anchor), Some(anchor.plus_ms(90_000)));
        assert_eq!(schedule.next_after(anchor.plus_ms(1_000_000), anchor), Some(anchor.plus_ms(1_080_000)));
        assert_eq!(schedule.latest_until(anchor.plus_ms(89_999), anchor), None);
    }

    #[test]
    fn a_period_is_iso_8601_or_short() {
        for (expression, ms) in [
            ("@every PT1.5H", 5_400_000),
            ("@every PT0.5M", 30_000),
            ("@every P1DT12H", 129_600_000),
            ("@every 1.5h", 5_400_000),
            ("@EVERY 5M", 300_000),
        ] {
            let schedule = Schedule::parse(expression, "UTC").unwrap();
            assert_eq!(schedule.next_after(Timestamp(0), Timestamp(0)), Some(Timestamp(ms)), "{expression}");
        }
    }

    #[test]
    fn wrong_expressions_say_what_is_wrong() {
        for (expression, words) in [
            ("", "empty"),
            ("not a valid cron", "4 fields"),
            ("not a valid cron at-all", "for the minute"),
            ("0 0 0 1 1 * 2027", "7 fields"),
            ("* * * *", "4 fields"),
            ("99 25 32 13 8", "`99` for the minute"),
            ("0 25 * * *", "`25` for the hour"),
            ("0 0 32 * *", "day of the month"),
            ("0 0 1 13 *", "month"),
            ("0 0 * * 8", "day of the week"),
            ("60 * * * * *", "for the second"),
            ("*/0 * * * *", "for the minute"),
            ("0 0 30 2 *", "never comes"),
            ("@fortnightly", "not one of"),
            ("@every", "not one of"),
            ("@every 5", "such as 1h30m"),
            ("@every 5x", "such as 1h30m"),
            ("@every 0s", "such as 1h30m"),
            ("@every 99999999999999999999h", "such as 1h30m"),
            ("@every 9999d", "366 days"),
            ("@every pt1h", "such as 1h30m"),
            ("@every P1D12H", "such as 1h30m"),
            ("@every PT0.5S", "such as 1h30m"),
            ("ß ß ß ß ß", "for the minute"),
        ] {
            let (field, why) = Schedule::parse(expression, "UTC").unwrap_err();
            assert!(field == "expression" && why.contains(words), "{expression}: {why}");
        }
        assert!(Schedule::parse(&"1,".repeat(200), "UTC").unwrap_err().1.contains("256"));
    }

    #[test]
    fn only_names_of_zones_are_zones() {
        for wrong in ["", "+02:00", "UTC+2", "Europe/Atlantis", "Local", "europe/berlin?"] {
            let (field, why) = Schedule::parse("@daily", wrong).unwrap_err();
            assert!(field == "timezone" && why.contains("IANA"), "{wrong}: {why}");
        }
    }
}
