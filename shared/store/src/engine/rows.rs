//! Rows into values and back: states and JSON are parsed once, here.

use super::columns::BulkRow;
use super::statement::as_json;
use crate::{
    Directive, HourlyCount, ListedEngagement, ServerKey, StoreError, WorkerBeat, WorkerKind, WorkerState,
};
use serde::de::DeserializeOwned;
use turnstone_domain::budget::{Budget, OnExceed, Purse};
use turnstone_domain::engagement::{Engagement, User};
use turnstone_domain::fork::{ForkPoint, Origin};
use turnstone_domain::job::Envelope;
use turnstone_domain::review::{Review, ReviewKind, ReviewState};
use turnstone_domain::state::Trigger;
use turnstone_domain::tool_call::{ToolCall, ToolCallState, Tried};
use turnstone_domain::turn_write::Position;
use turnstone_domain::webhook::{Delivery, DeliveryState, SigningSecret, Webhook};
use turnstone_domain::{CallId, JobId, JobState, Phase, ReviewId, Timestamp};

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

pub(super) fn wrong(column: &str, message: impl ToString) -> Inconsistency {
    Inconsistency { column: column.to_owned(), message: message.to_string() }
}

/// A row of a database, by column.
pub(crate) trait Fields {
    /// A number.
    fn int(&self, column: &str) -> Result<Option<i64>, String>;
    /// A text.
    fn text(&self, column: &str) -> Result<Option<&str>, String>;
}

/// A row of which only the columns whose names begin so are looked at.
pub(super) struct Prefixed<'r, R> {
    pub row: &'r R,
    pub prefix: &'static str,
}

/// PostgreSQL's longest name of a column, in bytes.
const LONGEST_NAME: usize = 63;

/// Calls `read` with the whole name of a column, which is made without an allocation.
fn whole<T>(prefix: &str, column: &str, read: impl FnOnce(&str) -> T) -> T {
    let mut name = [0; LONGEST_NAME];
    let length = prefix.len() + column.len();
    match name.get_mut(..length) {
        Some(name) => {
            name[..prefix.len()].copy_from_slice(prefix.as_bytes());
            name[prefix.len()..].copy_from_slice(column.as_bytes());
            read(std::str::from_utf8(name).unwrap_or_default())
        }
        None => read(&[prefix, column].concat()),
    }
}

impl<R: Fields> Fields for Prefixed<'_, R> {
    fn int(&self, column: &str) -> Result<Option<i64>, String> {
        whole(self.prefix, column, |name| self.row.int(name))
    }

    fn text(&self, column: &str) -> Result<Option<&str>, String> {
        whole(self.prefix, column, |name| self.row.text(name))
    }
}

/// What a column can hold.
pub(crate) trait FromField<'r>: Sized {
    fn from_field<R: Fields>(row: &'r R, column: &str) -> Result<Option<Self>, String>;
}

impl FromField<'_> for i64 {
    fn from_field<R: Fields>(row: &R, column: &str) -> Result<Option<Self>, String> {
        row.int(column)
    }
}

impl FromField<'_> for bool {
    fn from_field<R: Fields>(row: &R, column: &str) -> Result<Option<Self>, String> {
        Ok(row.int(column)?.map(|value| value != 0))
    }
}

impl<'r> FromField<'r> for &'r str {
    fn from_field<R: Fields>(row: &'r R, column: &str) -> Result<Option<Self>, String> {
        row.text(column)
    }
}

impl FromField<'_> for String {
    fn from_field<R: Fields>(row: &R, column: &str) -> Result<Option<Self>, String> {
        Ok(row.text(column)?.map(str::to_owned))
    }
}

/// A column's value, if it has one.
pub(super) fn maybe<'r, T: FromField<'r>>(
    row: &'r impl Fields,
    column: &str,
) -> Result<Option<T>, Inconsistency> {
    T::from_field(row, column).map_err(|e| wrong(column, e))
}

/// A column's value.
pub(super) fn get<'r, T: FromField<'r>>(row: &'r impl Fields, column: &str) -> Result<T, Inconsistency> {
    maybe(row, column)?.ok_or_else(|| wrong(column, "it is NULL"))
}

/// A column that holds JSON.
pub(super) fn json<T: DeserializeOwned>(row: &impl Fields, column: &str) -> Result<T, Inconsistency> {
    serde_json::from_str(get::<&str>(row, column)?).map_err(|e| wrong(column, e))
}

pub(super) fn json_or_none<T: DeserializeOwned>(
    row: &impl Fields,
    column: &str,
) -> Result<Option<T>, Inconsistency> {
    let text = maybe::<&str>(row, column)?;
    text.map(|text| serde_json::from_str(text).map_err(|e| wrong(column, e))).transpose()
}

