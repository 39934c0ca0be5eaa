//! `GET /engagements/{id}/messages?after=&limit=`: the conversation, oldest first.

use super::visible::{Visible, WITHHELD};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use turnstone_domain::CallId;
use turnstone_domain::message::{
    self, Attached, ContentPart, RequestedCall, Role, Source, StoredMessage, Summary,
};
use turnstone_ojs::OpenValue;
use utoipa::ToSchema;

/// A message of a conversation.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = EngagementMessage)]
pub struct Message {
    /// From 1.
    pub seq: i64,
    /// The turn; 0 for one of an earlier engagement.
    pub turn: i64,
    /// user, system, assistant or tool.
    #[schema(value_type = String)]
    pub role: OpenValue<Role>,
    /// The text; of a message with parts, all of them as text.
    pub content: String,
    /// The content in order, where it is more than one text: OSSA's text, image and file parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<Map<String, Value>>>)]
    parts: Vec<OpenValue<ContentPart>>,
    /// Of an assistant: the calls that it asks for: `call_id`, `name` and `arguments`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub tool_calls: Vec<RequestedCall>,
    /// Of an assistant: the members that only its provider understands, such as signatures and encrypted reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    attached: Option<OpenValue<Box<Attached>>>,
    /// Of a tool: the call that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    /// Of a summary: `until`, the first turn that it does not replace, `tokens_in` and `tokens_out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    summary: Option<Summary>,
    /// Of an input: where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<MessageMetadata>,
    /// Of a message recalled from an earlier engagement (its turn is 0): that engagement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalled_from: Option<String>,
    created_at: String,
}

/// Where an input came from.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct MessageMetadata {
    /// user, api or delegation.
    #[schema(value_type = String)]
    source: OpenValue<Source>,
    /// How it arrived, such as text/plain.
    original_format: String,
    normalized_at: String,
}

/// Messages, oldest first.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = EngagementMessages)]
pub struct Messages {
    /// The oldest first.
    pub messages: Vec<Message>,
    /// To be sent as `after` for the next page.
    pub cursor: i64,
    /// True if more follow.
    pub has_more: bool,
}

impl From<StoredMessage> for Message {
    fn from(stored: StoredMessage) -> Self {
        let message::Message {
            role,
            content,
            parts,
            tool_calls,
            attached,
            call_id,
            summary,
            metadata,
            recalled_from,
            ..
        } = stored.message;
        Self {
            seq: stored.seq,
            turn: stored.turn,
            role: role.into(),
            content,
            parts: parts.into_iter().map(OpenValue::from).collect(),
            tool_calls,
            attached: attached.map(OpenValue::from),
            call_id: call_id.map(|id| id.0),
            summary,
            metadata: metadata.map(|metadata| MessageMetadata {
                source: metadata.source.into(),
                original_format: metadata.original_format,
                normalized_at: metadata.normalized_at.to_rfc3339(),
            }),
            recalled_from: recalled_from.map(|id| id.0),
            created_at: stored.created_at.to_rfc3339(),
        }
    }
}

/// The conversation of an engagement, oldest message first.
#[utoipa::path(
    get, path = "/engagements/{id}/messages", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The engagement."),
        ("after" = Option<i64>, Query, description = "Only messages after this one, by `seq`.", minimum = 0),
        ("limit" = Option<u32>, Query, description = "100 unless said otherwise.", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The messages.", body = Messages)),
)]
pub(crate) async fn messages(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let (engagement, agent, _) = super::find(&app, &id, &tenant).await?;
    let after: i64 = params.number("after", 0, 0, i64::MAX)?;
    let limit: u32 = params.number("limit", 100, 1, 1000)?;
    let views = &app.api.store.views;
    let mut messages = views.messages(&engagement.id, after, limit + 1).await?;
    let has_more = messages.len() > limit as usize;
    messages.truncate(limit as usize);
    if messages.iter().any(|stored| stored.message.role == Role::Tool) {
        withhold(&mut messages, &views.withheld_calls(&engagement.id).await?);
    }
    let cursor = messages.last().map_or(after, |stored| stored.seq);
    let visible = Visible::of(&app, &engagement, &agent).await?;
    let is_input = |role: Role| role == Role::User && visible.has_inputs();
    messages.retain(|stored| visible.has(stored.turn) || is_input(stored.message.role));
    messages.iter_mut().for_each(|stored| visible.withhold(stored));
    // Messages between agents of a team are no part of the conversation with the user.
    messages.retain(|stored| stored.message.thread.is_none());
    let messages = messages.into_iter().map(Message::from).collect();
    Ok(reply::ok(&Messages { messages, cursor, has_more }))
}

/// Withholds outputs (OAS-24, OAS-35): the model has read them, and no one outside may.
fn withhold(messages: &mut [StoredMessage], calls: &[CallId]) {
    let withheld: HashSet<&CallId> = calls.iter().collect();
    for stored in messages {
        if stored.message.call_id.as_ref().is_some_and(|call| withheld.contains(call)) {
            stored.message.content = WITHHELD.to_owned();
        }
    }
}
