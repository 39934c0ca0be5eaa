//! The questions of agents, and how their answers were given.

use super::Engine;
use super::ops::runs;
use super::rows::{self, Fields, Inconsistency, get, json_or_none};
use super::views::{all, one};
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnstone_domain::question::TOOLS;
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};
use turnstone_domain::{CallId, EngagementId, JobId};

/// An answer that counted.
#[derive(Clone, PartialEq, Debug)]
pub struct GivenAnswer {
    /// The job that asked.
    pub job: JobId,
    /// The call that asked.
    pub call: CallId,
    /// A value for each key that was asked for.
    pub values: Map<String, Value>,
}

/// Reads an answer that was given.
pub(super) fn given(row: &impl Fields) -> Result<GivenAnswer, Inconsistency> {
    let values = match json_or_none(row, "outcome")? {
        Some(ToolOutcome::Success { output: Value::Object(values) }) => values,
        _ => Map::new(),
    };
    Ok(GivenAnswer { job: JobId(get(row, "job_id")?), call: CallId(get(row, "call_id")?), values })
}

/// Reads questions and their answers, and records that clients received them.
#[derive(Clone)]
pub struct Questions(pub(super) Arc<Engine>);

impl Questions {
    /// One call of an engagement's own tool journal.
    #[boxed]
    pub async fn tool_call(&self, of: &EngagementId, id: &CallId) -> Result<Option<ToolCall>, StoreError> {
        let values = [of.as_str().into(), id.as_str().into()];
        one(&self.0.readers, "read a tool call", &sql::SELECT_TOOL_CALL_BY_ID, &values, rows::decode).await
    }

    /// The answer that was given in this engagement by this key.
    #[boxed]
    pub async fn answer_given(
        &self,
        of: &EngagementId,
        key: &str,
    ) -> Result<Option<GivenAnswer>, StoreError> {
        let values = [of.as_str().into(), key.into()];
        one(&self.0.readers, "look for an answer", &sql::SELECT_GIVEN_ANSWER, &values, given).await
    }

    /// The answers that counted in one job, the newest first: at most `limit` calls are looked at.
    #[boxed]
    pub async fn answers_of(&self, job: &JobId, limit: u32) -> Result<Vec<GivenAnswer>, StoreError> {
        let [one, other] = TOOLS;
        let values = [job.as_str().into(), one.into(), other.into(), limit.into()];
        let mut answers =
            all(&self.0.readers, "read answers of a user", &sql::SELECT_ANSWERS_OF_JOB, &values, given)
                .await?;
        // A call that was refused has an outcome, too, and no answer.
        answers.retain(|answer| !answer.values.is_empty());
        Ok(answers)
    }

    /// Returns true when a client has received a question, a call or a review by its id. Only a client that
    /// received it can mean it.
    #[boxed]
    pub async fn was_displayed(&self, question: &str) -> Result<bool, StoreError> {
        let (action, values) = ("look for a question", [question.into()]);
        let reported = one(&self.0.readers, action, &sql::SELECT_QUESTION_SHOWN, &values, |row| {
            get::<String>(row, "id")
        });
        Ok(reported.await?.is_some())
    }

    /// Records that clients have received these questions.
    #[boxed]
    pub async fn record_displayed(&self, questions: Vec<String>) -> Result<(), StoreError> {
        let mut untold = Vec::new();
        for question in questions {
            if !self.was_displayed(&question).await? {
                untold.push(question);
            }
        }
        if untold.is_empty() {
            return Ok(());
        }
        self.0.write(untold, |tx, shown| Box::pin(runs::questions_shown(&mut tx.session, shown))).await
    }
}
