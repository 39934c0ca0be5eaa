//! Counts over the store's journal, in SQL for both databases.

/// All checkpoints.
pub const CHECKPOINTS: &str = "SELECT CAST(coalesce(sum(phases), 0) AS BIGINT) FROM journal";
/// All events.
pub const EVENTS: &str = "SELECT CAST(coalesce(sum(events), 0) AS BIGINT) FROM journal";
/// All messages.
pub const MESSAGES: &str = "SELECT CAST(coalesce(sum(messages), 0) AS BIGINT) FROM journal";
/// Rows with the text of a message: one whose retention is over has `[]`.
pub const TEXTS: &str = "SELECT count(*) FROM journal WHERE messages > 0 AND said <> '[]'";
/// Pairs of rows that hold the same phase of a turn of a job.
pub const PHASES_TWICE: &str = "SELECT count(*) FROM journal a JOIN journal b ON b.stream = a.stream AND b.job_seq = a.job_seq AND b.turn = a.turn AND (b.last_event, b.last_message, b.phase) > (a.last_event, a.last_message, a.phase) AND b.phase < a.phase + a.phases AND a.phase < b.phase + b.phases WHERE a.phases > 0 AND b.phases > 0";
/// Streams whose events are not numbered without gaps.
pub const GAPS: &str = "SELECT count(*) FROM (SELECT stream FROM journal WHERE events > 0 GROUP BY stream HAVING max(last_event) <> sum(events)) AS odd";

/// Returns an expression over a row's columns for its number of events of this name.
#[must_use]
pub fn times(name: &str) -> String {
    format!("(length(names) - length(replace(names, '{name}', ''))) / {}", name.len())
}

/// Returns a query for the number of all events of this name.
#[must_use]
pub fn event_count(name: &str) -> String {
    format!("SELECT CAST(coalesce(sum({}), 0) AS BIGINT) FROM journal", times(name))
}

/// Returns a query for the number of checkpoints of the phase with this number.
#[must_use]
pub fn phases(number: i64) -> String {
    format!("SELECT count(*) FROM journal WHERE phase <= {number} AND phase + phases > {number}")
}
