//! Rows into values and back: states and JSON are parsed once, here.

use crate::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, ValueRef};
use turnstone_domain::budget::Budget;
use turnstone_domain::engagement::{Engagement, User};
use turnstone_domain::event::{Event, EventName};
use turnstone_domain::job::Envelope;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::review::{Review, ReviewKind, ReviewState};
use turnstone_domain::state::Trigger;
use turnstone_domain::tool_call::{ToolCall, ToolCallState};
use turnstone_domain::turn_write::Position;
use turnstone_domain::{CallId, Checkpoint, JobId, JobState, Phase, ReviewId, Timestamp};

/// A row that does not say what this version understands.
#[derive(Debug)]
pub(super) struct Inconsistency {
    column: String,
    message: String,
}

impl From<Inconsistency> for StoreError {
    fn from(wrong: Inconsistency) -> Self {
        Self::Unreadable { column: wrong.column, message: wrong.message }
    }
}

fn wrong(column: &str, message: impl ToString) -> Inconsistency {
    Inconsistency { column: column.to_owned(), message: message.to_string() }
}

/// A column's value.
pub(super) fn get<'r, T>(row: &'r SqliteRow, column: &str) -> Result<T, Inconsistency>
where
    T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    row.try_get(column).map_err(|e| wrong(column, e))
}

/// A column that holds JSON.
pub(super) fn json<T: DeserializeOwned>(row: &SqliteRow, column: &str) -> Result<T, Inconsistency> {
    serde_json::from_str(get::<&str>(row, column)?).map_err(|e| wrong(column, e))
}

fn json_or_none<T: DeserializeOwned>(row: &SqliteRow, column: &str) -> Result<Option<T>, Inconsistency> {
    let raw = row.try_get_raw(column).map_err(|e| wrong(column, e))?;
    if raw.is_null() { Ok(None) } else { json(row, column).map(Some) }
}

/// A column that holds a time.
pub(super) fn time(row: &SqliteRow, column: &str) -> Result<Timestamp, Inconsistency> {
    get(row, column).map(Timestamp)
}

fn time_or_none(row: &SqliteRow, column: &str) -> Result<Option<Timestamp>, Inconsistency> {
    get::<Option<i64>>(row, column).map(|ms| ms.map(Timestamp))
}

