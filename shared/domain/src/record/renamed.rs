//! New ids for calls of a record, and for their files. An id names one call of a whole store. A fork's record contains calls of the
//! engagement that it comes from, which may be imported as well.

use super::EngagementRecord;
use crate::event::{Event, EventBody};
use crate::{CallId, EventName};
use serde_json::Value;
use std::collections::HashMap;

/// The new ids, by the old ones.
pub type NewIds = HashMap<String, String>;

impl EngagementRecord {
    /// Returns the first turn that it does not share with the engagement that it was forked from; 0 when it is no fork.
    #[must_use]
    pub fn shared_until(&self) -> i64 {
        let forked = self.events.iter().rev().find(|event| event.name == EventName::EngagementForked);
        match forked.and_then(Event::body) {
            Some(EventBody::EngagementForked(fork)) => fork.at_turn,
            _ => 0,
        }
    }

    /// Returns the calls of the turns that it shares.
    pub fn shared_calls(&self) -> impl Iterator<Item = &CallId> {
        let at = self.shared_until();
        self.calls.iter().filter(move |call| call.turn < at).map(|call| &call.call_id)
    }

    /// Gives calls other ids wherever they are named, so that it is run again as before.
    #[must_use]
    pub fn with_calls_renamed(mut self, new: &NewIds) -> Self {
        let call_id = |id: &mut CallId| {
            if let Some(new) = new.get(id.as_str()) {
                id.0.clone_from(new);
            }
        };
        for stored in &mut self.messages {
            stored.message.tool_calls.iter_mut().for_each(|call| call_id(&mut call.call_id));
            stored.message.call_id.iter_mut().for_each(call_id);
        }
        for call in &mut self.calls {
            call_id(&mut call.call_id);
            call.stub_of.iter_mut().for_each(call_id);
        }
        for review in &mut self.reviews {
            call_id(&mut review.call_id);
            texts(&mut review.question, new);
        }
        let mut new = new.clone();
        for artifact in &mut self.artifacts {
            if let Some(call) = new.get(artifact.file.call_id.as_str()) {
                let renamed = artifact.file.clone().of_call(&CallId(call.clone()));
                new.insert(artifact.file.id.0.clone(), renamed.id.0.clone());
                artifact.file = renamed;
            }
        }
        self.checkpoints.iter_mut().for_each(|done| texts(&mut done.body, &new));
        self.events.iter_mut().for_each(|event| texts(&mut event.data, &new));
        self
    }
}

/// Texts that are an old id and nothing else.
fn texts(value: &mut Value, new: &NewIds) {
    match value {
        Value::String(text) => {
            if let Some(new) = new.get(text.as_str()) {
                text.clone_from(new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, new)),
        Value::Object(fields) => fields.values_mut().for_each(|field| texts(field, new)),
        _ => {}
    }
}
