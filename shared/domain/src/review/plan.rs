//! The plan of a review: reviewers, quorum, and escalation when they do not answer (OAS-30 … OAS-32).

use super::{Review, ReviewKind, ReviewState};
use crate::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The steps of a review, in order. Empty: the one reviewer, until the deadline.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReviewPlan {
    /// The first step begins at once, each other one when the step before it was not answered in time.
    pub steps: Vec<ReviewStep>,
}

/// The reviewers of one step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReviewStep {
    /// The name of the step: a group of the configuration, or the one user.
    pub name: String,
    /// The reviewers; each has one vote.
    pub members: Vec<String>,
    /// The number of approvals that is needed.
    pub quorum: usize,
    /// The interval of reminders, in milliseconds; `None` sends none.
    pub remind_every_ms: Option<i64>,
    /// The time to answer, in milliseconds, before the review is escalated or counts as rejected; `None` waits for
    /// ever.
    pub answer_within_ms: Option<i64>,
}

impl ReviewStep {
    /// Returns true if there are enough reviewers for the quorum.
    pub(super) fn can_agree(&self) -> bool {
        self.quorum <= self.members.len()
    }
}

/// One reviewer's answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Vote {
    /// The reviewer.
    pub by: String,
    /// The principal of the request, when it can be distinguished from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Yes or no.
    pub approve: bool,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The step of the plan in which the vote was given. Votes of earlier steps no longer count.
    pub step: usize,
    /// The result of a call of unknown outcome, as the reviewer reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Value>,
}

/// The votes of the current step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    /// The number of approvals that is needed.
    pub needed: usize,
    /// The number of reviewers.
    pub of: usize,
    /// The number of approvals.
    pub approvals: usize,
    /// The number of rejections.
    pub rejections: usize,
}

impl Tally {
    /// Returns the result: approved with enough approvals, rejected as soon as the open votes cannot reach the quorum.
    #[must_use]
    pub fn outcome(self) -> Option<ReviewState> {
        if self.approvals >= self.needed {
            Some(ReviewState::Approved)
        } else if self.of.saturating_sub(self.rejections) < self.needed {
            Some(ReviewState::Rejected)
        } else {
            None
        }
    }
}

impl ReviewPlan {
    /// Returns true for one reviewer without a group. Other users may answer in the reviewer's place where the kind
    /// allows it.
    fn is_plain(&self) -> bool {
        matches!(self.steps.as_slice(), [] | [ReviewStep { quorum: 1, .. }])
            && self.steps.iter().all(|step| matches!(step.members.as_slice(), [only] if *only == step.name))
    }

    /// Returns the first reminder and the deadline of the first step, if it has them.
    #[must_use]
    pub fn begin(&self, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        let Some(first) = self.steps.first() else { return (None, None) };
        (first.remind_every_ms.map(|ms| now.plus_ms(ms)), first.answer_within_ms.map(|ms| now.plus_ms(ms)))
    }
}

impl Review {
    /// Returns the reviewers of the current step.
    #[must_use]
    pub fn members(&self) -> &[String] {
        match self.plan.steps.get(self.step) {
            Some(step) => &step.members,
            None => std::slice::from_ref(&self.reviewer),
        }
    }

