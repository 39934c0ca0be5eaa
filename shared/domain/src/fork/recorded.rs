//! The record of the engagements that a fork comes from. Recorded outcomes replace calls that the fork does not repeat.

use crate::agent::guardrails::Side;
use crate::event::Checked;
use crate::review::ReviewAnswer;
use crate::tool_call::ToolCall;
use crate::{CallId, Phase, digest};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// A recorded call, without its arguments and its outcome: those may be large, and are read when they are needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCall {
    /// Its id.
    pub call_id: CallId,
    /// The tool or agent.
    pub name: String,
    /// The digest of its arguments.
    pub arguments_hash: String,
    /// The call whose outcome it reuses, when it was not made itself.
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

/// The result of a guardrail, from its event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCheck {
    /// The turn of the check.
    pub turn: i64,
    /// Which way the text went.
    pub side: Side,
    /// The position of the text among those that were checked in the turn; older events have none.
    pub position: Option<usize>,
    /// The digest of the text, unless it must not be shown.
    pub text: Option<String>,
    /// True if the text passed.
    pub passed: bool,
}

/// The first position of questions to users and their answers within a turn, after those of its messages and its
/// answer.
pub const QUESTIONS: usize = 1_000;

impl RecordedCheck {
    /// Returns the phase of the check.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match (self.side, self.position.unwrap_or_default()) {
            (_, QUESTIONS..) => Phase::Exec,
            (Side::Input, _) => Phase::Norm,
            (Side::Output, _) => Phase::Emit,
        }
    }

    /// Reads the event `guardrail.checked` of a turn; `None` when the tool was away, because then there is no result.
    #[must_use]
    pub fn of_event(turn: i64, data: &Value) -> Option<Self> {
        let Checked { side, passed, position, text_sha256, away, .. } = Checked::deserialize(data).ok()?;
        (!away.unwrap_or(false)).then_some(Self { turn, side, position, text: text_sha256, passed })
    }
}

/// The record of the engagements that a fork comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// Settled calls: the nearest engagement's first, calls after the fork point before earlier ones. Calls whose
    /// outcome another call of the list reuses are left out.
    calls: Vec<RecordedCall>,
    /// The call whose outcome each call reuses.
    stands_for: HashMap<CallId, CallId>,
    /// The calls that the fork has reused already.
    pub used: HashSet<CallId>,
    /// The results of guardrails: the nearest engagement's first, newest first.
    pub checks: Vec<RecordedCheck>,
    /// The reviews of its calls, oldest first.
    pub reviews: Vec<ReviewAnswer>,
    /// True if there is nothing but the record, as when a record is run again: calls that are not in it cannot be made.
    pub is_all: bool,
}

impl Recorded {
    /// Returns a record of these calls, in their order.
    #[must_use]
    pub fn of(mut calls: Vec<RecordedCall>) -> Self {
        let pair = |call: &RecordedCall| Some((call.call_id.clone(), call.stub_of.clone()?));
        let stands_for: HashMap<CallId, CallId> = calls.iter().filter_map(pair).collect();
        let copied: HashSet<&CallId> = stands_for.values().collect();
        calls.retain(|call| !copied.contains(&call.call_id));
        Self { calls, stands_for, ..Self::default() }
    }

    /// Returns the recorded call that replaces one with this name and these arguments. Each recorded call is reused
    /// once, in order. When all are used, the last one is used again.
    pub fn stand_in(&mut self, name: &str, input: &Value) -> Option<RecordedCall> {
        let wanted = digest::of_json(input);
        let alike = |call: &&RecordedCall| call.name == name && call.arguments_hash == wanted;
        let fresh = self.calls.iter().filter(alike).find(|call| !self.used.contains(&call.call_id));
        let found = fresh.or_else(|| self.calls.iter().rfind(alike))?.clone();
        self.used.insert(found.call_id.clone());
        Some(found)
    }

    /// Returns the reviews of a call, and of the calls whose outcome it reuses.
    #[must_use]
    pub fn decided(&self, call: &CallId) -> Vec<ReviewAnswer> {
        let mut calls = HashSet::from([call]);
        let mut behind = self.stands_for.get(call);
        while let Some(of) = behind.filter(|of| calls.insert(of)) {
            behind = self.stands_for.get(of);
        }
        self.reviews.iter().filter(|review| calls.contains(&review.call_id)).cloned().collect()
    }

    /// Returns the verdict of a guardrail on a text with this digest.
    #[must_use]
    pub fn verdict_on(&self, side: Side, text: &str) -> Option<bool> {
        let same = |check: &&RecordedCheck| check.side == side && check.text.as_deref() == Some(text);
        self.checks.iter().find(same).map(|check| check.passed)
    }

    /// Returns the verdict of a guardrail at this position of a turn.
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
    fn each_recorded_call_replaces_one_and_the_last_one_repeats() {
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
            reported: None,
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
        let of_event = |turn, data| RecordedCheck::of_event(turn, &data).unwrap();
        let checks = vec![
            of_event(
                3,
                json!({"side": "output", "passed": true, "tool": "t", "position": 0, "text_sha256": "x"}),
            ),
            of_event(2, json!({"side": "output", "passed": false, "position": 0, "tool": "t"})),
            of_event(1, json!({"side": "input", "passed": true, "tool": "t"})),
        ];
        let recorded = Recorded { checks, ..Recorded::default() };
        assert_eq!(recorded.verdict_on(Side::Output, "x"), Some(true));
        assert_eq!(recorded.verdict_on(Side::Input, "x"), None);
        assert_eq!(recorded.verdict_at(2, Side::Output, 0), Some(false));
        assert_eq!(recorded.verdict_at(2, Side::Output, 1), None);
        assert_eq!(recorded.verdict_at(1, Side::Input, 1), Some(true), "an older event is used for its turn");
        assert_eq!(RecordedCheck::of_event(1, &json!({"side": "above", "tool": "t", "passed": true})), None);
        assert_eq!(
            RecordedCheck::of_event(1, &json!({"side": "input", "tool": "t", "passed": false, "away": true})),
            None
        );
    }
}
