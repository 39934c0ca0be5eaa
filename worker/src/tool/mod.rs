//! Tools: one trait, one file per kind, and the registry of what this worker can call.

pub mod address_guard;
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
pub mod remote;
pub mod request;
pub mod toolbox;
pub mod url_template;

pub use config::ToolConfig;
pub use identity::Identity;
pub use mcp::McpConfig;
pub use policy::ToolPolicy;
pub use remote::{RemoteBook, RemoteConfig, Standing};
pub use toolbox::Toolbox;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use turnstone_domain::CallId;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::artifact::NewArtifact;
use turnstone_domain::question::Question;

/// One call to a tool.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The call's id and idempotency key.
    pub call_id: &'a CallId,
    /// The arguments, already checked against the tool's schema.
    pub input: &'a Value,
    /// The longest the call may take.
    pub timeout: Duration,
    /// As whom it is made.
    pub identity: &'a Identity,
}

/// What a tool answered.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Its output, for the model.
    pub output: Value,
    /// The files that it made.
    pub artifacts: Vec<NewArtifact>,
}

impl From<Value> for Answer {
    fn from(output: Value) -> Self {
        Self { output, artifacts: Vec::new() }
    }
}

/// Why a tool call failed. The sentences are for the model and the timeline, and free of secrets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ToolError {
    /// The service of the tool answered that it failed, and the tool itself did not. The request may have had an effect.
    #[error("{0}")]
    Failed(String),
    /// The tool answered with an error of its own, such as a file that does not exist or a 5xx with a JSON body. Its service is
    /// well, so no circuit breaker counts it.
    #[error("{0}")]
    Answered(String),
    /// The tool could not be reached: the request had no effect.
    #[error("{0}")]
    Unreached(String),
    /// The tool answered that it failed, and that the same request fails every time.
    #[error("{0}")]
    Final(String),
    /// The tool turned the request away undone, and said after how many milliseconds it takes another one, or nothing of that.
    /// Its service is well, so no circuit breaker counts it.
    #[error("{0}")]
    Busy(String, Option<u64>),
    /// The request may have reached the tool, and its answer was lost: nobody knows what became of it.
    #[error("{0}")]
    Lost(String),
    /// The tool took too long.
    #[error("{0}")]
    Timeout(String),
    /// The call was refused before anything was sent (address guard, missing secret).
    #[error("{0}")]
    Refused(String),
    /// No failure: an agent elsewhere works for it now, under this handle. The call is made again with the handle, once it
    /// is durable, and waits for the end.
    #[error("it has begun")]
    Begun(Box<Value>),
    /// No failure: an agent elsewhere waits for what its user says.
    #[error("it asks its user")]
    Asks(Box<AskedElsewhere>),
}

/// What an agent elsewhere asks its user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedElsewhere {
    /// What tells this question from its others.
    pub id: String,
    /// What is asked.
    pub question: Question,
}

/// How a tool is called (OSSA §1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// In this process.
    Function,
    /// By a request over HTTP.
    Http,
    /// By `tools/call` of an MCP server.
    Mcp,
}

/// Something an agent may call.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What it is, for the model and the api.
    fn spec(&self) -> &ToolSpec;

    /// The longest a call may take unless the capability says less.
    fn timeout(&self) -> Duration;

    /// Its circuit breaker, unless the agent's document has one for it; `None` is the document's default.
    fn breaker(&self) -> Option<Breaker> {
        None
    }

    /// How it is called.
    fn transport(&self) -> Transport {
        Transport::Function
    }

    /// Whether the credentials of users and static identities can go with a call.
    fn takes_credentials(&self) -> bool {
        false
    }

    /// Whether its calls change nothing. Such calls run beside each other, unless the agent's document forbids it.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Whether it announces itself that a repeated call has no second effect. Its [`spec`](Self::spec) has what the
    /// configuration declares.
    fn announces_idempotence(&self) -> bool {
        false
    }

    /// For an agent on another server, the most tokens that a call may spend there.
    fn tokens(&self) -> Option<i64> {
        None
    }

    /// Whether its calls are answered by the user of the engagement, and never made.
    fn asks_user(&self) -> bool {
        false
    }

    /// Calls it once. Dropping the future ends the call on our side.
    ///
    /// # Errors
    /// [`ToolError`].
    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError>;

    /// For an agent on another server, where it is: its name in the configuration, or its address.
    fn place(&self) -> Option<&str> {
        None
    }

    /// The same for who keeps the files that the tool makes; most tools make none.
    ///
    /// # Errors
    /// [`ToolError`].
    async fn answer(&self, invocation: Invocation<'_>) -> Result<Answer, ToolError> {
        self.call(invocation).await.map(Answer::from)
    }
}
