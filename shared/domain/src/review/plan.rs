//! Who is asked, how many of them have to agree, and who is asked when they stay silent (OAS-30 … OAS-32).

use super::{Review, ReviewKind, ReviewState};
use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// Who is asked one after the other. Empty: the one reviewer, until the deadline.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReviewPlan {
    /// The first is asked at once, each other one when those before stayed silent.
    pub steps: Vec<ReviewStep>,
}

/// Those who are asked at one time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReviewStep {
    /// What they are called together: a group of the configuration, or the one user.
    pub name: String,
    /// Who may vote, each once.
    pub members: Vec<String>,
    /// How many have to agree.
    pub quorum: usize,
    /// How often they are reminded, in milliseconds; `None` is never.
    pub remind_every_ms: Option<i64>,
    /// How long they have, in milliseconds, before the next are asked, or silence is a no; `None` is for ever.
    pub answer_within_ms: Option<i64>,
}

impl ReviewStep {
    /// Whether enough are asked to agree.
    pub(super) fn can_agree(&self) -> bool {
        self.quorum <= self.members.len()
    }
}

/// One reviewer's answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Vote {
    /// Who.
    pub by: String,
    /// Yes or no.
    pub approve: bool,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The step of the plan that was asked. Votes of steps that are over no longer count.
    pub step: usize,
}

/// How the votes of those who are asked now stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    /// How many have to agree.
    pub needed: usize,
    /// How many are asked.
    pub of: usize,
    /// How many agreed.
    pub approvals: usize,
    /// How many did not.
    pub rejections: usize,
}

impl Tally {
    /// What the votes come to: approved with enough of them, rejected as soon as those who are left cannot be enough.
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
    /// Whether it only says that there is one reviewer, whose answer may be anybody's where the kind allows that.
    fn is_plain(&self) -> bool {
        matches!(self.steps.as_slice(), [] | [ReviewStep { quorum: 1, .. }])
            && self.steps.iter().all(|step| matches!(step.members.as_slice(), [only] if *only == step.name))
    }

    /// When those of the first step are reminded first and have to have answered, if it says so.
    #[must_use]
    pub fn begin(&self, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        let Some(first) = self.steps.first() else { return (None, None) };
        (first.remind_every_ms.map(|ms| now.plus_ms(ms)), first.answer_within_ms.map(|ms| now.plus_ms(ms)))
    }
}

impl Review {
    /// Those who are asked now.
    #[must_use]
    pub fn members(&self) -> &[String] {
        match self.plan.steps.get(self.step) {
            Some(step) => &step.members,
            None => std::slice::from_ref(&self.reviewer),
        }
    }

    /// How the votes stand.
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

    /// Those who are asked and have not voted.
    #[must_use]
    pub fn missing(&self) -> Vec<&str> {
        let voted = |name: &str| self.votes.iter().any(|vote| vote.step == self.step && vote.by == name);
        self.members().iter().map(String::as_str).filter(|name| !voted(name)).collect()
    }

    /// Whether this is somebody's to answer. A call or its result is confirmed by those who are asked and nobody else
    /// (OAS-32); so is whatever a group is asked. What an agent is asked it answers itself.
    #[must_use]
    pub fn may_answer(&self, by: &str) -> bool {
        if self.asked.is_some() {
            return false;
        }
        let free = !matches!(self.kind, ReviewKind::Input | ReviewKind::Output) && self.plan.is_plain();
        free || self.members().iter().any(|member| member == by)
    }

    /// Whether somebody may have an answer to this that came too late: who may answer now, or was asked before.
    #[must_use]
    pub fn was_asked(&self, by: &str) -> bool {
        let before = self.plan.steps.iter().take(self.step);
        let asked = before.flat_map(|step| &step.members).any(|member| member == by);
        self.may_answer(by) || (self.asked.is_none() && asked)
    }

    /// Whether the time of those who are asked is over.
    #[must_use]
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.state == ReviewState::Open && self.deadline_at.is_some_and(|deadline| deadline <= now)
    }

    /// Who is asked after those who are asked now.
    #[must_use]
    pub fn next_step(&self) -> Option<&ReviewStep> {
        self.plan.steps.get(self.step + 1)
    }

    /// The review as the next are asked; `None` when there are none.
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

    /// The review after a reminder that was due: intervals that passed unseen are not made up for.
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
        Vote { by: by.into(), approve, reason: None, at: Timestamp(1), step }
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
    fn whoever_is_asked_next_begins_anew() {
        let asked = Review { votes: vec![vote("ann", true, 0)], ..panel() };
        assert!(asked.may_answer("ben") && !asked.may_answer("eve"));
        assert_eq!(asked.missing(), ["ben", "cem"]);
        let next = asked.escalated(Timestamp(1000)).unwrap();
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
    fn an_error_is_anybodys_to_forgive_unless_a_group_is_asked() {
        let error = Review { kind: ReviewKind::Escalation, ..review() };
        assert!(error.may_answer("whoever"));
        assert!(!Review { kind: ReviewKind::Escalation, ..panel() }.may_answer("whoever"));
        let alone = ReviewPlan { steps: vec![step("ann", &["ann"], 1)] };
        assert!(Review { plan: alone.clone(), ..error }.may_answer("whoever"));
        assert!(!Review { plan: alone, ..review() }.may_answer("whoever"));
        assert!(!Review { asked: Some("e".into()), ..review() }.may_answer("ann"));
    }
}
