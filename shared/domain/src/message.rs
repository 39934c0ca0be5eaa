//! Messages of the user, the model and the tools: append-only rows of an engagement (OSSA §1.2).

pub mod attached;
pub mod part;

pub use attached::{Attached, AttachedItem};
pub use part::{ContentPart, ImageKind, ImageSource};

use crate::{CallId, EngagementId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The author of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user of the engagement.
    User,
    /// The runtime itself, for example when it asks for the answer in another form.
    System,
    /// The model.
    Assistant,
    /// A tool's outcome.
    Tool,
}

/// A tool call as the model requested it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The id that this server gives the call, unique over all turns. The provider's own is in [`Message::attached`].
    pub call_id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments; a string when the model wrote something that is not JSON.
    pub arguments: Value,
}

/// One message of the conversation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text. For a message with parts, all of them as text, for readers that accept only text.
    pub content: String,
    /// The content in ordered parts; empty when it is `content` and nothing else (OSSA §1.2 rule 3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ContentPart>,
    /// Tool calls the model asked for; only on assistant messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<RequestedCall>,
    /// The members that only the provider of the answer understands; only on assistant messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Box<Attached>>,
    /// The call this message answers; only on tool messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// Of a summary: the messages that it replaces, and its cost (OSSA §4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Where it came from; only on messages that NORM made of an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The earlier engagement of a recalled message, which is not part of this one (OAS-51).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalled_from: Option<EngagementId>,
    /// The private conversation between agents that it belongs to; `None` is the conversation with the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// The messages that a summary replaces, and its cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The first turn that it does not replace: it replaces everything before.
    pub until: i64,
    /// Prompt tokens that were booked for it.
    pub tokens_in: i64,
    /// Completion tokens that were booked for it.
    pub tokens_out: i64,
}

/// Where a message came from (OSSA §1.2, RS-07, RS-10).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Metadata {
    /// The sender of the input.
    pub source: Source,
    /// How the content arrived, such as `text/plain`.
    pub original_format: String,
    /// When NORM made the message of it.
    pub normalized_at: Timestamp,
}

/// The sender of an input (OSSA §1.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A user whom the caller names.
    User,
    /// A program that enqueued a job without a user.
    Api,
    /// Another agent.
    Delegation,
}

impl Message {
    /// Returns a message that is only text.
    #[must_use]
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        let (parts, tool_calls) = (Vec::new(), Vec::new());
        let (content, attached, call_id) = (content.into(), None, None);
        let (summary, metadata, recalled_from, thread) = (None, None, None, None);
        Self { role, content, parts, tool_calls, attached, call_id, summary, metadata, recalled_from, thread }
    }

    /// Returns a message in ordered parts.
    #[must_use]
    pub fn of_parts(role: Role, parts: Vec<ContentPart>) -> Self {
        Self { parts: parts.clone(), ..Self::text(role, part::as_text(&parts)) }
    }

    /// Returns a tool's outcome for the call `call_id`.
    #[must_use]
    pub fn tool(call_id: CallId, content: impl Into<String>) -> Self {
        Self { call_id: Some(call_id), ..Self::text(Role::Tool, content) }
    }
}

/// A stored message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredMessage {
    /// 1-based, without gaps within the engagement.
    pub seq: i64,
    /// The turn that wrote it; 0 for messages recalled from earlier engagements.
    pub turn: i64,
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// When it was committed.
    pub created_at: Timestamp,
}

/// The reason why the model stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// `max_tokens` was reached.
    Length,
    /// It requests tool calls.
    ToolUse,
    /// The provider withheld the answer.
    ContentFilter,
}
