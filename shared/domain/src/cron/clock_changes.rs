//! Tests of the occurrences at changes of the clock: examples, and every change of every zone from 2010 to 2030, minute
//! by minute against the rule.

use super::Schedule;
use crate::Timestamp;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike, Utc, Weekday};
use chrono_tz::{TZ_VARIANTS, Tz};

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

/// Returns the local times of the occurrences in a span of UTC, as `30 02:00`.
fn occurrences(expression: &str, zone: &str, from: &str, until: &str) -> Vec<String> {
    let schedule = Schedule::parse(expression, zone).unwrap();
    let zone: Tz = zone.parse().unwrap();
    let found = run(&schedule, at(from), at(until), expression);
    let shown = |at: &Timestamp| DateTime::<Utc>::from_timestamp_millis(at.0).unwrap().with_timezone(&zone);
    found.iter().map(|at| shown(at).format("%d %H:%M").to_string()).collect()
}

/// Returns the occurrences after `from` and before `until`, and looks for each of them backwards, too.
fn run(schedule: &Schedule, from: Timestamp, until: Timestamp, about: &str) -> Vec<Timestamp> {
    let mut found = Vec::new();
    let mut next = schedule.next_after(from, from).unwrap();
    while next < until {
        found.push(next);
        let following = schedule.next_after(next, from).unwrap();
        assert!(following > next, "{about} at {next:?}");
        for probe in [next, next.plus_ms(1), following.plus_ms(-1)] {
            assert_eq!(schedule.latest_until(probe, from), Some(next), "{about}: the latest until {probe:?}");
        }
        assert_eq!(schedule.next_after(next.plus_ms(-1), from), Some(next), "{about}");
        next = following;
    }
    found
}

/// Berlin goes from 02:00 to 03:00 on 29 March 2026, and from 03:00 back to 02:00 on 25 October.
#[test]
fn entries_that_name_their_hours_occur_once_on_each_day() {
    let [spring, autumn] = [
        |entry| occurrences(entry, "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"),
        |entry| occurrences(entry, "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"),
    ];
    assert_eq!(spring("30 2 * * *"), ["29 03:00", "30 02:30"]);
    assert_eq!(spring("0 2 * * *"), ["29 03:00", "30 02:00"]);
    assert_eq!(spring("0,30 2 * * *"), ["29 03:00", "30 02:00", "30 02:30"], "several are one");
    assert_eq!(spring("30 2,3 * * *"), ["29 03:00", "29 03:30", "30 02:30", "30 03:30"]);
    assert_eq!(spring("0 */2 * * *")[6..8], ["29 03:00", "29 04:00"]);
    assert_eq!(spring("10 30 2 * * *"), ["29 03:00", "30 02:30"]);
    assert_eq!(autumn("30 2 * * *"), ["25 02:30", "26 02:30"]);
    assert_eq!(autumn("0 3 * * *"), ["25 03:00", "26 03:00"]);
    assert_eq!(autumn("0,30 2 * * *"), ["25 02:00", "25 02:30", "26 02:00", "26 02:30"]);
    let first = Schedule::parse("30 2 * * *", "Europe/Berlin")
        .unwrap()
        .next_after(at("2026-10-24T12:00:00Z"), Timestamp(0));
    assert_eq!(first, Some(at("2026-10-25T00:30:00Z")), "the first 02:30 of the two");
    let weekly = occurrences("30 2 * * SUN", "Europe/Berlin", "2026-03-20T00:00:00Z", "2026-04-10T00:00:00Z");
    assert_eq!(weekly, ["22 02:30", "29 03:00", "05 02:30"]);
}

