//! Pictures of tools: models that take pictures receive them with the outcomes that name them.
//!
//! The conversation keeps only the names of the files. The bytes are read for each model call and are no part
//! of the record, so a fork or a rerun needs none of them.

use super::request::bound;
use super::turn_limit;
use crate::model::{Model, ModelRequest};
use crate::phases::norm::{IMAGE_TYPES, MOST_IMAGE_CHARS};
use crate::state::{Claimed, Outbox, Stop, TurnHistory};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::borrow::Cow;
use std::sync::Arc;
use turnstone_domain::message::{ContentPart, ImageKind, ImageSource, Message, Role};

/// The most pictures of tools in one request; the newest are sent.
const MOST: usize = 8;

/// Returns true if an outcome names a file, and one of the agent's models takes pictures.
pub fn may_be_shown(claimed: &Claimed, request: &ModelRequest) -> bool {
    let of_tool =
        |message: &Arc<Message>| message.role == Role::Tool && message.content.contains("artifact_id");
    if !request.messages.iter().any(of_tool) {
        return false;
    }
    let providers = &claimed.deps.providers;
    let default = providers.default_model_at(claimed.agent.model.provider.as_deref());
    let models = &claimed.agent.model.models;
    let requested = default.iter().filter(|_| models.is_empty()).chain(models);
    requested.filter_map(|wanted| providers.resolve(wanted)).any(|(_, model)| model.takes_pictures())
}

/// Adds the newest pictures to the outcomes that name them, as long as the budget leaves room for the longest
/// answer.
///
/// # Errors
/// [`Stop::Store`].
pub async fn attach(past: &TurnHistory, outbox: &Outbox, request: &mut ModelRequest) -> Result<(), Stop> {
    let kept = outbox.claimed.deps.ledger.reads().artifacts_of(&outbox.claimed.engagement.id).await?;
    let is_picture = |media_type: &str| IMAGE_TYPES.contains(&media_type);
    let mut pictures: Vec<_> = kept.iter().filter(|artifact| is_picture(&artifact.media_type)).collect();
    pictures.reverse();
    let mut shown = 0;
    for artifact in pictures {
        // An outcome that was denied or is under review does not name its files.
        let names = |message: &&mut Arc<Message>| {
            message.role == Role::Tool
                && message.call_id.as_ref() == Some(&artifact.call_id)
                && message.content.contains(artifact.id.as_str())
        };
        let Some(message) = request.messages.iter_mut().find(names) else { continue };
        let message = Arc::make_mut(message);
        let Some(bytes) = outbox.claimed.deps.ledger.reads().artifact_bytes(&artifact.id).await? else {
            continue;
        };
        let data = BASE64_STANDARD.encode(bytes);
        if data.len() > MOST_IMAGE_CHARS {
            continue;
        }
        let source = ImageSource { kind: ImageKind::Base64, media_type: artifact.media_type.clone(), data };
        if message.parts.is_empty() {
            message.parts.push(ContentPart::Text { text: message.content.clone() });
        }
        // The loop begins with the newest picture, so inserting after the text restores their order.
        message.parts.insert(1, ContentPart::Image { source });
        let (call_id, most) = (message.call_id.clone(), request.max_tokens);
        if turn_limit::left(past, outbox).is_some_and(|left| bound(request).saturating_add(most) > left) {
            let message = request.messages.iter_mut().find(|message| message.call_id == call_id);
            let Some(message) = message.map(Arc::make_mut) else { break };
            message.parts.remove(1);
            if message.parts.len() == 1 {
                message.parts.clear();
            }
            break;
        }
        shown += 1;
        if shown == MOST {
            break;
        }
    }
    Ok(())
}

/// Returns the request in the form that a model takes: without pictures, if it takes none.
pub fn for_model<'r>(request: &'r ModelRequest, model: &dyn Model) -> Cow<'r, ModelRequest> {
    let shows = |message: &Arc<Message>| message.role == Role::Tool && !message.parts.is_empty();
    if model.takes_pictures() || !request.messages.iter().any(shows) {
        return Cow::Borrowed(request);
    }
    let mut request = request.clone();
    let showing = request.messages.iter_mut().filter(|message| shows(message));
    showing.for_each(|message| Arc::make_mut(message).parts.clear());
    Cow::Owned(request)
}
