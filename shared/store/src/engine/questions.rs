//! Questions and their answers: the calls.

use super::Engine;
use super::ops::runs::Request as Asked;
use super::rows::{self, Fields, Inconsistency, get, json_or_none};
use super::session::Reader;
use super::views::{all, one};
use super::writer::{Answer, Request};
use crate::questions::{GivenAnswer, Questions};
use crate::{StoreError, sql};
use async_trait::async_trait;
use serde_json::Value;
use turnstone_domain::question::TOOLS;
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};
use turnstone_domain::{CallId, EngagementId, JobId};

/// Reads an answer that was given.
pub(super) fn given(row: &impl Fields) -> Result<GivenAnswer, Inconsistency> {
    let values = match json_or_none(row, "outcome")? {
        Some(ToolOutcome::Success { output: Value::Object(values) }) => values,
        _ => serde_json::Map::new(),
    };
    Ok(GivenAnswer { job: JobId(get(row, "job_id")?), call: CallId(get(row, "call_id")?), values })
}

#[async_trait]
impl<R: Reader> Questions for Engine<R> {
    async fn tool_call(&self, of: &EngagementId, id: &CallId) -> Result<Option<ToolCall>, StoreError> {
        let values = [of.as_str().into(), id.as_str().into()];
        one(&self.readers, "read a tool call", &sql::SELECT_TOOL_CALL_BY_ID, &values, rows::tool_call).await
    }

    async fn answer_given(&self, of: &EngagementId, key: &str) -> Result<Option<GivenAnswer>, StoreError> {
        let values = [of.as_str().into(), key.into()];
        one(&self.readers, "look for an answer", &sql::SELECT_GIVEN_ANSWER, &values, given).await
    }

    async fn answers_of(&self, job: &JobId, limit: u32) -> Result<Vec<GivenAnswer>, StoreError> {
        let [one, other] = TOOLS;
        let values = [job.as_str().into(), one.into(), other.into(), limit.into()];
        let mut answers =
            all(&self.readers, "read answers of a user", &sql::SELECT_ANSWERS_OF_JOB, &values, given).await?;
        // A call that was refused has an outcome, too, and no answer.
        answers.retain(|answer| !answer.values.is_empty());
        Ok(answers)
    }

    async fn was_told(&self, question: &str) -> Result<bool, StoreError> {
        let (action, values) = ("look for a question", [question.into()]);
        let told =
            one(&self.readers, action, &sql::SELECT_QUESTION_SHOWN, &values, |row| get::<String>(row, "id"));
        Ok(told.await?.is_some())
    }

    async fn questions_told(&self, questions: Vec<String>) -> Result<(), StoreError> {
        let mut untold = Vec::new();
        for question in questions {
            if !self.was_told(&question).await? {
                untold.push(question);
            }
        }
        if untold.is_empty() {
            return Ok(());
        }
        match self.request(Request::Runs(Asked::Questions(untold))).await? {
            Answer::Runs(_) => Ok(()),
            _ => Err(StoreError::Closed),
        }
    }
}
