//! Reviews: a question to a user or an agent about a parked job (OAS-30 … OAS-32).

mod answer;
mod duties;
mod plan;
mod rules;
mod verdict;

pub use answer::ReviewAnswer;
pub use duties::SeparateDuties;
pub use plan::{ReviewPlan, ReviewStep, Tally, Vote};
pub use rules::{ReviewGroup, ReviewRules};
pub use verdict::{Verdict, call_of_review, is_call_of_review};

use crate::{CallId, EngagementId, JobId, ReviewId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The subject of the question, which determines the effect of both answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewKind {
    /// `input_restriction.require_review`: may the tool be called? Rejection ends the engagement (OAS-32).
    Input,
    /// `output_restriction.require_review`: may the result be used? Rejection ends the engagement.
    Output,
    /// A worker died after sending a call that is not idempotent. Approval repeats the call once; rejection reports an
    /// unknown outcome to the model. An approval with a result ends the call with that result.
    UnknownOutcome,
    /// An error that the agent's document hands to a person. The question says how approval continues; rejection ends
    /// the job with the error.
    Escalation,
    /// `turn_chain.confirm_between_turns` of an agent that may not ask its user: may the next turn begin? Rejection ends
    /// the engagement.
    Confirmation,
}

impl ReviewKind {
    /// Returns the kind as on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::UnknownOutcome => "unknown_outcome",
            Self::Escalation => "escalation",
            Self::Confirmation => "confirmation",
        }
    }

    /// Reads a kind; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Input, Self::Output, Self::UnknownOutcome, Self::Escalation, Self::Confirmation]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// The state of a review.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewState {
    /// Waits for an answer.
    Open,
    /// The reviewer approved.
    Approved,
    /// The reviewer rejected.
    Rejected,
    /// The deadline passed; counts as rejected.
    Expired,
}

impl ReviewState {
    /// Returns the state as on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    /// Reads a state; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Approved, Self::Rejected, Self::Expired]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// Returns the tool that a question is about.
#[must_use]
pub fn tool_of(question: &Value) -> Option<String> {
    question.get("name").and_then(Value::as_str).map(str::to_owned)
}

/// A review to be opened.
#[derive(Clone, PartialEq, Debug)]
pub struct NewReview {
    /// Its id.
    pub id: ReviewId,
    /// The turn that asks.
    pub turn: i64,
    /// The tool call it is about.
    pub call_id: CallId,
    /// The kind of the question.
    pub kind: ReviewKind,
    /// The reviewer: a user or an agent (OAS-30).
    pub reviewer: String,
    /// The reviewer's view: the tool, its arguments and the Engagement object as the assertion would see it.
    pub question: Value,
    /// SHA-256 of the arguments: an approval is for these arguments and no others.
    pub arguments_hash: String,
    /// The deadline, after which it is escalated or counts as rejected; `None` waits for ever.
    pub deadline_at: Option<Timestamp>,
    /// The steps: reviewers, and those they are escalated to.
    pub plan: ReviewPlan,
    /// The engagement in which an agent reviews; `None` for persons.
    pub asked: Option<EngagementId>,
}

/// A review as stored.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Review {
    /// Its id.
    pub id: ReviewId,
    /// The engagement it is about.
    pub engagement_id: EngagementId,
    /// The parked job.
    pub job_id: JobId,
    /// The turn that asks.
    pub turn: i64,
    /// The tool call it is about.
    pub call_id: CallId,
    /// The kind of the question.
    pub kind: ReviewKind,
    /// The reviewer.
    pub reviewer: String,
    /// The reviewer's view.
    pub question: Value,
    /// SHA-256 of the arguments.
    pub arguments_hash: String,
    /// The state.
    pub state: ReviewState,
    /// The reviewer who answered.
    pub decided_by: Option<String>,
    /// Why, in the reviewer's words.
    pub reason: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// The deadline, after which it is escalated or counts as rejected.
    pub deadline_at: Option<Timestamp>,
    /// When it was answered.
    pub decided_at: Option<Timestamp>,
    /// The steps: reviewers, and those they are escalated to.
    #[serde(default)]
    pub plan: ReviewPlan,
    /// The current step of the plan, from 0.
    #[serde(default)]
    pub step: usize,
    /// The votes, where there are several reviewers.
    #[serde(default)]
    pub votes: Vec<Vote>,
    /// When they are reminded next.
    #[serde(default)]
    pub remind_at: Option<Timestamp>,
    /// How often they were reminded.
    #[serde(default)]
    pub reminders: i64,
    /// The engagement in which an agent reviews; `None` for persons.
    #[serde(default, rename = "asked_engagement_id")]
    pub asked: Option<EngagementId>,
    /// True if its rejection no longer counts: an operator retried the job, and a new review is opened.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spent: bool,
    /// The result of a call of unknown outcome, as its reviewer reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Value>,
}

