//! The configuration of reviewers: users, groups that replace one another, and the outcome without an answer.

use super::duties::SeparateDuties;
use super::plan::{ReviewPlan, ReviewStep};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[reviews]`: reviewers, and the outcome without an answer.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewRules {
    /// Every user who may be named as a reviewer. Left out, any user may be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<String>>,
    /// The interval of reminders about open reviews, in milliseconds; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remind_every_ms: Option<u64>,
    /// True if the principal that submitted a job may not answer its reviews.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub separate_duties: bool,
    /// The agents for whose jobs alone the same holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub separate_duties_of: Vec<String>,
    /// `[reviews.groups."<name>"]`: groups that `require_review` may name beside users and agents.
    pub groups: BTreeMap<String, ReviewGroup>,
}

/// A section `[reviews.groups."<name>"]`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewGroup {
    /// Its users. Left out, it is the one user of its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The number of approvals that is needed; one by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorum: Option<usize>,
    /// The interval of reminders, in milliseconds; by default that of `[reviews]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remind_every_ms: Option<u64>,
    /// The time to answer, in milliseconds, before `escalate_to` takes over or the review counts as rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
    /// The group or user that is next. A user who is no group has as much time as this group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate_to: Option<String>,
}

/// The shortest interval of reminders.
const SHORTEST_MS: u64 = 1_000;

impl ReviewRules {
    /// Returns the plan of a review by this reviewer; `None` when there is no such reviewer. `person` resolves a word
    /// such as `owner` to a user, if there is one. `deadline_ms` is the time to answer where the rules set none.
    #[must_use]
    pub fn plan(
        &self,
        name: &str,
        deadline_ms: Option<i64>,
        person: &dyn Fn(&str) -> Option<String>,
    ) -> Option<ReviewPlan> {
        let (mut steps, mut next, mut wait) = (Vec::new(), Some(name.to_owned()), deadline_ms);
        let mut seen = 0;
        // The configuration refuses cycles; the loop is bounded nevertheless.
        while let Some(name) = next.take().filter(|_| seen <= self.groups.len()) {
            seen += 1;
            let group = self.groups.get(&name);
            let step = self.step(&name, group, wait, person);
            next = group.and_then(|group| group.escalate_to.clone());
            wait = group.and_then(|group| group.answer_within_ms).map(whole).or(wait);
            // When words resolve to one person or to none, too few may remain for the quorum: the next step begins at
            // once.
            steps.extend(step.filter(ReviewStep::can_agree));
        }
        match steps.as_slice() {
            [] => None,
            [only] if only.remind_every_ms.is_none() && !self.groups.contains_key(name) => {
                Some(ReviewPlan::default())
            }
            _ => Some(ReviewPlan { steps }),
        }
    }

    fn step(
        &self,
        name: &str,
        group: Option<&ReviewGroup>,
        wait: Option<i64>,
        person: &dyn Fn(&str) -> Option<String>,
    ) -> Option<ReviewStep> {
        let members = group.map(|group| group.members.as_slice()).unwrap_or_default();
        let named = if group.is_some() { Some(name.to_owned()) } else { person(name) };
        let mut who: Vec<String> = match members {
            [] => person(name).into_iter().collect(),
            members => members.iter().filter_map(|member| person(member)).collect(),
        };
        // Two words may resolve to one person, who has one vote.
        let mut seen = std::collections::BTreeSet::new();
        who.retain(|member| seen.insert(member.clone()));
        let quorum = group.and_then(|group| group.quorum).unwrap_or(1);
        Some(ReviewStep {
            name: named?,
            members: who,
            quorum,
            remind_every_ms: group
                .and_then(|group| group.remind_every_ms)
                .or(self.remind_every_ms)
                .map(whole),
            answer_within_ms: group.and_then(|group| group.answer_within_ms).map(whole).or(wait),
        })
    }

    /// Returns the agents whose jobs have separate duties.
    #[must_use]
    pub fn duties(&self) -> SeparateDuties {
        SeparateDuties { of_all: self.separate_duties, of: self.separate_duties_of.clone() }
    }

