//! Who is asked for a review: the person that a word of the document stands for, or a group of the configuration, and who is
//! asked when they stay silent.

use super::state::Turn;
use turnstone_domain::engagement::User;
use turnstone_domain::review::NewReview;

/// Whom a question asks when the document names nobody.
pub const OPERATOR: &str = "operator";

/// The question with those who are asked, or `None` when there is nobody to ask; `wait_ms` is how long they have, unless the
/// configuration says otherwise.
pub fn assign(turn: &Turn, review: NewReview, word: &str, wait_ms: Option<i64>) -> Option<NewReview> {
    let plan = turn.deps.reviews.plan(word, wait_ms, &|word| person(turn, word))?;
    let (_, answer_by) = plan.begin(turn.deps.clock.now());
    let reviewer = match plan.steps.first() {
        Some(step) => step.name.clone(),
        None => person(turn, word)?,
    };
    let deadline_at = match plan.steps.is_empty() {
        true => wait_ms.map(|ms| turn.deps.clock.now().plus_ms(ms)),
        false => answer_by,
    };
    Some(NewReview { reviewer, deadline_at, plan, ..review })
}

/// The same where nobody else can be asked: the operators are.
pub fn assign_somebody(turn: &Turn, review: NewReview, word: &str, wait_ms: Option<i64>) -> NewReview {
    let operators = NewReview { reviewer: OPERATOR.to_owned(), ..review.clone() };
    assign(turn, review, word, wait_ms).unwrap_or(operators)
}

/// Whether there is somebody to ask where the document names this reviewer.
pub fn is_somebody(turn: &Turn, word: &str) -> bool {
    turn.is_reviewed_by_agent(word)
        || turn.deps.reviews.plan(word, None, &|word| person(turn, word)).is_some()
}

/// Who is meant: `user` is the engagement's user, if its caller said who that is, `owner` the agent's owner (OAS-A8).
fn person(turn: &Turn, word: &str) -> Option<String> {
    let id = match word {
        "user" => &turn.engagement.user.id,
        "owner" if !turn.agent.owner.is_empty() => &turn.agent.owner,
        word => word,
    };
    User { id: id.to_owned(), email: None }.is_known().then(|| id.to_owned())
}
