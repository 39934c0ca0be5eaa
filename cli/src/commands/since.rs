//! Times of the past on the command line, and how long ago something was.

use crate::output::text;
use turnstone_domain::duration::Span;
use turnstone_domain::{Clock as _, JobState, SystemClock, Timestamp};
use turnstone_ojs::JobBody;

/// Reads `--since`: a time (RFC 3339), or how long ago it was, such as `90s`, `15m`, `1h` or `7d`. Returns it as RFC
/// 3339.
///
/// # Errors
/// The text is neither; the message says how to write one.
pub fn time(text: &str) -> Result<String, String> {
    if Timestamp::parse_rfc3339(text).is_some() {
        return Ok(text.to_owned());
    }
    let ago = Span::parse_short(text).map_err(|_| {
        "write a time such as 2026-01-31T12:00:00Z, or how long ago: 90s, 15m, 1h or 7d".to_owned()
    })?;
    let at = SystemClock.now().plus_ms(-ago.ms());
    if at < Timestamp(0) { Err("lies before 1970".to_owned()) } else { Ok(at.to_rfc3339()) }
}

/// Returns a span as a table shows it: `4s`, `12m`, `22h55m`.
#[must_use]
pub fn span(ms: i64) -> String {
    if ms < 60_000 { format!("{}s", ms.max(0) / 1_000) } else { text::span(ms) }
}

/// Returns how long ago a time was.
#[must_use]
pub fn age(time: &str) -> String {
    Timestamp::parse_rfc3339(time).map(|at| span(SystemClock.now().since(at))).unwrap_or_default()
}

/// Returns how long a job has run, or ran.
#[must_use]
pub fn duration(job: &JobBody) -> String {
    let read = |time: Option<&str>| time.and_then(Timestamp::parse_rfc3339);
    let end = read(ended_at(job));
    let Some(started) = read(job.started_at.as_deref()) else { return String::new() };
    match end {
        Some(end) if end.since(started) < 1_000 => format!("{}ms", end.since(started).max(0)),
        Some(end) => span(end.since(started)),
        None if job.state == JobState::Active => span(SystemClock.now().since(started)),
        None => String::new(),
    }
}

/// Returns when a job ended.
#[must_use]
pub fn ended_at(job: &JobBody) -> Option<&str> {
    let ends = [&job.completed_at, &job.cancelled_at, &job.discarded_at];
    ends.into_iter().find_map(Option::as_deref)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::job::sample;
    use serde_json::json;

    #[test]
    fn a_time_is_absolute_or_counts_from_now() {
        assert_eq!(time("2026-01-31T12:00:00Z").unwrap(), "2026-01-31T12:00:00Z");
        let ago = SystemClock.now().since(Timestamp::parse_rfc3339(&time("1h").unwrap()).unwrap());
        assert!((3_600_000..3_660_000).contains(&ago), "{ago}");
        assert!(time("99999d").unwrap_err().contains("before 1970"));
        for wrong in ["yesterday", "h", "", "-1h", "1M", "P1Y", "é"] {
            assert!(time(wrong).unwrap_err().contains("1h"), "{wrong}");
        }
    }

    #[test]
    fn a_job_that_has_not_begun_has_no_duration() {
        assert_eq!(duration(&sample(&json!({"state": "available"}))), "");
        let at = "2026-01-31T12:00:00Z";
        let ended = |end: &str| {
            duration(&sample(&json!({"state": "completed", "started_at": at, "completed_at": end})))
        };
        assert_eq!(ended("2026-01-31T12:00:00.250Z"), "250ms");
        assert_eq!(ended("2026-01-31T12:00:07Z"), "7s");
        assert_eq!(ended("2026-01-31T13:30:00Z"), "1h30m");
    }
}