/// The member of a question whose rejection does not end the job; then it is `true`.
pub const REJECTION_CONTINUES: &str = "rejection_continues";

impl Review {
    /// Returns true if a rejection ends the job.
    #[must_use]
    pub fn ends_if_rejected(&self) -> bool {
        self.kind != ReviewKind::UnknownOutcome && self.question[REJECTION_CONTINUES] != true
    }
}

/// Returns true if a job that waits for these reviews may continue. They are those of one turn, oldest first. Each has an
/// answer, or a rejection that ends the job precedes all open ones.
#[must_use]
pub fn is_answered(reviews: &[Review]) -> bool {
    let is_open = |review: &Review| review.state == ReviewState::Open && review.asked.is_none();
    let is_end = |review: &Review| {
        matches!(review.state, ReviewState::Rejected | ReviewState::Expired) && review.ends_if_rejected()
    };
    let first = |is_it: &dyn Fn(&Review) -> bool| reviews.iter().position(is_it);
    first(&is_open).is_none_or(|open| first(&is_end).is_some_and(|end| end < open))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a review by ann.
    pub(super) fn review() -> Review {
        Review {
            id: ReviewId("r".into()),
            engagement_id: "e".into(),
            job_id: JobId("j".into()),
            turn: 1,
            call_id: CallId("c".into()),
            kind: ReviewKind::Input,
            reviewer: "ann".into(),
            question: Value::Null,
            arguments_hash: "h".into(),
            state: ReviewState::Open,
            decided_by: None,
            reason: None,
            created_at: Timestamp(0),
            deadline_at: None,
            decided_at: None,
            plan: ReviewPlan::default(),
            step: 0,
            votes: Vec::new(),
            remind_at: None,
            reminders: 0,
            asked: None,
            spent: false,
            reported: None,
        }
    }

    #[test]
    fn a_job_continues_when_its_reviews_are_answered() {
        let of = |states: &[ReviewState], kind| {
            let of = |state: &ReviewState| Review { state: *state, kind, ..review() };
            is_answered(&states.iter().map(of).collect::<Vec<_>>())
        };
        use ReviewState::{Approved, Expired, Open, Rejected};
        assert!(of(&[Approved, Approved], ReviewKind::Input) && of(&[], ReviewKind::Input));
        assert!(!of(&[Approved, Open], ReviewKind::Input) && !of(&[Open, Rejected], ReviewKind::Input));
        assert!(
            of(&[Rejected, Open], ReviewKind::Input) && of(&[Approved, Expired, Open], ReviewKind::Input)
        );
        assert!(!of(&[Rejected, Open], ReviewKind::UnknownOutcome));
    }

    /// Reviews that were exported before there were groups are read.
    #[test]
    fn an_older_review_is_read() {
        let mut old = serde_json::to_value(review()).unwrap();
        for field in ["plan", "step", "votes", "remind_at", "reminders", "asked_engagement_id"] {
            assert!(old.as_object_mut().unwrap().remove(field).is_some(), "{field}");
        }
        assert_eq!(serde_json::from_value::<Review>(old).unwrap(), review());
    }
}
