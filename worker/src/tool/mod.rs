//! Tools: one trait, one file per kind, and the registry of tools that this worker can call.

pub mod address_guard;
pub mod body_text;
pub mod builtin;
pub mod config;
mod declared;
mod files;
pub mod header;
pub mod http;
pub mod identity;
pub mod lines;
pub mod mcp;
pub mod outbound;
pub mod policy;
pub mod program;
pub mod remote;
pub mod request;
pub mod toolbox;
pub mod uncalled;
pub mod url_template;

pub use config::ToolConfig;
pub use identity::Identity;
pub use mcp::McpConfig;
pub use policy::ToolPolicy;
pub use program::Programs;
pub use remote::{RemoteBook, RemoteCancellation, RemoteConfig};
pub use toolbox::Toolbox;

use crate::model;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::CallId;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::artifact::NewArtifact;
pub use turnstone_domain::checkpoint::Transport;
use turnstone_domain::question::Question;
use url::Url;

/// One call to a tool.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The call's id and idempotency key.
    pub call_id: &'a CallId,
    /// The arguments, already checked against the tool's schema.
    pub input: &'a Value,
    /// The longest the call may take.
    pub timeout: Duration,
    /// The identity of the call.
    pub identity: &'a Identity,
}

/// The answer of a tool.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Its output, for the model.
    pub output: Value,
    /// The files that it made.
    pub artifacts: Vec<NewArtifact>,
    /// The parts that could not be read as they were sent, in sentences.
    pub notes: Vec<String>,
}

impl From<Value> for Answer {
    fn from(output: Value) -> Self {
        Self { output, artifacts: Vec::new(), notes: Vec::new() }
    }
}

/// The reason why a tool call failed. The sentences are for the model and the timeline, and free of secrets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ToolError {
    /// The service of the tool reported a failure, and the tool itself did not. The request may have had an
    /// effect.
    #[error("{0}")]
    Failed(String),
    /// The tool answered with an error of its own, such as a file that does not exist or a 5xx with a JSON
    /// body. Its service works, so no circuit breaker counts it.
    #[error("{0}")]
    Answered(String),
    /// The tool could not be reached: the request had no effect.
    #[error("{0}")]
    Unreached(String),
    /// The tool reported a failure that the same request would cause every time.
    #[error("{0}")]
    Final(String),
    /// The tool rejected the request without effect, and perhaps sent a delay in milliseconds. Its service
    /// works, so no circuit breaker counts it.
    #[error("{0}")]
    Busy(String, Option<u64>),
    /// The request may have reached the tool, and its answer was lost: its outcome is unknown.
    #[error("{0}")]
    Lost(String),
    /// The tool took too long.
    #[error("{0}")]
    Timeout(String),
    /// The call was refused before a request was sent (address guard, missing secret).
    #[error("{0}")]
    Refused(String),
    /// No failure: a remote agent works for it now, under this handle. The call runs again with the handle,
    /// once that is durable, and waits for the end.
    #[error("it has begun")]
    Begun(Box<Value>),
    /// No failure: a remote agent waits for an answer of its user.
    #[error("it asks its user")]
    Asks(Box<RemoteQuestion>),
}

/// Returns the answer of a tool with U+FFFD in place of U+0000, which PostgreSQL cannot store.
pub fn without_nul(mut answer: Result<Answer, ToolError>) -> Result<Answer, ToolError> {
    match &mut answer {
        // Names and types of files have no control characters.
        Ok(Answer { output, .. }) => model::each_text(output, &mut model::without_nul),
        Err(
            ToolError::Failed(text)
            | ToolError::Answered(text)
            | ToolError::Unreached(text)
            | ToolError::Final(text)
            | ToolError::Busy(text, _)
            | ToolError::Lost(text)
            | ToolError::Timeout(text)
            | ToolError::Refused(text),
        ) => model::without_nul(text),
        // The answers of remote agents are read without it.
        Err(ToolError::Begun(_) | ToolError::Asks(_)) => {}
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_stored_without_nul() {
        let stored = without_nul(Ok(json!({"a\u{0}": ["b\u{0}"]}).into())).unwrap();
        assert_eq!(stored.output, json!({"a\u{FFFD}": ["b\u{FFFD}"]}));
        let failed = without_nul(Err(ToolError::Busy("x\0".to_owned(), Some(1))));
        assert_eq!(failed, Err(ToolError::Busy("x\u{FFFD}".to_owned(), Some(1))));
    }
}

/// Returns the result of an attempt that ends in time. `late` is what is said of one that does not, up to the time.
///
/// # Errors
/// [`ToolError::Timeout`], or the error of the attempt.
pub(crate) async fn within<T>(
    timeout: Duration,
    attempt: impl Future<Output = Result<T, ToolError>>,
    late: impl FnOnce() -> String,
) -> Result<T, ToolError> {
    tokio::time::timeout(timeout, attempt)
        .await
        .unwrap_or_else(|_| Err(ToolError::Timeout(format!("{} within {} ms", late(), timeout.as_millis()))))
}

/// A remote agent's question to its user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteQuestion {
    /// The id that distinguishes this question from its others.
    pub id: String,
    /// The question.
    pub question: Question,
}

/// A tool, behind its name.
pub type NamedTool = (String, Arc<dyn Tool>);

/// A tool that an agent may call.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// Returns its description, for the model and the API.
    fn spec(&self) -> &ToolSpec;

    /// Returns the longest a call may take unless the capability sets less.
    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Returns its circuit breaker, unless the agent's document has one for it; `None` is the document's
    /// default.
    fn breaker(&self) -> Option<Breaker> {
        None
    }

    /// Returns the transport of its calls.
    fn transport(&self) -> Transport {
        Transport::Function
    }

    /// Returns the URL to which its calls go, without their arguments; `None` if it has no fixed one.
    fn destination(&self) -> Option<&Url> {
        None
    }

    /// Returns true if a call can carry the credentials of users and static identities.
    fn takes_credentials(&self) -> bool {
        false
    }

    /// Returns true if its calls have no effect. Such calls run in parallel, unless the agent's document
    /// forbids it.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Returns true if the tool itself announces that a repeated call has no second effect. Its
    /// [`spec`](Self::spec) holds the configuration's declaration.
    fn announces_idempotence(&self) -> bool {
        false
    }

    /// Returns the most tokens that a call may spend, for an agent on another server.
    fn tokens(&self) -> Option<i64> {
        None
    }

    /// Returns true if its calls are answered by the user of the engagement, and never run.
    fn asks_user(&self) -> bool {
        false
    }

    /// Calls it once. Dropping the future ends the call on our side.
    ///
    /// # Errors
    /// [`ToolError`].
    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError>;

    /// Returns the place of an agent on another server: its name in the configuration, or its address.
    fn place(&self) -> Option<&str> {
        None
    }

    /// Calls it once, and returns the files that it made as well; most tools make none.
    ///
    /// # Errors
    /// [`ToolError`].
    async fn answer(&self, invocation: Invocation<'_>) -> Result<Answer, ToolError> {
        self.call(invocation).await.map(Answer::from)
    }
}