#[test]
fn entries_that_repeat_occur_at_their_pace_through_a_change() {
    let [spring, autumn] = [
        |entry| occurrences(entry, "Europe/Berlin", "2026-03-28T23:59:00Z", "2026-03-29T02:01:00Z"),
        |entry| occurrences(entry, "Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T02:15:00Z"),
    ];
    assert_eq!(spring("0 * * * *"), ["29 01:00", "29 03:00", "29 04:00"]);
    assert_eq!(spring("30 * * * *"), ["29 01:30", "29 03:30"]);
    assert_eq!(spring("30 0-23 * * *"), ["29 01:30", "29 03:30"]);
    assert_eq!(spring("*/30 1-3 * * *"), ["29 01:00", "29 01:30", "29 03:00", "29 03:30"]);
    assert_eq!(spring("*/30 2 * * *"), ["29 03:00", "29 03:30"]);
    assert_eq!(spring("0,30 0-6 * * *"), ["29 01:00", "29 01:30", "29 03:00", "29 03:30", "29 04:00"]);
    assert_eq!(spring("30 2,3,4 * * *"), ["29 03:30"]);
    assert_eq!(autumn("0 * * * *"), ["25 02:00", "25 02:00", "25 03:00"]);
    assert_eq!(autumn("0 0-6 * * *"), ["25 02:00", "25 02:00", "25 03:00"]);
    assert_eq!(
        autumn("0,45 1,2,3 * * *"),
        ["25 01:45", "25 02:00", "25 02:45", "25 02:00", "25 02:45", "25 03:00"]
    );
    assert_eq!(autumn("0 23,0-2 * * *"), ["25 02:00", "25 02:00"]);
    // Of Saturday's hours, midnight is not the one after 23:00.
    let beirut = |entry| occurrences(entry, "Asia/Beirut", "2026-10-24T18:00:00Z", "2026-10-24T23:00:00Z");
    assert_eq!(beirut("0 0,22,23 * * *"), ["24 22:00", "24 23:00", "24 23:00", "25 00:00"]);
    assert_eq!(beirut("0 0,22,23 * * SAT"), ["24 22:00", "24 23:00"]);
    assert_eq!(
        autumn("*/30 2 * * *"),
        ["25 02:00", "25 02:30", "25 02:00", "25 02:30"],
        "a window of hours is as long as the clock shows it"
    );
    let schedule = Schedule::parse("* * * * * *", "Europe/Berlin").unwrap();
    let within = at("2026-10-25T01:20:00Z");
    assert_eq!(schedule.next_after(within, within), Some(within.plus_ms(1_000)));
    assert_eq!(schedule.latest_until(within, within), Some(within));
}

/// Lord Howe goes from 02:00 to 02:30 on 4 October 2026, and from 02:00 back to 01:30 on 5 April.
#[test]
fn a_change_by_half_an_hour_adds_an_occurrence() {
    let [spring, autumn] = [
        |entry| occurrences(entry, "Australia/Lord_Howe", "2026-10-03T14:00:00Z", "2026-10-03T16:30:00Z"),
        |entry| occurrences(entry, "Australia/Lord_Howe", "2026-04-04T13:30:00Z", "2026-04-04T16:00:00Z"),
    ];
    assert_eq!(spring("0 * * * *"), ["04 01:00", "04 02:30", "04 03:00"]);
    assert_eq!(spring("15 * * * *"), ["04 01:15", "04 02:45", "04 03:15"]);
    assert_eq!(spring("45 * * * *"), ["04 00:45", "04 01:45", "04 02:45"]);
    assert_eq!(spring("15 2 * * *"), ["04 02:30"]);
    assert_eq!(autumn("0 * * * *"), ["05 01:00", "05 01:30", "05 02:00"]);
    assert_eq!(autumn("15 * * * *"), ["05 01:15", "05 01:45", "05 02:15"]);
    assert_eq!(autumn("45 * * * *"), ["05 00:45", "05 01:45", "05 01:45"]);
    assert_eq!(autumn("45 1 * * *"), ["05 01:45"]);
}

