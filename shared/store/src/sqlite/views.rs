//! Reads, on connections of their own.

use super::SqliteStore;
use super::rows::{self, EngagementRow, JobRow, get, json, time};
use super::sql;
use super::statement::{as_json, decode_all, failed};
use crate::{
    AgentRecord, CheckpointRow, EventFilter, JobFilter, JobKind, Page, Recall, ReviewAnswer, ReviewFilter,
    StoreError, Views,
};
use async_trait::async_trait;
use serde_json::{Value, json};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use turnstone_domain::budget::Budget;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::event::Event;
use turnstone_domain::job::{AgentJob, FailedAttempt};
use turnstone_domain::message::StoredMessage;
use turnstone_domain::review::Review;
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};
use turnstone_domain::{AgentDefinition, EngagementId, Job, JobId, JobState, ReviewId};

impl SqliteStore {
    /// Queues that have an available job, by name.
    pub(super) async fn ready_queues(&self, kind: JobKind) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar(sql::QUEUES_READY)
            .bind(kind.as_str())
            .fetch_all(&self.readers)
            .await
            .map_err(failed("look for work"))
    }

    async fn complete(&self, row: JobRow) -> Result<Job, StoreError> {
        let pool = &self.readers;
        let keys = as_json(&[row.seq])?;
        let envelope = sqlx::query(sql::ENVELOPES_BY_JOB).bind(keys).fetch_one(pool).await;
        let (_, retry, envelope) = rows::envelope(&envelope.map_err(failed("read an envelope"))?)?;
        let result = sqlx::query(sql::JOB_RESULT).bind(row.seq).fetch_optional(pool).await;
        let result = result.map_err(failed("read a result"))?.map(|row| json(&row, "result")).transpose()?;
        let errors = sqlx::query(sql::JOB_ERRORS).bind(row.seq).fetch_all(pool).await;
        let errors = decode_all(&errors.map_err(failed("read errors"))?, |row| {
            Ok(FailedAttempt {
                attempt: get(row, "attempt")?,
                error: json(row, "error")?,
                at: time(row, "at")?,
            })
        })?;
        let agent = match row.engagement_seq {
            Some(seq) => Some(self.agent_side(&row, seq).await?),
            None => None,
        };
        Ok(Job {
            id: row.id,
            job_type: row.job_type,
            queue: row.queue,
            state: row.state,
            priority: row.priority,
            attempt: row.attempt,
            failures: row.failures,
            created_at: row.created_at,
            run_at: row.run_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            expires_at: row.expires_at,
            timeout_ms: row.timeout_ms,
            worker_id: row.worker_id,
            retry,
            retry_delay_ms: row.retry_delay_ms,
            envelope,
            result,
            errors,
            agent,
        })
    }

    async fn agent_side(&self, row: &JobRow, engagement_seq: i64) -> Result<AgentJob, StoreError> {
        let keys = as_json(&[engagement_seq])?;
        let engagement = sqlx::query(sql::ENGAGEMENTS_BY_SEQ).bind(keys).fetch_one(&self.readers).await;
        let engagement = EngagementRow::decode(&engagement.map_err(failed("read an engagement"))?)?;
        let calls = sqlx::query(sql::TOOL_CALLS_OF_JOB).bind(row.seq).fetch_all(&self.readers).await;
        let calls = decode_all(&calls.map_err(failed("read the tool journal"))?, rows::tool_call)?;
        Ok(AgentJob {
            engagement_id: engagement.engagement.id,
            position: row.position.clone().unwrap_or_default(),
            tokens_used: row.tokens_used,
            tool_results: calls.iter().filter_map(tool_result).collect(),
        })
    }
}

/// A settled call as `ext_agent_tool_results` shows it.
fn tool_result(call: &ToolCall) -> Option<Value> {
    let mut shown = json!({"tool_call_id": call.call_id, "name": call.name, "latency_ms": call.duration_ms});
    let (key, value) = match call.outcome.as_ref()? {
        _ if call.withheld => ("withheld", true.into()),
        ToolOutcome::Success { output } => ("result", output.clone()),
        ToolOutcome::Error { code, message, .. } => ("error", json!({"code": code, "message": message})),
    };
    shown[key] = value;
    Some(shown)
}

