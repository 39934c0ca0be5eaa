//! Who is asked for a review: the person that a word of the document stands for, or a group of the configuration, and who is
//! asked when they stay silent.

use super::state::Turn;
use turnstone_domain::review::NewReview;

/// Whom a question asks when the document names nobody.
pub const OPERATOR: &str = "operator";

/// The question with those who are asked; `wait_ms` is how long they have, unless the configuration says otherwise.
pub fn assign(turn: &Turn, review: NewReview, word: &str, wait_ms: Option<i64>) -> NewReview {
    let plan = turn.deps.reviews.plan(word, wait_ms, &|word| person(turn, word));
    let (_, answer_by) = plan.begin(turn.deps.clock.now());
    let reviewer = plan.steps.first().map_or_else(|| person(turn, word), |step| step.name.clone());
    let deadline_at = match plan.steps.is_empty() {
        true => wait_ms.map(|ms| turn.deps.clock.now().plus_ms(ms)),
        false => answer_by,
    };
    NewReview { reviewer, deadline_at, plan, ..review }
}

/// Who is meant: `user` is the engagement's user, `owner` the agent's owner (OAS-A8).
fn person(turn: &Turn, word: &str) -> String {
    match word {
        "user" => turn.engagement.user.id.clone(),
        "owner" if !turn.agent.owner.is_empty() => turn.agent.owner.clone(),
        _ => word.to_owned(),
    }
}
