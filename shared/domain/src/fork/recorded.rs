//! What is on record of those that an engagement was forked from: it stands for what the fork does not ask the world again.

use crate::agent::guardrails::Side;
use crate::review::ReviewAnswer;
use crate::tool_call::ToolCall;
use crate::{CallId, Phase, digest};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// A recorded call, without its arguments and without what it came to: those may be large, and are read when they are needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCall {
    /// Its id.
    pub call_id: CallId,
    /// The tool or agent.
    pub name: String,
    /// The digest of its arguments.
    pub arguments_hash: String,
    /// The call that it stands for itself, when it was not made.
    pub stub_of: Option<CallId>,
}

impl From<&ToolCall> for RecordedCall {
    fn from(call: &ToolCall) -> Self {
        Self {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            arguments_hash: digest::of_json(&call.input),
            stub_of: call.stub_of.clone(),
        }
    }
}

/// What a guardrail came to, as its event tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCheck {
    /// The turn in which it was asked.
    pub turn: i64,
    /// Which way the text went.
    pub side: Side,
    /// The place of the text among those that were checked in the turn; older events do not say it.
    pub position: Option<usize>,
    /// The digest of the text, where it may be told.
    pub text: Option<String>,
    /// Whether the text passed.
    pub passed: bool,
}

#[derive(Deserialize)]
struct Told {
    side: Side,
    passed: bool,
    #[serde(default)]
    position: Option<usize>,
    #[serde(default)]
    text_sha256: Option<String>,
    #[serde(default)]
    away: bool,
}

/// Places of what users are asked and answer within a turn: behind those of its messages and of its answer.
pub const QUESTIONS: usize = 1_000;

impl RecordedCheck {
    /// The phase in which it was asked.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match (self.side, self.position.unwrap_or_default()) {
            (_, QUESTIONS..) => Phase::Exec,
            (Side::Input, _) => Phase::Norm,
            (Side::Output, _) => Phase::Emit,
        }
    }

    /// Reads what the event `guardrail.checked` of a turn says. One whose tool was away has come to nothing.
    #[must_use]
    pub fn told(turn: i64, data: &Value) -> Option<Self> {
        let Told { side, passed, position, text_sha256, away } = Told::deserialize(data).ok()?;
        (!away).then_some(Self { turn, side, position, text: text_sha256, passed })
    }
}

/// What is on record of those that an engagement was forked from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// Settled calls: the nearest engagement's first, calls after the parting before earlier ones. What another one of them
    /// stands for is left out.
    calls: Vec<RecordedCall>,
    /// Which call another one stands for.
    stands_for: HashMap<CallId, CallId>,
    /// Those that stand for a call of the fork already.
    pub used: HashSet<CallId>,
    /// What guardrails came to: the nearest engagement's first, the newest before older ones.
    pub checks: Vec<RecordedCheck>,
    /// What was decided about its calls, oldest first.
    pub reviews: Vec<ReviewAnswer>,
    /// Whether there is nothing but the record: what is not in it cannot be had, as when a record is run again.
    pub is_all: bool,
}

impl Recorded {
    /// Of these calls, in their order.
    #[must_use]
    pub fn of(mut calls: Vec<RecordedCall>) -> Self {
        let pair = |call: &RecordedCall| Some((call.call_id.clone(), call.stub_of.clone()?));
        let stands_for: HashMap<CallId, CallId> = calls.iter().filter_map(pair).collect();
        let copied: HashSet<&CallId> = stands_for.values().collect();
        calls.retain(|call| !copied.contains(&call.call_id));
        Self { calls, stands_for, ..Self::default() }
    }

    /// The recorded call that stands for one with this name and these arguments. Each stands for one call, in their order; when
    /// all have, the last one does so again.
    pub fn stand_in(&mut self, name: &str, input: &Value) -> Option<RecordedCall> {
        let wanted = digest::of_json(input);
        let alike = |call: &&RecordedCall| call.name == name && call.arguments_hash == wanted;
        let fresh = self.calls.iter().filter(alike).find(|call| !self.used.contains(&call.call_id));
        let found = fresh.or_else(|| self.calls.iter().rfind(alike))?.clone();
        self.used.insert(found.call_id.clone());
        Some(found)
    }