#[async_trait]
impl Views for SqliteStore {
    async fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let row = sqlx::query(sql::JOBS_BY_ID).bind(as_json(&[id])?).fetch_optional(&self.readers).await;
        match row.map_err(failed("read a job"))? {
            Some(row) => self.complete(JobRow::decode(&row)?).await.map(Some),
            None => Ok(None),
        }
    }

    async fn jobs(&self, filter: &JobFilter, page: Page) -> Result<(Vec<Job>, u64), StoreError> {
        let state = filter.state.map(JobState::as_str);
        let (queue, job_type) = (filter.queue.as_deref(), filter.job_type.as_deref());
        let total: i64 = sqlx::query_scalar(sql::JOBS_COUNTED)
            .bind(state)
            .bind(queue)
            .bind(job_type)
            .fetch_one(&self.readers)
            .await
            .map_err(failed("count jobs"))?;
        let rows = sqlx::query(sql::JOBS_LISTED)
            .bind(state)
            .bind(queue)
            .bind(job_type)
            .bind(page.limit)
            .bind(page.offset)
            .fetch_all(&self.readers)
            .await
            .map_err(failed("list jobs"))?;
        let mut jobs = Vec::with_capacity(rows.len());
        for row in decode_all(&rows, JobRow::decode)? {
            jobs.push(self.complete(row).await?);
        }
        Ok((jobs, total.unsigned_abs()))
    }

    async fn engagement(
        &self,
        id: &EngagementId,
    ) -> Result<Option<(Engagement, AgentDefinition, JobId)>, StoreError> {
        let row = sqlx::query(sql::ENGAGEMENT_BY_ID).bind(id.as_str()).fetch_optional(&self.readers).await;
        let Some(row) = row.map_err(failed("read an engagement"))? else { return Ok(None) };
        let engagement = EngagementRow::decode(&row)?.engagement;
        Ok(Some((engagement, json(&row, "definition")?, JobId(get(&row, "job_id")?))))
    }

    async fn messages(
        &self,
        id: &EngagementId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let query = sqlx::query(sql::MESSAGES_AFTER).bind(id.as_str()).bind(after).bind(limit);
        let rows = query.fetch_all(&self.readers).await.map_err(failed("read messages"))?;
        decode_all(&rows, rows::message)
    }

    async fn checkpoints(&self, id: &EngagementId, page: Page) -> Result<Vec<CheckpointRow>, StoreError> {
        let query = sqlx::query(sql::CHECKPOINTS_LISTED).bind(id.as_str()).bind(page.limit).bind(page.offset);
        let rows = query.fetch_all(&self.readers).await.map_err(failed("read checkpoints"))?;
        decode_all(&rows, |row| {
            Ok(CheckpointRow { job_id: JobId(get(row, "job_id")?), checkpoint: rows::checkpoint(row)? })
        })
    }

    async fn tool_calls(&self, id: &EngagementId) -> Result<Vec<ToolCall>, StoreError> {
        let rows =
            sqlx::query(sql::TOOL_CALLS_OF_ENGAGEMENT).bind(id.as_str()).fetch_all(&self.readers).await;
        decode_all(&rows.map_err(failed("read the tool journal"))?, rows::tool_call)
    }

    async fn budget(&self, id: &EngagementId) -> Result<Budget, StoreError> {
        let row = sqlx::query(sql::ENGAGEMENT_BY_ID).bind(id.as_str()).fetch_optional(&self.readers).await;
        let row = row.map_err(failed("read a budget"))?;
        Ok(row.as_ref().map(EngagementRow::decode).transpose()?.map(|row| row.budget).unwrap_or_default())
    }

    async fn events_after(
        &self,
        filter: &EventFilter,
        after: i64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError> {
        let (text, id) = match filter {
            EventFilter::Engagement(id) => (sql::EVENTS_OF_ENGAGEMENT, id.as_str()),
            EventFilter::Job(id) => (sql::EVENTS_OF_JOB, id.as_str()),
        };
        let query = sqlx::query(text).bind(id).bind(after).bind(limit);
        let rows = query.fetch_all(&self.readers).await.map_err(failed("read events"))?;
        decode_all(&rows, rows::event)
    }

    async fn reviews(&self, filter: &ReviewFilter, page: Page) -> Result<Vec<Review>, StoreError> {
        let rows = sqlx::query(sql::REVIEWS_LISTED)
            .bind(filter.state.map(|state| state.as_str()))
            .bind(filter.reviewer.as_deref())
            .bind(page.limit)
            .bind(page.offset)
            .fetch_all(&self.readers)
            .await
            .map_err(failed("list reviews"))?;
        decode_all(&rows, rows::review)
    }

    async fn review(&self, id: &ReviewId) -> Result<Option<Review>, StoreError> {
        let row = sqlx::query(sql::REVIEW_BY_ID).bind(id.as_str()).fetch_optional(&self.readers).await;
        Ok(row.map_err(failed("read a review"))?.as_ref().map(rows::review).transpose()?)
    }

    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError> {
        read_agents(&self.readers, None).await
    }

    async fn agent(&self, name: &str) -> Result<Option<AgentRecord>, StoreError> {
        Ok(read_agents(&self.readers, Some(name)).await?.pop())
    }

    async fn counts(&self, queue: Option<&str>) -> Result<Vec<(JobState, u64)>, StoreError> {
        let rows = sqlx::query_as::<_, (String, i64)>(sql::STATES_COUNTED)
            .bind(queue)
            .fetch_all(&self.readers)
            .await;
        let rows = rows.map_err(failed("count jobs"))?;
        Ok(rows
            .into_iter()
            .filter_map(|(state, count)| Some((JobState::parse(&state)?, count.unsigned_abs())))
            .collect())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(&self.readers).await.map(|_| ()).map_err(failed("answer a ping"))
    }
}

