//! An answer while it arrives, in the form that all APIs share.

use super::value::arguments;
use super::{WireNames, members, unicode};
use crate::model::{AskedCall, FinishReason, ModelAnswer, Usage};
use crate::tool::outbound::excerpt;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use turnstone_domain::message::{Attached, AttachedItem};

/// The most items of one answer; an answer with more is refused as malformed.
const MOST_ITEMS: usize = 256;

/// The most characters of an incomplete answer in an error.
const SHOWN: usize = 300;

/// The part of an answer that has arrived.
#[derive(Debug, Default)]
pub struct PartialAnswer {
    /// True if the answer has begun.
    pub has_begun: bool,
    /// The items by their place in the answer.
    items: BTreeMap<u64, Item>,
    /// The reason why the model stopped. Then the answer is complete; only its usage may still follow.
    pub ended: Option<FinishReason>,
    /// True if the model paused, and continues when it is asked with what it said so far.
    pub is_paused: bool,
    /// True if halves of characters came as marks.
    pub has_halves: bool,
    /// True if no event follows.
    pub is_over: bool,
    /// The usage.
    pub usage: Option<Usage>,
    /// The token counts of a provider that sends them one by one, under the provider's names.
    pub counts: Map<String, Value>,
    model: Option<String>,
    response_id: Option<String>,
}

/// A text, a call, or an item that is not shown, such as reasoning.
#[derive(Debug, Default)]
pub struct Item {
    /// True if it is a call.
    pub is_call: bool,
    /// The provider's id of a call.
    pub id: String,
    /// The provider's index of a call, if the order of the calls is another.
    pub index: Option<u64>,
    /// The provider's name of the called tool.
    pub name: String,
    /// The arguments of the call.
    pub arguments: String,
    /// The text.
    pub text: String,
    /// The reason why the model refuses to answer.
    pub refusal: String,
    /// The members that only the provider understands.
    members: Map<String, Value>,
    /// About the bytes of these members.
    members_held: usize,
}

impl Item {
    /// Returns an empty item.
    pub fn new(is_call: bool) -> Self {
        Self { is_call, ..Self::default() }
    }

    /// Returns the bytes that it holds.
    pub fn held(&self) -> usize {
        let texts = [&self.id, &self.name, &self.arguments, &self.text, &self.refusal];
        texts.map(String::len).iter().sum::<usize>() + self.members_held
    }

    /// Adds members, which may be pieces.
    pub fn add_members(&mut self, members: Map<String, Value>) {
        if !members.is_empty() {
            self.members_held += serde_json::to_string(&members).map_or(0, |json| json.len());
            members::merge_members(&mut self.members, members);
        }
    }

    /// Adds the members of another item.
    pub fn take_members(&mut self, other: Self) {
        self.add_members(other.members);
    }

    /// Replaces a member of an item.
    pub fn set_member(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }

    /// Returns its members for the answer; `None` for an item that adds nothing to the answer.
    fn attached(&mut self) -> Option<AttachedItem> {
        let members = std::mem::take(&mut self.members);
        match (self.is_call, self.text.len()) {
            (true, _) => Some(AttachedItem::Call { id: std::mem::take(&mut self.id), members }),
            (false, 0) => (!members.is_empty()).then_some(AttachedItem::Other { members }),
            (false, length) => Some(AttachedItem::Text { length, members }),
        }
    }

    /// Changes every text that is shown or stored.
    fn each_text(&mut self, change: &mut impl FnMut(&mut String)) {
        [&mut self.id, &mut self.name, &mut self.arguments, &mut self.text, &mut self.refusal]
            .into_iter()
            .for_each(&mut *change);
        self.members.values_mut().for_each(|value| unicode::each_text(value, change));
    }

    /// Adds arguments: a piece of their text, or all of them as a value.
    pub fn add_arguments(&mut self, said: &Value) {
        match said {
            Value::String(text) => self.arguments.push_str(text),
            Value::Null => {}
            whole => self.arguments = whole.to_string(),
        }
    }
}