#[test]
fn changes_at_midnight_by_two_hours_and_by_a_day_follow_the_same_rule() {
    // Beirut skips 00:00 to 01:00 on 29 March 2026.
    let beirut = |entry| occurrences(entry, "Asia/Beirut", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_eq!(beirut("0 0 * * *"), ["29 01:00", "30 00:00"]);
    assert_eq!(beirut("30 0 * * SUN"), ["29 01:00"]);
    assert_eq!(beirut("@daily"), ["29 01:00", "30 00:00"]);
    // Nuuk skips 23:00 to 24:00 on 28 March 2026, a Saturday.
    let nuuk = |entry| occurrences(entry, "America/Nuuk", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_eq!(nuuk("30 23 * * SAT"), ["29 00:00"]);
    // Havana goes from 01:00 back to 00:00 on 1 November 2026.
    let havana = |entry| occurrences(entry, "America/Havana", "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z");
    assert_eq!(havana("@daily"), ["01 00:00", "02 00:00"]);
    // Troll skips 01:00 to 03:00 on 29 March 2026.
    let troll =
        |entry| occurrences(entry, "Antarctica/Troll", "2026-03-28T23:30:00Z", "2026-03-29T02:30:00Z");
    assert_eq!(troll("30 1,2 * * *"), ["29 03:00"]);
    assert_eq!(troll("0 * * * *"), ["29 00:00", "29 03:00", "29 04:00"]);
    // Apia skips 30 December 2011, a Friday.
    let apia = |entry| occurrences(entry, "Pacific/Apia", "2011-12-29T12:00:00Z", "2012-01-01T09:00:00Z");
    assert_eq!(apia("30 2 * * *"), ["29 02:30", "31 00:00", "31 02:30", "01 02:30"]);
    assert_eq!(apia("0 9,17 * * FRI"), ["31 00:00"]);
    assert_eq!(apia("0 */12 * * *"), ["29 12:00", "31 00:00", "31 12:00", "01 00:00", "01 12:00"]);
    let hourly = Schedule::parse("@hourly", "Pacific/Apia").unwrap();
    assert_eq!(run(&hourly, at("2011-12-29T00:30:00Z"), at("2012-01-01T00:30:00Z"), "@hourly").len(), 72);
}

/// The columns of the table in docs/OJS.md: the zone, and 01:00 and 04:00 of the day in UTC.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z"),
    ("Europe/Berlin", "2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T14:30:00Z", "2026-10-03T17:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T14:00:00Z", "2026-04-04T17:30:00Z"),
];

#[test]
fn the_table_of_clock_changes_is_true() {
    let page = include_str!("../../../../docs/OJS.md");
    let table = page.lines().skip_while(|line| !line.starts_with("| expression | Berlin")).skip(2);
    let rows: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let expression = cells[0].trim_matches('`');
        for ((zone, from, until), shown) in COLUMNS.iter().zip(&cells[1..]) {
            let from = at(from).plus_ms(-1).to_rfc3339();
            let runs = occurrences(expression, zone, &from, until);
            let runs: Vec<&str> = runs.iter().map(|run| &run[3..]).collect();
            assert_eq!(runs.join(", "), *shown, "{expression} in {zone} from {from}");
        }
    }
}

/// A change of a zone's clock: the second, and the offsets before and after.
struct Change {
    at: i64,
    before: i64,
    after: i64,
}

fn offset(zone: Tz, at: i64) -> i64 {
    let at = DateTime::<Utc>::from_timestamp(at, 0).unwrap().naive_utc();
    i64::from(zone.offset_from_utc_datetime(&at).fix().local_minus_utc())
}

fn changes(zone: Tz) -> Vec<Change> {
    let [from, until] = [2010, 2031].map(|year| {
        NaiveDate::from_ymd_opt(year, 1, 1).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp()
    });
    let mut found = Vec::new();
    for day in (from..until).step_by(86_400) {
        if offset(zone, day) == offset(zone, day + 86_400) {
            continue;
        }
        let minute = (day..=day + 86_400).step_by(60).find(|at| offset(zone, *at) != offset(zone, day));
        let minute = minute.unwrap();
        found.push(Change { at: minute, before: offset(zone, day), after: offset(zone, minute) });
    }
    found
}

/// An expression, and the times that it matches by the test's own reading.
struct Example {
    expression: String,
    matches: Box<dyn Fn(NaiveDateTime) -> bool>,
    kind: Pace,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Names,
    Repeats,
    RepeatsEveryHour,
}

fn entry(expression: String, kind: Pace, matches: impl Fn(NaiveDateTime) -> bool + 'static) -> Example {
    Example { expression, matches: Box::new(matches), kind }
}

fn local(seconds: i64) -> NaiveDateTime {
    DateTime::<Utc>::from_timestamp(seconds, 0).unwrap().naive_utc()
}

