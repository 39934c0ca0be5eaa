//! Entries whose time zone changes its clock, with and without a scheduler during the change.

use super::super::on_sqlite_first;
use super::{MINUTE, entry, every_minute, jobs};
use serde_json::{Value, json};
use turnstone_domain::Timestamp;
use turnstone_tests::OjsServer;

on_sqlite_first![
    entries_run_through_a_change_of_the_clock,
    occurrences_around_a_change_that_were_missed_follow_the_policy,
];

const HOUR: i64 = 60 * MINUTE;

/// A time zone, when its clock changes, a daily time that is skipped or repeated, and its only run in milliseconds after
/// the change.
type Change = (&'static str, &'static str, &'static str, i64);

/// New York goes from 02:00 to 03:00 and from 02:00 to 01:00, Berlin from 02:00 to 03:00 and from 03:00 to 02:00.
const CHANGES: [Change; 4] = [
    ("America/New_York", "2026-03-08T07:00:00Z", "30 2 * * *", 0),
    ("Europe/Berlin", "2026-03-29T01:00:00Z", "30 2 * * *", 0),
    ("Europe/Berlin", "2026-10-25T01:00:00Z", "30 2 * * *", -30 * MINUTE),
    ("America/New_York", "2026-11-01T06:00:00Z", "30 1 * * *", -30 * MINUTE),
];

/// Moves the clock to two hours before the change, and creates an entry of each of these expressions.
async fn before(server: &OjsServer, change: Timestamp, zone: &str, entries: &[(&str, &str, &str)]) {
    server.fleet.clock.advance_ms(change.since(server.fleet.now()) - 2 * HOUR);
    for (name, expression, missed) in entries {
        let more = json!({
            "expression": expression, "timezone": zone, "overlap_policy": "allow", "missed_policy": missed,
        });
        every_minute(server, name, more).await;
    }
}

/// Returns the occurrences of an entry for which jobs around this change exist, in milliseconds after it, and deletes
/// the entry.
async fn scheduled(server: &OjsServer, name: &str, change: Timestamp) -> Vec<i64> {
    let time = |job: &Value| {
        let at = Timestamp::parse_rfc3339(job["meta"]["cron_scheduled_at"].as_str().unwrap()).unwrap();
        at.since(change)
    };
    let made = jobs(server).await.into_iter().filter(|job| job["meta"]["cron_name"] == name);
    let mut times: Vec<i64> = made.map(|job| time(&job)).filter(|at| at.abs() <= 24 * HOUR).collect();
    times.sort_unstable();
    assert_eq!(entry(server, name).await["run_count"], times.len());
    server.delete(&format!("/ojs/v1/cron/{name}")).await.expect(200);
    times
}

async fn entries_run_through_a_change_of_the_clock(server: &OjsServer) {
    for (zone, at, daily, once) in CHANGES {
        let change = Timestamp::parse_rfc3339(at).unwrap();
        let entries =
            [("hourly", "0 * * * *", "once"), ("quarter", "*/15 * * * *", "once"), ("daily", daily, "once")];
        before(server, change, zone, &entries).await;
        let next = change.plus_ms(once).to_rfc3339();
        assert_eq!(entry(server, "daily").await["next_run_at"], next, "{zone} at {at}");
        for _ in 0..16 {
            server.pass_ms(15 * MINUTE).await;
        }
        let hours: Vec<i64> = (-1..=2).map(|hour| hour * HOUR).collect();
        assert_eq!(scheduled(server, "hourly", change).await, hours, "{zone} at {at}");
        let quarters: Vec<i64> = (-7..=8).map(|quarter| quarter * 15 * MINUTE).collect();
        assert_eq!(scheduled(server, "quarter", change).await, quarters, "{zone} at {at}");
        assert_eq!(scheduled(server, "daily", change).await, [once], "{zone} at {at}");
    }
}

/// No scheduler runs from two hours before the change to two hours after it.
async fn occurrences_around_a_change_that_were_missed_follow_the_policy(server: &OjsServer) {
    for (zone, at, daily, once) in CHANGES {
        let change = Timestamp::parse_rfc3339(at).unwrap();
        let policies = ["once", "all", "skip"];
        let names = policies.map(|missed| (format!("hourly-{missed}"), format!("daily-{missed}")));
        let entries: Vec<_> = names
            .iter()
            .zip(policies)
            .flat_map(|((hourly, days), missed)| {
                [(hourly.as_str(), "0 * * * *", missed), (days.as_str(), daily, missed)]
            })
            .collect();
        before(server, change, zone, &entries).await;
        server.pass_ms(4 * HOUR + MINUTE).await;
        let next = entry(server, "hourly-skip").await["next_run_at"].clone();
        assert_eq!(next, change.plus_ms(3 * HOUR).to_rfc3339(), "{zone} at {at}");
        let hours: Vec<i64> = (-1..=2).map(|hour| hour * HOUR).collect();
        for (name, expected) in [
            ("hourly-once", vec![2 * HOUR]),
            ("hourly-all", hours),
            ("hourly-skip", vec![]),
            ("daily-once", vec![once]),
            ("daily-all", vec![once]),
            ("daily-skip", vec![]),
        ] {
            assert_eq!(scheduled(server, name, change).await, expected, "{name}: {zone} at {at}");
        }
    }
}