async fn read_agents(pool: &SqlitePool, name: Option<&str>) -> Result<Vec<AgentRecord>, StoreError> {
    let rows =
        sqlx::query(sql::AGENTS_LISTED).bind(name).fetch_all(pool).await.map_err(failed("read agents"))?;
    decode_all(&rows, |row: &SqliteRow| {
        Ok(AgentRecord {
            definition: json(row, "definition")?,
            source: get(row, "source")?,
            updated_at: time(row, "updated_at")?,
        })
    })
}

/// What an engagement remembers (see [`crate::Ledger::recall`]).
pub(super) async fn recall(
    pool: &SqlitePool,
    job: &JobId,
    turn: i64,
    window: u32,
    whole_journal: bool,
) -> Result<Recall, StoreError> {
    let rows = sqlx::query(sql::MESSAGES_NEWEST).bind(job.as_str()).bind(window).fetch_all(pool).await;
    let mut messages = decode_all(&rows.map_err(failed("recall messages"))?, rows::message)?;
    messages.reverse();
    let row = sqlx::query(sql::MESSAGE_INPUT).bind(job.as_str()).fetch_optional(pool).await;
    let input = row.map_err(failed("recall the input"))?.as_ref().map(rows::message).transpose()?;
    let input = input.filter(|input| messages.first().is_some_and(|oldest| oldest.seq > input.seq));
    let from = if whole_journal { 0 } else { turn };
    let calls = sqlx::query(sql::TOOL_CALLS_FROM_TURN).bind(job.as_str()).bind(from).fetch_all(pool).await;
    let tool_calls = decode_all(&calls.map_err(failed("recall the tool journal"))?, rows::tool_call)?;
    let rows = sqlx::query(sql::REVIEWS_OF_TURN).bind(job.as_str()).bind(turn).fetch_all(pool).await;
    let reviews = decode_all(&rows.map_err(failed("recall reviews"))?, rows::review)?;
    let reviews = reviews
        .into_iter()
        .map(|review| ReviewAnswer {
            call_id: review.call_id,
            kind: review.kind,
            arguments_hash: review.arguments_hash,
            state: review.state,
            decided_by: review.decided_by,
            reason: review.reason,
        })
        .collect();
    Ok(Recall { messages, input, tool_calls, reviews })
}