    /// What was decided about a call, or about one that it stands for in the end.
    #[must_use]
    pub fn decided(&self, call: &CallId) -> Vec<ReviewAnswer> {
        let mut calls = HashSet::from([call]);
        let mut behind = self.stands_for.get(call);
        while let Some(of) = behind.filter(|of| calls.insert(of)) {
            behind = self.stands_for.get(of);
        }
        self.reviews.iter().filter(|review| calls.contains(&review.call_id)).cloned().collect()
    }

    /// What a guardrail said of a text with this digest.
    #[must_use]
    pub fn verdict_on(&self, side: Side, text: &str) -> Option<bool> {
        let same = |check: &&RecordedCheck| check.side == side && check.text.as_deref() == Some(text);
        self.checks.iter().find(same).map(|check| check.passed)
    }

    /// What a guardrail said in this place of a turn.
    #[must_use]
    pub fn verdict_at(&self, turn: i64, side: Side, position: usize) -> Option<bool> {
        let there = |check: &&RecordedCheck| {
            (check.turn, check.side) == (turn, side) && check.position.is_none_or(|at| at == position)
        };
        self.checks.iter().find(there).map(|check| check.passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::{ReviewKind, ReviewState};
    use serde_json::json;

    fn called(id: &str, input: Value, stub_of: Option<&str>) -> RecordedCall {
        RecordedCall {
            call_id: id.into(),
            name: "search".into(),
            arguments_hash: digest::of_json(&input),
            stub_of: stub_of.map(Into::into),
        }
    }

    #[test]
    fn each_recorded_call_stands_for_one_and_the_last_one_again() {
        let calls = vec![
            called("a", json!({"q": 1}), Some("c")),
            called("b", json!({"q": 2}), None),
            called("c", json!({"q": 1}), None),
            called("d", json!({"q": 1}), None),
        ];
        let mut recorded = Recorded::of(calls);
        recorded.reviews.push(ReviewAnswer {
            call_id: "c".into(),
            kind: ReviewKind::Output,
            arguments_hash: String::new(),
            state: ReviewState::Approved,
            decided_by: None,
            reason: None,
        });
        let decided = |call: &str| recorded.decided(&call.into()).len();
        assert_eq!((decided("a"), decided("b"), decided("c")), (1, 0, 1));
        let mut next = |input: Value| recorded.stand_in("search", &input).map(|call| call.call_id.0);
        assert_eq!(next(json!({"q": 1})).as_deref(), Some("a"));
        assert_eq!(next(json!({"q": 1})).as_deref(), Some("d"), "c is what a stood for");
        assert_eq!(next(json!({"q": 1})).as_deref(), Some("d"));
        assert_eq!(next(json!({"q": 2})).as_deref(), Some("b"));
        assert_eq!(next(json!({"q": 3})), None);
        assert!(recorded.stand_in("book", &json!({"q": 1})).is_none());
    }

    #[test]
    fn a_guardrail_is_known_by_what_it_was_asked_and_by_where() {
        let told = |turn, data| RecordedCheck::told(turn, &data).unwrap();
        let checks = vec![
            told(3, json!({"side": "output", "passed": true, "position": 0, "text_sha256": "x"})),
            told(2, json!({"side": "output", "passed": false, "position": 0, "tool": "t"})),
            told(1, json!({"side": "input", "passed": true, "tool": "t"})),
        ];
        let recorded = Recorded { checks, ..Recorded::default() };
        assert_eq!(recorded.verdict_on(Side::Output, "x"), Some(true));
        assert_eq!(recorded.verdict_on(Side::Input, "x"), None);
        assert_eq!(recorded.verdict_at(2, Side::Output, 0), Some(false));
        assert_eq!(recorded.verdict_at(2, Side::Output, 1), None);
        assert_eq!(recorded.verdict_at(1, Side::Input, 1), Some(true), "an older event stands for its turn");
        assert_eq!(RecordedCheck::told(1, &json!({"side": "above", "passed": true})), None);
        assert_eq!(RecordedCheck::told(1, &json!({"side": "input", "passed": false, "away": true})), None);
    }
}
