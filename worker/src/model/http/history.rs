//! The conversation as its provider gets it back: words and calls, with the members that the same provider and model attached
//! to them.

use crate::model::ModelRequest;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use turnstone_domain::CallId;
use turnstone_domain::message::{Attached, AttachedItem, Message, RequestedCall};

/// The longest id of a provider that is sent back.
const LONGEST_ID: usize = 256;

/// A part of an assistant's message, in order.
pub enum AnswerPart<'a> {
    /// A text.
    Text(&'a str, &'a Map<String, Value>),
    /// A call.
    Call(&'a RequestedCall, &'a Map<String, Value>),
    /// An item of the provider's own.
    Other(&'a Map<String, Value>),
}

/// The knowledge of a provider and a model about a conversation.
pub struct History<'a> {
    provider: &'a str,
    model: &'a str,
    /// Their ids of calls, by ours.
    ids: HashMap<&'a str, &'a str>,
}

impl<'a> History<'a> {
    /// Returns what the provider knows of the conversation of `request`.
    pub fn of(request: &'a ModelRequest, provider: &'a str) -> Self {
        Self::of_messages(&request.messages, provider, &request.model)
    }

    fn of_messages(messages: &'a [Arc<Message>], provider: &'a str, model: &'a str) -> Self {
        let mut history = Self { provider, model, ids: HashMap::new() };
        let mut seen = HashSet::new();
        for message in messages {
            let Some(attached) = history.attached(message) else { continue };
            let ids = attached.items.iter().filter_map(|item| match item {
                AttachedItem::Call { id, .. } => Some(id.as_str()),
                _ => None,
            });
            for (call, id) in message.tool_calls.iter().zip(ids) {
                // Some servers give each answer's calls the same ids, by which outcomes cannot be distinguished.
                if !id.is_empty() && id.len() <= LONGEST_ID && seen.insert(id) {
                    history.ids.insert(call.call_id.as_str(), id);
                }
            }
        }
        history
    }

    /// Returns the id of a call: the one that the provider gave it, or ours.
    pub fn id_of<'b>(&self, call: &'b CallId) -> &'b str
    where
        'a: 'b,
    {
        self.ids.get(call.as_str()).copied().unwrap_or(call.as_str())
    }

    /// Returns the members of a message, if this provider and model attached them.
    pub fn attached<'b>(&self, message: &'b Message) -> Option<&'b Attached> {
        let attached = message.attached.as_deref()?;
        (attached.provider == self.provider && attached.model == self.model).then_some(attached)
    }

    /// Returns the parts of an assistant's message, in order.
    pub fn parts<'b>(&self, message: &'b Message) -> Vec<AnswerPart<'b>> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        let items = self.attached(message).map(|attached| attached.items.as_slice()).unwrap_or_default();
        let lengths = items.iter().map(|item| match item {
            AttachedItem::Text { length, .. } => *length,
            _ => 0,
        });
        // A text that was changed since, for example redacted, is one part, and what belonged to it is gone.
        let is_changed = lengths.sum::<usize>() != message.content.len();
        let (mut text, mut calls, mut parts) =
            (message.content.as_str(), message.tool_calls.iter(), Vec::new());
        for item in items {
            match item {
                // Members that were not kept.
                AttachedItem::Other { members } if members.is_empty() => {}
                AttachedItem::Other { members } => parts.push(AnswerPart::Other(members)),
                AttachedItem::Call { members, .. } => {
                    parts.extend(calls.next().map(|call| AnswerPart::Call(call, members)));
                }
                AttachedItem::Text { length, members } => match text.split_at_checked(*length) {
                    Some((piece, rest)) if !is_changed => {
                        parts.push(AnswerPart::Text(piece, members));
                        text = rest;
                    }
                    _ if text.is_empty() => {}
                    _ => parts.push(AnswerPart::Text(std::mem::take(&mut text), &NONE)),
                },
            }
        }
        if !text.is_empty() {
            let before_calls = parts.iter().position(|part| matches!(part, AnswerPart::Call(..)));
            parts.insert(before_calls.unwrap_or(parts.len()), AnswerPart::Text(text, &NONE));
        }
        parts.extend(calls.map(|call| AnswerPart::Call(call, &NONE)));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::message::Role;

    fn members(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn message() -> Message {
        let call = |id: &str| RequestedCall { call_id: id.into(), name: "t".into(), arguments: json!({}) };
        let items = vec![
            AttachedItem::Other { members: members(json!({"type": "thinking"})) },
            AttachedItem::Text { length: 4, members: Map::new() },
            AttachedItem::Call { id: "x1".into(), members: members(json!({"s": 1})) },
            AttachedItem::Text { length: 3, members: members(json!({"c": 1})) },
            AttachedItem::Call { id: "x1".into(), members: Map::new() },
        ];
        let attached = Attached { provider: "p".into(), model: "m".into(), items };
        Message {
            tool_calls: vec![call("our1"), call("our2")],
            attached: Some(Box::new(attached)),
            ..Message::text(Role::Assistant, "one two")
        }
    }

    fn shown(message: &Message, provider: &str, model: &str) -> Vec<String> {
        let messages = [Arc::new(message.clone())];
        let history = History::of_messages(&messages, provider, model);
        let part = |part: &AnswerPart<'_>| match part {
            AnswerPart::Text(text, members) => format!("{text:?} {}", members.len()),
            AnswerPart::Call(call, members) => format!("{} {}", history.id_of(&call.call_id), members.len()),
            AnswerPart::Other(members) => format!("other {}", members.len()),
        };
        history.parts(&messages[0]).iter().map(part).collect()
    }

    #[test]
    fn only_its_maker_gets_members_back_and_the_rest_is_whole() {
        let mut message = message();
        // The second id repeats the first one, so ours is sent.
        assert_eq!(shown(&message, "p", "m"), ["other 1", "\"one \" 0", "x1 1", "\"two\" 1", "our2 0"]);
        let clean = ["\"one two\" 0", "our1 0", "our2 0"];
        assert_eq!(shown(&message, "p", "other"), clean);
        assert_eq!(shown(&message, "other", "m"), clean);
        "[redacted]".clone_into(&mut message.content);
        assert_eq!(shown(&message, "p", "m"), ["other 1", "\"[redacted]\" 0", "x1 1", "our2 0"]);
        message.attached.as_mut().unwrap().clear();
        assert_eq!(shown(&message, "p", "m"), ["\"[redacted]\" 0", "x1 0", "our2 0"]);
        let mut message = self::message();
        "[redacted]".clone_into(&mut message.content);
        message.attached.as_mut().unwrap().items.truncate(1);
        assert_eq!(shown(&message, "p", "m"), ["other 1", "\"[redacted]\" 0", "our1 0", "our2 0"]);
    }
}
