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
/// Rows before or after which a record lacks phases or turns. A turn is finished before its job begins the next one.
pub const HOLES: &str = "SELECT count(*) FROM (SELECT v.stream, v.job_seq, v.turn, v.phase, v.phase + v.phases AS until, lag(v.turn) OVER w AS turn_before, lag(v.phase + v.phases) OVER w AS until_before, lag(v.job_seq) OVER w AS job_before, lead(v.turn) OVER w AS turn_after FROM journal AS v WHERE v.phases > 0 WINDOW w AS (PARTITION BY v.stream ORDER BY v.turn, v.phase)) AS p JOIN totals AS c ON c.seq = p.stream WHERE (p.turn_before IS NULL AND (p.phase > 0 OR p.turn <> coalesce((SELECT max(i.turn_until) FROM inheritances AS i WHERE i.engagement_seq = p.stream), 1))) OR (p.turn_before = p.turn AND p.phase <> p.until_before) OR (p.turn_before < p.turn AND (p.phase > 0 OR p.turn <> p.turn_before + 1 OR (p.until_before < 7 AND p.job_before = p.job_seq))) OR (p.turn_after IS NULL AND (p.turn <> c.turn OR p.until - 1 <> c.phase))";
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