/// A column that holds a time.
pub(super) fn time(row: &impl Fields, column: &str) -> Result<Timestamp, Inconsistency> {
    get(row, column).map(Timestamp)
}

pub(super) fn time_or_none(row: &impl Fields, column: &str) -> Result<Option<Timestamp>, Inconsistency> {
    Ok(maybe::<i64>(row, column)?.map(Timestamp))
}

pub(super) fn word<T>(
    row: &impl Fields,
    column: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, Inconsistency> {
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
    /// What it has reserved beside that, by budget; read with the job when it has reserved anything.
    pub shares: Vec<Share>,
    pub tokens_used: i64,
    pub events: i64,
    pub worker_id: Option<String>,
    pub lease_token: Option<String>,
    pub lease_expires_at: Option<Timestamp>,
    pub retry_delay_ms: Option<i64>,
    /// When the current attempt began.
    pub claimed_at: Option<Timestamp>,
    /// Whose job it is.
    pub tenant: Option<String>,
    /// How long a lease of this job lasts, whoever holds it.
    pub visibility_ms: Option<i64>,
    /// How long the current lease lasts from each beat.
    pub lease_ms: Option<i64>,
    /// The limit it shares with others.
    pub limit_key: Option<String>,
    /// The workflow it is a step of, and which.
    pub workflow: Option<(i64, i64)>,
    /// Whether it is paused: nobody claims it.
    pub held: bool,
    /// Whether it is kept for a manual retry when it is discarded.
    pub dead_letter: bool,
    /// What the runtime of its worker has to offer.
    pub runtime_tags: Vec<String>,
    /// Its state as it was when the row was read.
    pub read_state: JobState,
    /// The fencing token as it was when the row was read.
    pub read_token: Option<String>,
    /// Whether it took an edge of the table since it was read.
    pub moved: bool,
}

impl JobRow {
    pub(super) fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        let position = json_or_none(row, "position")?;
        Self::around(row, position, json_or_none(row, "runtime_tags")?)
    }

    /// The row, and what of it cannot be read, if anything.
    pub(super) fn salvage(row: &impl Fields) -> Result<(Self, Option<Inconsistency>), Inconsistency> {
        match Self::decode(row) {
            Ok(whole) => Ok((whole, None)),
            Err(damage) => Ok((Self::around(row, None, None)?, Some(damage))),
        }
    }

    /// The row with what its columns of JSON say.
    fn around(
        row: &impl Fields,
        position: Option<Position>,
        runtime_tags: Option<Vec<String>>,
    ) -> Result<Self, Inconsistency> {
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
            timeout_ms: maybe(row, "timeout_ms")?,
            engagement_seq: maybe(row, "engagement_seq")?,
            stream: get(row, "stream")?,
            position,
            reserved: get(row, "reserved")?,
            shares: Vec::new(),
            tokens_used: get(row, "tokens_used")?,
            events: get(row, "events")?,
            worker_id: maybe(row, "worker_id")?,
            lease_token: maybe(row, "lease_token")?,
            lease_expires_at: time_or_none(row, "lease_expires_at")?,
            retry_delay_ms: maybe(row, "retry_delay_ms")?,
            claimed_at: time_or_none(row, "claimed_at")?,
            tenant: maybe(row, "tenant")?,
            visibility_ms: maybe(row, "visibility_ms")?,
            lease_ms: maybe(row, "lease_ms")?,
            limit_key: maybe(row, "limit_key")?,
            workflow: maybe(row, "workflow_seq")?.zip(maybe(row, "workflow_step")?),
            held: get(row, "held")?,
            dead_letter: get(row, "dead_letter")?,
            runtime_tags: runtime_tags.unwrap_or_default(),
            read_state: word(row, "state", JobState::parse)?,
            read_token: maybe(row, "lease_token")?,
            moved: false,
        })
    }

    /// Whether it failed for good and is kept for a manual retry.
    pub(super) fn is_dead_letter(&self) -> bool {
        self.dead_letter && self.state == JobState::Discarded
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
        self.ended_at = next.is_terminal().then_some(now);
        Ok(())
    }

    /// The row as `update_active_jobs.sql` takes it.
    pub(super) fn touched(&self) -> Result<impl BulkRow + use<>, StoreError> {
        let position = self.position.as_ref().map(as_json).transpose()?;
        let (reserved, used) = (self.reserved, self.tokens_used);
        let (until, token, held) = (self.lease_expires_at, self.read_token.clone(), i64::from(self.held));
        Ok((self.seq, self.lapses, position, reserved, used, self.events, until, token, held))
    }

    /// The row as `update_jobs.sql` takes it.
    pub(super) fn changes(&self) -> Result<impl BulkRow + use<>, StoreError> {
        let position = self.position.as_ref().map(as_json).transpose()?;
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
            self.claimed_at,
            self.lease_ms,
            i64::from(self.dead_letter),
            self.read_token.clone(),
        ))
    }
}

