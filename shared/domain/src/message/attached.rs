//! Members of a model's answer that only its provider understands: signatures, encrypted reasoning, ids of its own.
//!
//! They are kept with the answer and sent back to the provider and the model that made them. Another one gets the words and the
//! calls alone.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The most bytes of the members of one call, as JSON.
pub const MOST_OF_CALL: usize = 64 * 1024;
/// The most bytes of the members of an answer, as JSON.
pub const MOST_OF_ANSWER: usize = 256 * 1024;

/// The members of an answer, with what made it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Attached {
    /// The name of the provider in the configuration.
    pub provider: String,
    /// The provider's name for the model that was asked.
    pub model: String,
    /// The items of the answer, in its order.
    pub items: Vec<AttachedItem>,
}

/// The members of a text, of a call, or of something that is neither.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttachedItem {
    /// The next piece of the answer's text.
    Text {
        /// Its bytes.
        length: usize,
        /// The members beside the text.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        members: Map<String, Value>,
    },
    /// The next call of the answer.
    Call {
        /// The provider's id; empty if it has none.
        id: String,
        /// The members beside the id, the name and the arguments.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        members: Map<String, Value>,
    },
    /// An item that is not shown, such as reasoning: all of its members.
    Other {
        /// The members.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        members: Map<String, Value>,
    },
}

impl AttachedItem {
    /// Returns the members.
    #[must_use]
    pub fn members(&self) -> &Map<String, Value> {
        match self {
            Self::Text { members, .. } | Self::Call { members, .. } | Self::Other { members } => members,
        }
    }

    fn members_mut(&mut self) -> &mut Map<String, Value> {
        match self {
            Self::Text { members, .. } | Self::Call { members, .. } | Self::Other { members } => members,
        }
    }

    fn size(&self) -> usize {
        match self.members() {
            members if members.is_empty() => 0,
            members => serde_json::to_string(members).map_or(0, |json| json.len()),
        }
    }
}

impl Attached {
    /// Returns the bytes of the members, as JSON.
    #[must_use]
    pub fn size(&self) -> usize {
        self.items.iter().map(AttachedItem::size).sum()
    }

    /// Calls `change` with the members of every item.
    pub fn each_members(&mut self, change: &mut impl FnMut(&mut Map<String, Value>)) {
        self.items.iter_mut().for_each(|item| change(item.members_mut()));
    }

    /// Removes what is too large: the members of a large call, and all members of a large answer. Calls belong to the
    /// reasoning before them, so an answer keeps all of it or none. The ids of calls stay. Returns the bytes that were
    /// removed.
    pub fn limit(&mut self) -> usize {
        let before = self.size();
        for item in &mut self.items {
            if matches!(item, AttachedItem::Call { .. }) && item.size() > MOST_OF_CALL {
                item.members_mut().clear();
            }
        }
        if self.size() > MOST_OF_ANSWER {
            self.clear();
        }
        before - self.size()
    }

    /// Removes all members; the ids of calls stay.
    pub fn clear(&mut self) {
        self.each_members(&mut Map::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(bytes: usize) -> AttachedItem {
        let members = [("signature".to_owned(), json!("s".repeat(bytes)))].into_iter().collect();
        AttachedItem::Call { id: "c".to_owned(), members }
    }

    #[test]
    fn large_members_are_removed_and_ids_stay() {
        let of = |items| Attached { provider: "p".into(), model: "m".into(), items };
        let mut small = of(vec![call(60_000), call(60_000)]);
        assert_eq!((small.limit(), small.items.len()), (0, 2));
        let mut one_large = of(vec![call(10), call(70_000)]);
        assert_eq!(one_large.limit(), 70_000 + r#"{"signature":""}"#.len());
        assert!(!one_large.items[0].members().is_empty());
        assert_eq!(one_large.items[1], AttachedItem::Call { id: "c".into(), members: Map::new() });
        let reasoning = |bytes: usize| AttachedItem::Other { members: call(bytes).members().clone() };
        assert_eq!(of(vec![reasoning(200_000), call(10)]).limit(), 0);
        let mut without_reasoning = of(vec![reasoning(300_000), call(10)]);
        assert!(without_reasoning.limit() > 300_000);
        assert_eq!(without_reasoning.size(), 0);
        let mut large = of(vec![call(60_000); 5]);
        assert!(large.limit() > 300_000);
        assert!(large.items.iter().all(|item| item.members().is_empty()));
    }
}