fn word<T>(row: &SqliteRow, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, Inconsistency> {
    let text: &str = get(row, column)?;
    parse(text).ok_or_else(|| wrong(column, format!("`{text}` is unknown")))
}

/// What changes in the life of a job.
#[derive(Clone, Debug)]
pub(super) struct JobRow {
    pub seq: i64,
    pub id: JobId,
    pub job_type: String,
    pub queue: String,
    pub state: JobState,
    pub priority: i64,
    pub attempt: i64,
    pub failures: i64,
    pub lapses: i64,
    pub created_at: Timestamp,
    pub run_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub timeout_ms: Option<i64>,
    pub engagement_seq: Option<i64>,
    pub stream: i64,
    pub position: Option<Position>,
    pub reserved: i64,
    pub tokens_used: i64,
    pub events: i64,
    pub worker_id: Option<String>,
    pub lease_token: Option<String>,
    pub lease_expires_at: Option<Timestamp>,
    pub retry_delay_ms: Option<i64>,
    /// Whether it took an edge of the table since it was read.
    pub moved: bool,
}

impl JobRow {
    pub(super) fn decode(row: &SqliteRow) -> Result<Self, Inconsistency> {
        Ok(Self {
            seq: get(row, "seq")?,
            id: JobId(get(row, "id")?),
            job_type: get(row, "job_type")?,
            queue: get(row, "queue")?,
            state: word(row, "state", JobState::parse)?,
            priority: get(row, "priority")?,
            attempt: get(row, "attempt")?,
            failures: get(row, "failures")?,
            lapses: get(row, "lapses")?,
            created_at: time(row, "created_at")?,
            run_at: time(row, "run_at")?,
            started_at: time_or_none(row, "started_at")?,
            ended_at: time_or_none(row, "ended_at")?,
            expires_at: time_or_none(row, "expires_at")?,
            timeout_ms: get(row, "timeout_ms")?,
            engagement_seq: get(row, "engagement_seq")?,
            stream: get(row, "stream")?,
            position: json_or_none(row, "position")?,
            reserved: get(row, "reserved")?,
            tokens_used: get(row, "tokens_used")?,
            events: get(row, "events")?,
            worker_id: get(row, "worker_id")?,
            lease_token: get(row, "lease_token")?,
            lease_expires_at: time_or_none(row, "lease_expires_at")?,
            retry_delay_ms: get(row, "retry_delay_ms")?,
            moved: false,
        })
    }

    /// Takes the edge of the closed table, and what every edge brings: leases end with `active`, ends have a time.
    pub(super) fn step(&mut self, trigger: Trigger, now: Timestamp) -> Result<(), StoreError> {
        let Some(next) = self.state.after(trigger) else {
            return Err(StoreError::Inconsistent {
                table: "jobs",
                column: "state",
                row: self.id.to_string(),
                message: format!("{trigger:?} is not possible in state {}", self.state),
            });
        };
        self.state = next;
        self.moved = true;
        if next != JobState::Active {
            self.worker_id = None;
            self.lease_token = None;
            self.lease_expires_at = None;
        }
        if next.is_terminal() {
            self.ended_at = Some(now);
        }
        Ok(())
    }

    /// The row as `jobs_touch.sql` takes it.
    pub(super) fn touched(&self) -> Result<impl Serialize, StoreError> {
        let position = self.position.as_ref().map(super::statement::as_json).transpose()?;
        let (reserved, used) = (self.reserved, self.tokens_used);
        Ok((self.seq, self.lapses, position, reserved, used, self.events, self.lease_expires_at))
    }

    /// The row as `jobs_write.sql` takes it.
    pub(super) fn changes(&self) -> Result<impl Serialize, StoreError> {
        let position = self.position.as_ref().map(super::statement::as_json).transpose()?;
        Ok((
            self.seq,
            self.state.as_str(),
            self.attempt,
            self.failures,
            self.lapses,
            self.run_at,
            self.started_at,
            self.ended_at,
            position,
            self.reserved,
            self.tokens_used,
            self.events,
            self.worker_id.clone(),
            self.lease_token.clone(),
            self.lease_expires_at,
            self.retry_delay_ms,
        ))
    }
}

/// An engagement with its counters and its budget.
#[derive(Clone, Debug)]
pub(super) struct EngagementRow {
    pub seq: i64,
    pub engagement: Engagement,
    pub digest: String,
    pub budget_seq: i64,
    pub events: i64,
    pub messages: i64,
    pub budget: Budget,
}

impl EngagementRow {
    pub(super) fn decode(row: &SqliteRow) -> Result<Self, Inconsistency> {
        Ok(Self {
            seq: get(row, "seq")?,
            engagement: Engagement {
                id: get::<String>(row, "id")?.into(),
                agent: get(row, "agent_name")?,
                user: User { id: get(row, "user_id")?, email: get(row, "user_email")? },
                started_at: time(row, "started_at")?,
                turns: get(row, "turns")?,
            },
            digest: get(row, "digest")?,
            budget_seq: get(row, "budget_seq")?,
            events: get(row, "events")?,
            messages: get(row, "messages")?,
            budget: Budget {
                limit: get(row, "token_limit")?,
                settled: get(row, "settled")?,
                reserved: get(row, "reserved")?,
            },
        })
    }
}

pub(super) fn envelope(
    row: &SqliteRow,
) -> Result<(i64, turnstone_domain::retry::RetryPolicy, Envelope), Inconsistency> {
    let envelope = Envelope {
        args: json(row, "args")?,
        meta: json(row, "meta")?,
        options: json(row, "options")?,
        extra: json(row, "extra")?,
    };
    Ok((get(row, "job_seq")?, json(row, "retry")?, envelope))
}

pub(super) fn checkpoint(row: &SqliteRow) -> Result<Checkpoint, Inconsistency> {
    let phase: i64 = get(row, "phase")?;
    Ok(Checkpoint {
        turn: get(row, "turn")?,
        phase: Phase::from_index(phase).ok_or_else(|| wrong("phase", format!("{phase} is unknown")))?,
        version: get(row, "version")?,
        body: json(row, "body")?,
        duration_ms: get(row, "duration_ms")?,
        tokens_in: get(row, "tokens_in")?,
        tokens_out: get(row, "tokens_out")?,
        at: time(row, "at")?,
    })
}

pub(super) fn message(row: &SqliteRow) -> Result<StoredMessage, Inconsistency> {
    Ok(StoredMessage {
        seq: get(row, "seq")?,
        turn: get(row, "turn")?,
        message: json(row, "message")?,
        created_at: time(row, "created_at")?,
    })
}

pub(super) fn tool_call(row: &SqliteRow) -> Result<ToolCall, Inconsistency> {
    Ok(ToolCall {
        call_id: CallId(get(row, "call_id")?),
        turn: get(row, "turn")?,
        position: get(row, "position")?,
        name: get(row, "name")?,
        input: json(row, "input")?,
        idempotent: get(row, "idempotent")?,
        state: word(row, "state", ToolCallState::parse)?,
        sends: get(row, "sends")?,
        outcome: json_or_none(row, "outcome")?,
        withheld: get(row, "withheld")?,
        duration_ms: get(row, "duration_ms")?,
        created_at: time(row, "created_at")?,
        review_id: get::<Option<String>>(row, "review_id")?.map(ReviewId),
    })
}

pub(super) fn event(row: &SqliteRow) -> Result<Event, Inconsistency> {
    Ok(Event {
        seq: get(row, "seq")?,
        name: word(row, "name", EventName::parse)?,
        job_id: JobId(get(row, "job_id")?),
        engagement_id: get::<Option<String>>(row, "engagement_id")?.map(Into::into),
        turn: get(row, "turn")?,
        data: json(row, "data")?,
        at: time(row, "at")?,
    })
}

pub(super) fn review(row: &SqliteRow) -> Result<Review, Inconsistency> {
    Ok(Review {
        id: ReviewId(get(row, "id")?),
        engagement_id: get::<String>(row, "engagement_id")?.into(),
        job_id: JobId(get(row, "job_id")?),
        turn: get(row, "turn")?,
        call_id: CallId(get(row, "call_id")?),
        kind: word(row, "kind", ReviewKind::parse)?,
        reviewer: get(row, "reviewer")?,
        question: json(row, "question")?,
        arguments_hash: get(row, "arguments_hash")?,
        state: word(row, "state", ReviewState::parse)?,
        decided_by: get(row, "decided_by")?,
        reason: get(row, "reason")?,
        created_at: time(row, "created_at")?,
        deadline_at: time_or_none(row, "deadline_at")?,
        decided_at: time_or_none(row, "decided_at")?,
    })
}