/// What a job has reserved of one budget, beyond the tokens of its engagement's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Share {
    pub budget_seq: i64,
    pub tokens: i64,
    pub money: i64,
}

impl Share {
    /// A row of `reservations`, with the job that it belongs to.
    pub(super) fn decode(row: &impl Fields) -> Result<(i64, Self), Inconsistency> {
        let (tokens, money) = (get(row, "tokens")?, get(row, "money")?);
        Ok((get(row, "job_seq")?, Self { budget_seq: get(row, "budget_seq")?, tokens, money }))
    }
}

/// The amounts of a budget.
pub(super) fn budget(row: &impl Fields) -> Result<Budget, Inconsistency> {
    let on_exceed = maybe::<&str>(row, "on_exceed")?.and_then(OnExceed::parse);
    Ok(Budget {
        limit: maybe(row, "token_limit")?,
        settled: get(row, "settled")?,
        reserved: get(row, "reserved")?,
        money: Purse {
            limit: maybe(row, "money_limit")?,
            settled: get(row, "money_settled")?,
            reserved: get(row, "money_reserved")?,
        },
        on_exceed,
        warn_at: maybe(row, "warn_at")?,
    })
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
    /// 0 for one that is nobody's child.
    pub depth: i64,
    /// The job that it works for.
    pub parent_seq: Option<i64>,
    /// Engagements that ever worked for it.
    pub children: i64,
    /// Jobs that ever carried an input into it.
    pub inputs: i64,
    /// The budgets that it has to pay into beside that of its tree, because it or somebody above it has a limit of its own.
    pub limited_by: Vec<String>,
    pub budget: Budget,
    /// Events and messages as they were when the row was read: who changes the row changes one of them.
    pub read: (i64, i64),
}

impl EngagementRow {
    /// Whether other engagements spend from the same budget, or may.
    pub(super) fn shares_budget(&self) -> bool {
        self.parent_seq.is_some() || self.children > 0
    }

    pub(super) fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        Ok(Self {
            seq: get(row, "seq")?,
            engagement: Engagement {
                id: get::<String>(row, "id")?.into(),
                agent: get(row, "agent_name")?,
                user: User { id: get(row, "user_id")?, email: maybe(row, "user_email")? },
                started_at: time(row, "started_at")?,
                turns: get(row, "turns")?,
            },
            digest: get(row, "digest")?,
            budget_seq: get(row, "budget_seq")?,
            events: get(row, "events")?,
            messages: get(row, "messages")?,
            depth: get(row, "depth")?,
            parent_seq: maybe(row, "parent_seq")?,
            children: get(row, "children")?,
            inputs: get(row, "inputs")?,
            limited_by: maybe::<&str>(row, "limited_by")?
                .map(|names| names.split(' ').map(str::to_owned).collect())
                .unwrap_or_default(),
            read: (get(row, "events")?, get(row, "messages")?),
            budget: budget(row)?,
        })
    }
}

pub(super) fn envelope(
    row: &impl Fields,
) -> Result<(i64, turnstone_domain::retry::RetryPolicy, Envelope), Inconsistency> {
    let envelope = Envelope {
        args: json(row, "args")?,
        meta: json(row, "meta")?,
        options: json(row, "options")?,
        extra: json(row, "extra")?,
    };
    Ok((get(row, "job_seq")?, json(row, "retry")?, envelope))
}

/// A column that holds a phase by its number.
pub(super) fn phase(row: &impl Fields) -> Result<Phase, Inconsistency> {
    let phase: i64 = get(row, "phase")?;
    Phase::from_index(phase).ok_or_else(|| wrong("phase", format!("{phase} is unknown")))
}

pub(super) fn tool_call(row: &impl Fields) -> Result<ToolCall, Inconsistency> {
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
        duration_ms: maybe(row, "duration_ms")?,
        created_at: time(row, "created_at")?,
        review_id: maybe::<String>(row, "review_id")?.map(ReviewId),
        again: get(row, "again")?,
        provider: maybe(row, "provider")?,
        retries: get(row, "retries")?,
        tried: tried(row)?,
        handled: json_or_none(row, "handled")?,
        started_at: time_or_none(row, "started_at")?,
        completed_at: time_or_none(row, "completed_at")?,
        stub_of: maybe::<String>(row, "stub_of")?.map(CallId),
    })
}

