//! What came of a review, without what was shown to those who were asked.

use super::{Review, ReviewKind, ReviewState};
use crate::CallId;

/// What was decided about a call, or that nothing is decided yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReviewAnswer {
    /// The call.
    pub call_id: CallId,
    /// What was asked.
    pub kind: ReviewKind,
    /// The digest of the arguments that the answer is for.
    pub arguments_hash: String,
    /// Where it stands.
    pub state: ReviewState,
    /// Who answered.
    pub decided_by: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl From<Review> for ReviewAnswer {
    fn from(review: Review) -> Self {
        let Review { call_id, kind, arguments_hash, state, decided_by, reason, .. } = review;
        Self { call_id, kind, arguments_hash, state, decided_by, reason }
    }
}
