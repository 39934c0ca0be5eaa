//! The outcome of a review, without the reviewer's view.

use super::{Review, ReviewKind, ReviewState};
use crate::CallId;
use serde_json::Value;

/// The decision about a call; open while there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReviewAnswer {
    /// The call.
    pub call_id: CallId,
    /// The kind of the question.
    pub kind: ReviewKind,
    /// The digest of the arguments that the answer is for.
    pub arguments_hash: String,
    /// The state.
    pub state: ReviewState,
    /// The reviewer who answered.
    pub decided_by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The result of a call of unknown outcome, as the reviewer reported it.
    pub reported: Option<Value>,
}

impl From<Review> for ReviewAnswer {
    fn from(review: Review) -> Self {
        let Review { call_id, kind, arguments_hash, state, decided_by, reason, reported, .. } = review;
        Self { call_id, kind, arguments_hash, state, decided_by, reason, reported }
    }
}