/// Returns entries that the change concerns.
fn entries(change: &Change) -> Vec<Example> {
    let (first, last) = (change.before.min(change.after), change.before.max(change.after));
    let (start, end) = (local(change.at + first), local(change.at + last));
    let middle = local(change.at + i64::midpoint(first, last) / 60 * 60);
    let mut all = vec![
        entry("0 * * * *".into(), Pace::RepeatsEveryHour, |at| at.minute() == 0),
        entry("17 * * * *".into(), Pace::RepeatsEveryHour, |at| at.minute() == 17),
        entry("30 0-23 * * *".into(), Pace::RepeatsEveryHour, |at| at.minute() == 30),
        entry("*/15 * * * *".into(), Pace::RepeatsEveryHour, |at| at.minute() % 15 == 0),
        entry("0 * * * SUN".into(), Pace::RepeatsEveryHour, |at| {
            at.minute() == 0 && at.weekday() == Weekday::Sun
        }),
        entry("0 */2 * * *".into(), Pace::Names, |at| at.minute() == 0 && at.hour() % 2 == 0),
        entry(format!("*/20 {} * * *", middle.hour()), Pace::Repeats, move |at| {
            at.minute() % 20 == 0 && at.hour() == middle.hour()
        }),
        entry("0,30 0-6,18-23 * * *".into(), Pace::Repeats, |at| {
            at.minute() % 30 == 0 && matches!(at.hour(), 0..=6 | 18..=23)
        }),
        entry(format!("0,40 {} * * *", middle.hour()), Pace::Names, move |at| {
            matches!(at.minute(), 0 | 40) && at.hour() == middle.hour()
        }),
        entry(format!("5 {} {} * *", middle.hour(), middle.day()), Pace::Names, move |at| {
            (at.minute(), at.hour(), at.day()) == (5, middle.hour(), middle.day())
        }),
    ];
    for time in [start, middle, end] {
        all.push(entry(format!("{} {} * * *", time.minute(), time.hour()), Pace::Names, move |at| {
            (at.minute(), at.hour()) == (time.minute(), time.hour())
        }));
    }
    all
}

/// Returns true if the entry occurs at this minute, by the rule.
fn occurs(entry: &Example, zone: Tz, change: &Change, at: i64) -> bool {
    let matches = |seconds| (entry.matches)(local(seconds));
    let shown = matches(at + offset(zone, at));
    let (forward, back) = (change.after - change.before, change.before - change.after);
    match entry.kind {
        Pace::Names if at == change.at && forward > 0 => {
            shown || (change.before..change.after).step_by(60).any(|offset| matches(at + offset))
        }
        Pace::Names => shown && !(change.at..change.at + back).contains(&at),
        _ if shown => true,
        _ if (change.at..change.at + forward).contains(&at) => matches(at + change.before),
        Pace::Repeats => false,
        Pace::RepeatsEveryHour => {
            let between = back % 3_600 != 0 && (change.at..change.at + back).contains(&at);
            let clock = local(at + change.after).date().and_time(local(at + change.before).time());
            between && (entry.matches)(clock)
        }
    }
}

/// Compares the occurrences around each change of the zones with the rule; returns how many changes there are.
fn compare(zones: &[Tz]) -> usize {
    let mut compared = 0;
    for zone in zones {
        for change in changes(*zone) {
            compared += 1;
            let long = (change.after - change.before).abs();
            let (from, until) = (change.at - long - 2 * 3_600, change.at + long + 2 * 3_600);
            for entry in entries(&change) {
                let about = format!("{} in {zone} around {}", entry.expression, local(change.at));
                let schedule = Schedule::parse(&entry.expression, zone.name()).unwrap();
                let [first, end] = [from * 1_000 - 1, until * 1_000].map(Timestamp);
                let found: Vec<i64> =
                    run(&schedule, first, end, &about).iter().map(|at| at.0 / 1_000).collect();
                let minutes = (from..until).step_by(60);
                let expected: Vec<i64> = minutes.filter(|at| occurs(&entry, *zone, &change, *at)).collect();
                let shown = |times: &[i64]| times.iter().map(|at| local(*at).to_string()).collect::<Vec<_>>();
                assert_eq!(shown(&found), shown(&expected), "{about}");
                if entry.kind == Pace::RepeatsEveryHour && !entry.expression.ends_with("SUN") {
                    let pause = found.windows(2).map(|pair| pair[1] - pair[0]).max();
                    let longest = if entry.expression.starts_with("*/15") { 900 } else { 3_600 };
                    assert!(pause.is_some_and(|pause| pause <= longest), "{about}: a pause of {pause:?} s");
                }
            }
        }
    }
    compared
}

#[test]
fn entries_keep_the_rule_at_the_changes_of_unusual_zones() {
    let compared = compare(&[
        Tz::Europe__Berlin,
        Tz::America__New_York,
        Tz::Australia__Lord_Howe,
        Tz::Antarctica__Troll,
        Tz::Asia__Pyongyang,
        Tz::America__Caracas,
        Tz::Pacific__Apia,
        Tz::America__Nuuk,
    ]);
    assert!(compared > 150, "{compared}");
}

#[test]
#[ignore = "long: about 12,000 changes of the clock, minute by minute"]
fn entries_keep_the_rule_at_every_change_of_every_zone() {
    let compared = compare(&TZ_VARIANTS);
    assert!(compared > 8_000, "{compared}");
}
