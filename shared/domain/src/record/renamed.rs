//! New ids for calls of a record, and for their files. An id names one call of a whole store. A fork's record contains calls of the
//! engagement that it comes from, which may be imported as well.

use super::EngagementRecord;
use crate::checkpoint::InitBody;
use crate::event::{Event, EventBody};
use crate::message::StoredMessage;
use crate::tool_call::ToolCall;
use crate::{CallId, Checkpoint, EventName, Ids};
use serde_json::Value;
use std::collections::HashMap;

/// The new ids, by the old ones.
pub type NewIds = HashMap<String, String>;

/// Adds a new id for a call. A note stays beside its call.
pub fn add_new_id(new: &mut NewIds, id: &CallId, ids: &dyn Ids) {
    let (call, note) = ToolCall::parted_id(id.as_str());
    let call = new.entry(call.to_owned()).or_insert_with(|| ids.next()).clone();
    if !note.is_empty() {
        new.insert(id.0.clone(), format!("{call}{note}"));
    }
}

/// Gives calls other ids wherever they are named. A call keeps the one whose outcome it reuses.
pub fn rename_calls(
    new: &NewIds,
    messages: &mut [StoredMessage],
    calls: &mut [ToolCall],
    checkpoints: &mut [Checkpoint],
) {
    for stored in messages {
        stored.message.tool_calls.iter_mut().for_each(|call| call_id(&mut call.call_id, new));
        stored.message.call_id.iter_mut().for_each(|id| call_id(id, new));
    }
    calls.iter_mut().for_each(|call| call_id(&mut call.call_id, new));
    checkpoints.iter_mut().for_each(|done| texts(&mut done.body, new));
}

fn call_id(id: &mut CallId, new: &NewIds) {
    if let Some(new) = new.get(id.as_str()) {
        id.0.clone_from(new);
    }
}

impl EngagementRecord {
    /// Returns the turn at which it was forked from another engagement; `None` when it is no fork.
    #[must_use]
    pub fn forked_at(&self) -> Option<i64> {
        let forked = self.events.iter().rev().find(|event| event.name == EventName::EngagementForked);
        match forked.and_then(Event::body) {
            Some(EventBody::EngagementForked(fork)) => Some(fork.at_turn),
            _ => None,
        }
    }

    /// Returns true if the job of another engagement began this turn.
    #[must_use]
    pub fn is_inherited(&self, turn: i64) -> bool {
        let mut of_turn = self.checkpoints.iter().filter(|done| done.turn == turn);
        let began = of_turn.find_map(Checkpoint::read::<InitBody>).and_then(|init| init.request_id);
        began.is_some_and(|job| job.shown() != self.job.id.shown())
    }

    /// Returns the first turn that it does not share with another engagement. A fork has phases of this turn from its
    /// origin.
    #[must_use]
    pub fn shared_until(&self) -> i64 {
        let own = (1..).find(|turn| !self.is_inherited(*turn)).unwrap_or(1);
        self.forked_at().map_or(own, |at| own.min(at))
    }

    /// Returns the calls of the turns that it shares.
    pub fn shared_calls(&self) -> impl Iterator<Item = &CallId> {
        let at = self.shared_until();
        self.calls.iter().filter(move |call| call.turn < at).map(|call| &call.call_id)
    }

    /// Gives calls other ids wherever they are named, so that it is run again as before.
    #[must_use]
    pub fn with_calls_renamed(mut self, new: &NewIds) -> Self {
        self.calls.iter_mut().filter_map(|call| call.stub_of.as_mut()).for_each(|id| call_id(id, new));
        for review in &mut self.reviews {
            call_id(&mut review.call_id, new);
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
        rename_calls(&new, &mut self.messages, &mut self.calls, &mut self.checkpoints);
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
