//! What agents ask, and how the answers were given.

use crate::StoreError;
use async_trait::async_trait;
use serde_json::{Map, Value};
use turnstone_domain::tool_call::ToolCall;
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

/// Reads questions and their answers, and notes who heard of them.
#[async_trait]
pub trait Questions: Send + Sync + 'static {
    /// One call of an engagement's own tool journal.
    async fn tool_call(&self, of: &EngagementId, id: &CallId) -> Result<Option<ToolCall>, StoreError>;

    /// The answer that was given in this engagement by this key.
    async fn answer_given(&self, of: &EngagementId, key: &str) -> Result<Option<GivenAnswer>, StoreError>;

    /// The answers that counted in one job, the newest first: at most `limit` calls are looked at.
    async fn answers_of(&self, job: &JobId, limit: u32) -> Result<Vec<GivenAnswer>, StoreError>;

    /// Whether somebody was told of a question, a call or a review by its id. Only who was told of it can mean it.
    async fn was_told(&self, question: &str) -> Result<bool, StoreError>;

    /// Notes that somebody was told of questions.
    async fn questions_told(&self, questions: Vec<String>) -> Result<(), StoreError>;
}
