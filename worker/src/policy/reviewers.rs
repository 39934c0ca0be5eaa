//! The recipients of reviews: the person or group that the document names, and the next group after a
//! deadline.

use crate::state::Claimed;
use turnstone_domain::engagement::User;
use turnstone_domain::review::NewReview;

/// The recipient of a question when the document names none.
pub const OPERATOR: &str = "operator";

/// Returns the question with its reviewers, or `None` when there is no one to ask. `wait_ms` is the time to
/// answer, unless the configuration sets another.
pub fn assign(claimed: &Claimed, review: NewReview, word: &str, wait_ms: Option<i64>) -> Option<NewReview> {
    let plan = claimed.deps.reviews.plan(word, wait_ms, &|word| person(claimed, word))?;
    let (_, answer_by) = plan.begin(claimed.deps.clock.now());
    let reviewer = match plan.steps.first() {
        Some(step) => step.name.clone(),
        None => person(claimed, word)?,
    };
    let deadline_at = match plan.steps.is_empty() {
        true => wait_ms.map(|ms| claimed.deps.clock.now().plus_ms(ms)),
        false => answer_by,
    };
    Some(NewReview { reviewer, deadline_at, plan, ..review })
}

/// Returns the question with its reviewers, with the operators as the last resort.
pub fn assign_or_operator(
    claimed: &Claimed,
    review: NewReview,
    word: &str,
    wait_ms: Option<i64>,
) -> NewReview {
    let operators = NewReview { reviewer: OPERATOR.to_owned(), ..review.clone() };
    assign(claimed, review, word, wait_ms).unwrap_or(operators)
}

/// Returns true if the reviewer that the document names exists.
pub fn is_reviewer(claimed: &Claimed, word: &str) -> bool {
    claimed.is_reviewed_by_agent(word)
        || claimed.deps.reviews.plan(word, None, &|word| person(claimed, word)).is_some()
}

/// Returns the person behind a word of the document: `user` is the engagement's user, if its caller named
/// one, `owner` the agent's owner (OAS-A8).
fn person(claimed: &Claimed, word: &str) -> Option<String> {
    let id = match word {
        "user" => &claimed.engagement.user.id,
        "owner" if !claimed.agent.owner.is_empty() => &claimed.agent.owner,
        word => word,
    };
    User { id: id.to_owned(), email: None }.is_known().then(|| id.to_owned())
}