    /// Returns true if a document may name this reviewer, who is no agent.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        let users = self.users.as_ref();
        matches!(name, "user" | "owner")
            || self.groups.contains_key(name)
            || users.is_none_or(|users| users.iter().any(|user| user == name))
    }

    /// Returns every name that a document may use; `None` when any name is allowed.
    #[must_use]
    pub fn names(&self) -> Option<Vec<String>> {
        let users = self.users.as_ref()?;
        let words = ["user", "owner"].map(str::to_owned);
        Some(words.into_iter().chain(self.groups.keys().cloned()).chain(users.iter().cloned()).collect())
    }

    /// Checks the rules that the types cannot express.
    ///
    /// # Errors
    /// The rest of a sentence that begins with the key `reviews`.
    pub fn check(&self) -> Result<(), String> {
        let often = |ms: Option<u64>| ms.is_some_and(|ms| ms < SHORTEST_MS);
        if often(self.remind_every_ms) {
            return Err(format!("has remind_every_ms below {SHORTEST_MS}"));
        }
        let named = self.users.iter().flatten().chain(self.groups.keys());
        let members = self.groups.values().flat_map(|group| &group.members);
        if let Some(name) = named.chain(members).find(|name| !is_name(name)) {
            return Err(format!("names `{name}`, which is no id or address of a user"));
        }
        for (name, group) in &self.groups {
            self.check_group(name, group).map_err(|why| format!("cannot be used: group `{name}` {why}"))?;
        }
        Ok(())
    }

    fn check_group(&self, name: &str, group: &ReviewGroup) -> Result<(), String> {
        let (of, quorum) = (group.members.len().max(1), group.quorum.unwrap_or(1));
        if !(1..=of).contains(&quorum) {
            return Err(format!("has a quorum of {quorum}; it must lie between 1 and its {of} members"));
        }
        if let Some(twice) =
            group.members.iter().find(|a| group.members.iter().filter(|b| b == a).count() > 1)
        {
            return Err(format!("has the member `{twice}` twice"));
        }
        if let Some(stranger) = group.members.iter().find(|member| !self.is_user(member)) {
            return Err(format!("has the member `{stranger}`, which is not among `users`"));
        }
        if group.members.is_empty() && !self.is_user(name) {
            return Err("has no members, and no user has its name".to_owned());
        }
        if group.remind_every_ms.is_some_and(|ms| ms < SHORTEST_MS) {
            return Err(format!("has remind_every_ms below {SHORTEST_MS}"));
        }
        let Some(next) = &group.escalate_to else { return Ok(()) };
        if group.answer_within_ms.is_none() {
            return Err("has escalate_to and no answer_within_ms".to_owned());
        }
        if !self.knows(next) || !is_name(next) {
            return Err(format!("escalates to `{next}`, which is no group and no user"));
        }
        let (mut at, mut seen) = (next, 0);
        while let Some(further) = self.groups.get(at).and_then(|group| group.escalate_to.as_ref()) {
            (at, seen) = (further, seen + 1);
            if seen > self.groups.len() {
                return Err("escalates in a circle".to_owned());
            }
        }
        Ok(())
    }

    fn is_user(&self, name: &str) -> bool {
        let users = self.users.as_ref();
        matches!(name, "user" | "owner") || users.is_none_or(|users| users.iter().any(|user| user == name))
    }
}