    /// Returns the votes of the current step.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let cast = |approve| {
            self.votes.iter().filter(|vote| vote.step == self.step && vote.approve == approve).count()
        };
        Tally {
            needed: self.plan.steps.get(self.step).map_or(1, |step| step.quorum),
            of: self.members().len(),
            approvals: cast(true),
            rejections: cast(false),
        }
    }

    /// Returns the reviewers who have not voted.
    #[must_use]
    pub fn missing(&self) -> Vec<&str> {
        let voted = |name: &str| self.votes.iter().any(|vote| vote.step == self.step && vote.by == name);
        self.members().iter().map(String::as_str).filter(|name| !voted(name)).collect()
    }

    /// Returns true if this user may answer. Calls, their results and questions to groups are answered by their
    /// reviewers only (OAS-32). Other reviews any user may answer. A review by an agent is answered by that agent only.
    #[must_use]
    pub fn may_answer(&self, by: &str) -> bool {
        if self.asked.is_some() {
            return false;
        }
        let free = !matches!(self.kind, ReviewKind::Input | ReviewKind::Output) && self.plan.is_plain();
        free || self.members().iter().any(|member| member == by)
    }

    /// Returns true if this user's late answer may be recorded: the user may answer now, or was a reviewer of an
    /// earlier step.
    #[must_use]
    pub fn was_asked(&self, by: &str) -> bool {
        let before = self.plan.steps.iter().take(self.step);
        let requested = before.flat_map(|step| &step.members).any(|member| member == by);
        self.may_answer(by) || (self.asked.is_none() && requested)
    }

    /// Returns true if the deadline of the current step has passed.
    #[must_use]
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.state == ReviewState::Open && self.deadline_at.is_some_and(|deadline| deadline <= now)
    }

    /// Returns the step after the current one.
    #[must_use]
    pub fn next_step(&self) -> Option<&ReviewStep> {
        self.plan.steps.get(self.step + 1)
    }

    /// Returns the review with the next step begun; `None` when there is none.
    #[must_use]
    pub fn escalated(&self, now: Timestamp) -> Option<Self> {
        let next = self.next_step()?.clone();
        Some(Self {
            step: self.step + 1,
            remind_at: next.remind_every_ms.map(|ms| now.plus_ms(ms)),
            deadline_at: next.answer_within_ms.map(|ms| now.plus_ms(ms)),
            reviewer: next.name,
            ..self.clone()
        })
    }

    /// Returns the review after a reminder that was due: missed intervals are skipped.
    #[must_use]
    pub fn reminded(&self, now: Timestamp) -> Self {
        let every = self.plan.steps.get(self.step).and_then(|step| step.remind_every_ms);
        let next = self.remind_at.zip(every).map(|(due, every)| {
            let passed = now.since(due).max(0) / every.max(1);
            due.plus_ms(every.max(1).saturating_mul(passed.saturating_add(1)))
        });
        Self { remind_at: next, reminders: self.reminders + 1, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::tests::review;

    fn step(name: &str, members: &[&str], quorum: usize) -> ReviewStep {
        ReviewStep {
            name: name.into(),
            members: members.iter().map(|&member| member.to_owned()).collect(),
            quorum,
            remind_every_ms: Some(10),
            answer_within_ms: Some(100),
        }
    }

    fn panel() -> Review {
        let plan =
            ReviewPlan { steps: vec![step("board", &["ann", "ben", "cem"], 2), step("eve", &["eve"], 1)] };
        Review { plan, reviewer: "board".into(), ..review() }
    }

    fn vote(by: &str, approve: bool, step: usize) -> Vote {
        Vote { by: by.into(), principal: None, approve, reason: None, at: Timestamp(1), step, reported: None }
    }

    /// OAS-32: approved by two of three, rejected as soon as two cannot agree any more.
    #[test]
    fn a_quorum_decides_as_soon_as_it_can() {
        for (votes, outcome) in [
            (vec![], None),
            (vec![("ann", true)], None),
            (vec![("ann", false)], None),
            (vec![("ann", true), ("ben", true)], Some(ReviewState::Approved)),
            (vec![("ann", false), ("ben", true)], None),
            (vec![("ann", false), ("ben", false)], Some(ReviewState::Rejected)),
        ] {
            let votes = votes.into_iter().map(|(by, approve)| vote(by, approve, 0)).collect();
            let review = Review { votes, ..panel() };
            assert_eq!(review.tally().outcome(), outcome, "{review:?}");
        }
    }

    #[test]
    fn the_next_reviewers_begin_with_no_votes() {
        let requested = Review { votes: vec![vote("ann", true, 0)], ..panel() };
        assert!(requested.may_answer("ben") && !requested.may_answer("eve"));
        assert_eq!(requested.missing(), ["ben", "cem"]);
        let next = requested.escalated(Timestamp(1000)).unwrap();
        assert!(next.may_answer("eve") && !next.may_answer("ben"));
        assert_eq!((next.deadline_at, next.remind_at), (Some(Timestamp(1100)), Some(Timestamp(1010))));
        assert_eq!((next.tally().approvals, next.missing()), (0, vec!["eve"]));
        assert_eq!(next.escalated(Timestamp(2000)), None);
    }

    #[test]
    fn reminders_keep_their_rhythm() {
        let due = Review { remind_at: Some(Timestamp(10)), ..panel() };
        assert_eq!(due.reminded(Timestamp(10)).remind_at, Some(Timestamp(20)));
        let late = due.reminded(Timestamp(47));
        assert_eq!((late.remind_at, late.reminders), (Some(Timestamp(50)), 1));
    }

    #[test]
    fn any_operator_may_answer_an_error_without_a_group() {
        let error = Review { kind: ReviewKind::Escalation, ..review() };
        assert!(error.may_answer("whoever"));
        assert!(!Review { kind: ReviewKind::Escalation, ..panel() }.may_answer("whoever"));
        let alone = ReviewPlan { steps: vec![step("ann", &["ann"], 1)] };
        assert!(Review { plan: alone.clone(), ..error }.may_answer("whoever"));
        assert!(!Review { plan: alone, ..review() }.may_answer("whoever"));
        assert!(!Review { asked: Some("e".into()), ..review() }.may_answer("ann"));
    }
}