impl PartialAnswer {
    /// Takes the model that answers and the provider's id of the answer, if this part has them.
    pub fn take_origin(&mut self, said: &Value) {
        let text = |name: &str| said[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.model = text("model").or(self.model.take());
        self.response_id = text("id").or(self.response_id.take());
    }

    /// Returns the item at a place, which is a new one if nothing is there.
    ///
    /// # Errors
    /// A sentence: the answer has too many items.
    pub fn item(&mut self, place: u64) -> Result<&mut Item, String> {
        if self.items.len() >= MOST_ITEMS && !self.items.contains_key(&place) {
            return Err(too_many());
        }
        Ok(self.items.entry(place).or_default())
    }

    /// Replaces all items.
    ///
    /// # Errors
    /// A sentence: these are too many.
    pub fn set_items(&mut self, items: impl ExactSizeIterator<Item = Item>) -> Result<(), String> {
        if items.len() > MOST_ITEMS {
            return Err(too_many());
        }
        self.items = (0..).zip(items).collect();
        Ok(())
    }

    /// Returns the calls with their places, in order.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = (u64, &Item)> {
        self.items.iter().filter(|(_, item)| item.is_call).map(|(place, item)| (*place, item))
    }

    /// Returns the bytes that it holds.
    pub(super) fn held(&self) -> usize {
        self.items.values().map(Item::held).sum()
    }

    /// Returns a sentence about an answer that is not complete, with the beginning of what it said.
    pub(super) fn incomplete(&self, problem: &str) -> String {
        let said: String = self.items.values().map(|item| item.text.as_str()).collect();
        match said.is_empty() {
            true => problem.to_owned(),
            false => format!("{problem}; until then it said: {}", excerpt(&said, SHOWN)),
        }
    }

    /// Returns the whole answer of a provider; `asked_model` is its model if the provider names none.
    ///
    /// # Errors
    /// A sentence that says why it is none.
    pub fn finish(self, names: &WireNames, provider: &str, asked_model: &str) -> Result<ModelAnswer, String> {
        if !self.has_begun {
            return Err("the answer holds no message".to_owned());
        }
        let (mut content, mut refusal, mut tool_calls) = (String::new(), String::new(), Vec::new());
        let mut items = Vec::new();
        for mut item in self.items.into_values() {
            item.each_text(&mut |text| {
                if self.has_halves {
                    unicode::join(text);
                }
                unicode::without_nul(text);
            });
            items.extend(item.attached());
            content.push_str(&item.text);
            refusal.push_str(&item.refusal);
            if item.is_call && item.name.is_empty() {
                return Err("the answer asks for a tool without naming it".to_owned());
            }
            if item.is_call {
                let arguments = arguments(item.arguments);
                tool_calls.push(AskedCall { name: names.own(&item.name), arguments });
            }
        }
        let is_refused = content.is_empty() && tool_calls.is_empty() && !refusal.is_empty();
        let finish_reason = match self.ended {
            Some(FinishReason::ContentFilter) => FinishReason::ContentFilter,
            _ if is_refused => FinishReason::ContentFilter,
            Some(FinishReason::Length) => FinishReason::Length,
            // Several servers send another reason after tool calls.
            _ if !tool_calls.is_empty() => FinishReason::ToolUse,
            _ => FinishReason::Stop,
        };
        let content = if is_refused { refusal } else { content };
        let has_any = |item: &AttachedItem| match item {
            AttachedItem::Call { id, members } => !id.is_empty() || !members.is_empty(),
            other => !other.members().is_empty(),
        };
        let attached = (!is_refused && items.iter().any(has_any)).then(|| {
            let (provider, model) = (provider.to_owned(), asked_model.to_owned());
            Box::new(Attached { provider, model, items })
        });
        Ok(ModelAnswer {
            content: (!content.is_empty()).then_some(content),
            tool_calls,
            finish_reason,
            usage: self.usage,
            model: self.model.unwrap_or_else(|| asked_model.to_owned()),
            response_id: self.response_id,
            attached,
            parts: 1,
        })
    }
}

fn too_many() -> String {
    format!("the answer has more than {MOST_ITEMS} items")
}