fn whole(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Returns true if OAS-30 accepts the text as the id or address of a user.
fn is_name(name: &str) -> bool {
    (1..=253).contains(&name.len())
        && !name.chars().any(|c| c.is_whitespace() || c.is_control())
        && !name.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(json: &str) -> ReviewRules {
        serde_json::from_str(json).unwrap()
    }

    fn itself(name: &str) -> Option<String> {
        match name {
            "owner" => Some("olga".to_owned()),
            "user" => None,
            name => Some(name.to_owned()),
        }
    }

    const BOARD: &str = r#"{"users": ["ann", "ben", "cem", "eve"], "remind_every_ms": 5000, "groups": {
        "board": {"members": ["ann", "ben", "cem"], "quorum": 2, "answer_within_ms": 60000, "escalate_to": "chair"},
        "chair": {"members": ["owner"], "remind_every_ms": 1000, "answer_within_ms": 9000, "escalate_to": "eve"}}}"#;

    #[test]
    fn a_group_is_planned_with_its_escalation() {
        let rules = rules(BOARD);
        assert_eq!(rules.check(), Ok(()));
        let plan = rules.plan("board", Some(7), &itself).unwrap();
        let [board, chair, eve] = plan.steps.as_slice() else { panic!("{plan:?}") };
        assert_eq!(
            (board.quorum, board.answer_within_ms, board.remind_every_ms),
            (2, Some(60_000), Some(5000))
        );
        assert_eq!((chair.members.as_slice(), chair.remind_every_ms), (&["olga".to_owned()][..], Some(1000)));
        assert_eq!((eve.name.as_str(), eve.answer_within_ms), ("eve", Some(9000)));
        let alone = rules.plan("ann", Some(7), &itself).unwrap();
        assert_eq!((alone.steps.len(), alone.steps[0].answer_within_ms), (1, Some(7)));
        assert_eq!(ReviewRules::default().plan("ann", Some(7), &itself), Some(ReviewPlan::default()));
    }

    /// OAS-31: an unknown user is left out of a step; the other reviewers remain if they reach the quorum.
    #[test]
    fn no_reviewer_replaces_an_unknown_user() {
        assert_eq!(ReviewRules::default().plan("user", None, &itself), None);
        let rules = rules(
            r#"{"groups": {"two": {"members": ["user", "ann"], "answer_within_ms": 9000, "escalate_to": "eve"},
                           "both": {"members": ["user", "ann"], "quorum": 2, "answer_within_ms": 9000,
                                    "escalate_to": "eve"},
                           "last": {"members": ["user"]}}}"#,
        );
        let two = rules.plan("two", None, &itself).unwrap();
        assert_eq!(two.steps[0].members, ["ann"]);
        let both = rules.plan("both", None, &itself).unwrap();
        assert_eq!((both.steps.len(), both.steps[0].name.as_str()), (1, "eve"), "ann alone is not two");
        assert_eq!(rules.plan("last", None, &itself), None);
    }

    /// OAS-32: two words that resolve to one person are one vote, and a quorum of two needs two persons.
    #[test]
    fn a_quorum_that_too_few_are_left_for_asks_the_next() {
        let rules = rules(
            r#"{"groups": {
            "pair": {"members": ["owner", "olga"], "quorum": 2, "answer_within_ms": 5000, "escalate_to": "ann"},
            "alone": {"members": ["owner", "olga"], "quorum": 2}}}"#,
        );
        assert_eq!(rules.check(), Ok(()));
        let names = |plan: Option<ReviewPlan>| {
            plan.unwrap().steps.into_iter().map(|step| step.name).collect::<Vec<_>>()
        };
        assert_eq!(names(rules.plan("pair", None, &itself)), ["ann"]);
        assert_eq!(rules.plan("alone", None, &itself), None, "there is no other reviewer");
        let two = |name: &str| Some(name.to_owned());
        assert_eq!(names(rules.plan("pair", None, &two)), ["pair", "ann"]);
    }

    #[test]
    fn a_directory_knows_its_users_and_groups() {
        let rules = rules(BOARD);
        for (name, known) in [("ann", true), ("board", true), ("owner", true), ("mallory", false)] {
            assert_eq!(rules.knows(name), known, "{name}");
        }
        assert!(ReviewRules::default().knows("mallory") && ReviewRules::default().names().is_none());
    }

    #[test]
    fn rules_that_cannot_work_are_named() {
        for (json, words) in [
            (r#"{"remind_every_ms": 10}"#, "remind_every_ms below"),
            (r#"{"users": ["two words"]}"#, "no id or address"),
            (r#"{"groups": {"a": {"members": ["b"], "quorum": 2}}}"#, "a quorum of 2"),
            (r#"{"groups": {"a": {"members": ["b"], "quorum": 0}}}"#, "a quorum of 0"),
            (r#"{"groups": {"a": {"members": ["b", "b"]}}}"#, "twice"),
            (r#"{"users": ["b"], "groups": {"a": {"members": ["c"]}}}"#, "not among `users`"),
            (r#"{"users": ["b"], "groups": {"a": {}}}"#, "no user has its name"),
            (r#"{"groups": {"a": {"escalate_to": "b"}}}"#, "no answer_within_ms"),
            (
                r#"{"users": [], "groups": {"a": {"members": ["owner"], "answer_within_ms": 5, "escalate_to": "b"}}}"#,
                "no group and no user",
            ),
            (
                r#"{"groups": {"a": {"answer_within_ms": 5, "escalate_to": "b"},
                               "b": {"answer_within_ms": 5, "escalate_to": "a"}}}"#,
                "in a circle",
            ),
        ] {
            let problem = rules(json).check().unwrap_err();
            assert!(problem.contains(words), "{json}: {problem}");
        }
    }
}