/// Where an engagement was forked from.
pub(super) fn origin(row: &impl Fields) -> Result<Origin, Inconsistency> {
    Ok(Origin {
        engagement_id: get::<String>(row, "parent_id")?.into(),
        point: ForkPoint { turn: get(row, "at_turn")?, phase: phase(row)? },
        live_tools: get(row, "live_tools")?,
        changes: json(row, "changes")?,
    })
}

/// Tries are appended as objects with commas between them.
fn tried(row: &impl Fields) -> Result<Vec<Tried>, Inconsistency> {
    let Some(objects) = maybe::<&str>(row, "tried")? else { return Ok(Vec::new()) };
    serde_json::from_str(&format!("[{objects}]")).map_err(|e| wrong("tried", e))
}

pub(super) fn review(row: &impl Fields) -> Result<Review, Inconsistency> {
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
        decided_by: maybe(row, "decided_by")?,
        reason: maybe(row, "reason")?,
        created_at: time(row, "created_at")?,
        deadline_at: time_or_none(row, "deadline_at")?,
        decided_at: time_or_none(row, "decided_at")?,
        plan: json_or_none(row, "plan")?.unwrap_or_default(),
        step: usize::try_from(get::<i64>(row, "step")?).map_err(|e| wrong("step", e))?,
        votes: json_or_none(row, "votes")?.unwrap_or_default(),
        remind_at: time_or_none(row, "remind_at")?,
        reminders: get(row, "reminders")?,
        asked: maybe::<String>(row, "asked")?.map(Into::into),
        spent: get(row, "spent")?,
    })
}

pub(super) fn listed_engagement(row: &impl Fields) -> Result<ListedEngagement, Inconsistency> {
    Ok(ListedEngagement {
        position: get(row, "seq")?,
        engagement: Engagement {
            id: get::<String>(row, "id")?.into(),
            agent: get(row, "agent_name")?,
            user: User { id: get(row, "user_id")?, email: maybe(row, "user_email")? },
            started_at: time(row, "started_at")?,
            turns: get(row, "turns")?,
        },
        job_id: JobId(get(row, "job_id")?),
        job_state: word(row, "state", JobState::parse)?,
    })
}

pub(super) fn worker(row: &impl Fields) -> Result<WorkerBeat, Inconsistency> {
    Ok(WorkerBeat {
        name: get(row, "name")?,
        instance: get(row, "instance")?,
        host: get(row, "host")?,
        pid: get(row, "pid")?,
        version: get(row, "version")?,
        queues: json(row, "queues")?,
        slots: get(row, "slots")?,
        busy: get(row, "busy")?,
        state: word(row, "state", WorkerState::parse)?,
        started_at: time(row, "started_at")?,
        seen_at: time(row, "seen_at")?,
        kind: word(row, "kind", WorkerKind::parse)?,
        directive: maybe::<&str>(row, "directive")?.and_then(Directive::parse),
    })
}

pub(super) fn server_key(row: &impl Fields) -> Result<ServerKey, Inconsistency> {
    Ok(ServerKey { name: get(row, "name")?, body: get(row, "body")?, created_at: time(row, "created_at")? })
}

pub(super) fn hourly_count(row: &impl Fields) -> Result<HourlyCount, Inconsistency> {
    Ok(HourlyCount {
        hour: time(row, "hour")?,
        queue: get(row, "queue")?,
        state: word(row, "state", JobState::parse)?,
        jobs: get(row, "jobs")?,
        tokens: get(row, "tokens")?,
        took_ms: get(row, "took_ms")?,
    })
}

pub(super) fn webhook(row: &impl Fields) -> Result<Webhook, Inconsistency> {
    let old_secret = maybe::<String>(row, "old_secret")?.map(SigningSecret);
    Ok(Webhook {
        id: get(row, "id")?,
        tenant: maybe(row, "tenant")?,
        url: get(row, "url")?,
        events: json(row, "events")?,
        filter: json(row, "filter")?,
        metadata: json(row, "metadata")?,
        secret: SigningSecret(get(row, "secret")?),
        old_secret: old_secret.zip(time_or_none(row, "old_until")?),
        active: get(row, "active")?,
        since: get(row, "since")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

pub(super) fn delivery(row: &impl Fields) -> Result<Delivery, Inconsistency> {
    Ok(Delivery {
        id: get(row, "id")?,
        webhook_id: get(row, "webhook_id")?,
        event_id: get(row, "event_id")?,
        event: get(row, "event")?,
        body: get(row, "body")?,
        state: word(row, "state", DeliveryState::parse)?,
        attempts: get(row, "attempts")?,
        next_at: time_or_none(row, "next_at")?,
        status: maybe(row, "status")?,
        error: maybe(row, "error")?,
        created_at: time(row, "created_at")?,
        ended_at: time_or_none(row, "ended_at")?,
    })
}
