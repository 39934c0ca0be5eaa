//! One line per turn: the phases and calls of a turn, gathered until it ends.

use super::timeline::SeenEvent;
use super::wording::{self, Tone, Words};
use turnstone_domain::event::{EventBody, PhaseDone};
use turnstone_domain::{Phase, Timestamp};

/// A line of the timeline.
#[derive(Clone, PartialEq, Debug)]
pub struct TimelineRow {
    /// The turn; 0 outside of turns.
    pub turn: i64,
    /// When it happened.
    pub at: Timestamp,
    /// The rest.
    pub words: Words,
}

/// The part of a turn that has been seen and is not printed yet.
#[derive(Clone, PartialEq, Debug, Default)]
struct OpenTurn {
    engagement: String,
    turn: i64,
    /// How the model answered last.
    answered: Option<String>,
    /// The called tools, in the order of their first calls, with the number of their calls.
    calls: Vec<(String, usize)>,
    tokens: Option<i64>,
    left: Option<i64>,
    took_ms: i64,
    at: Timestamp,
}

/// Turns into lines, one for each.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TurnLines {
    open: Option<OpenTurn>,
    /// The turn that was printed last; the rest of its phases adds no line.
    printed: i64,
}

impl TurnLines {
    /// Takes an event in, and returns the lines that are complete: of the turn before, and of the event itself unless it is
    /// a part of a turn. Warnings inside of a turn have lines of their own.
    pub fn add(&mut self, event: &SeenEvent) -> Vec<TimelineRow> {
        let mut lines = Vec::new();
        if event.turn == 0 || !self.gathers(event, &mut lines) {
            if event.turn == 0 || event.name.starts_with("job.") {
                lines.extend(self.close());
            }
            lines.push(TimelineRow { turn: event.turn, at: event.at, words: wording::of(event) });
        }
        lines
    }

    /// Adds a routine event to its turn; returns false for any other event.
    fn gathers(&mut self, event: &SeenEvent, lines: &mut Vec<TimelineRow>) -> bool {
        use EventBody::{PhaseCompleted, ToolCalled, ToolCompleted};
        let Some(body @ (PhaseCompleted(_) | ToolCalled(_) | ToolCompleted(_))) = &event.body else {
            return false;
        };
        if matches!(body, PhaseCompleted(done) if done.phase == Phase::Infer && done.inferred.is_none()) {
            return false;
        }
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.turn != event.turn || open.engagement != event.engagement)
        {
            lines.extend(self.close());
        }
        let open = self.open.get_or_insert_with(|| OpenTurn {
            engagement: event.engagement.clone(),
            turn: event.turn,
            ..OpenTurn::default()
        });
        open.at = event.at;
        match body {
            ToolCalled(call) => open.called(call.name.as_deref().unwrap_or("?")),
            PhaseCompleted(done) => {
                open.phase(done);
                if done.phase == Phase::Emit {
                    lines.extend(self.close());
                }
            }
            _ => {}
        }
        true
    }

    /// Returns the line of the turn that is open, if it has anything to say.
    fn close(&mut self) -> Option<TimelineRow> {
        let open = self.open.take()?;
        let is_rest = open.answered.is_none() && open.calls.is_empty() && open.turn == self.printed;
        self.printed = open.turn;
        (!is_rest).then(|| open.line())
    }
}

impl OpenTurn {
    fn called(&mut self, tool: &str) {
        match self.calls.iter_mut().find(|(name, _)| name == tool) {
            Some((_, calls)) => *calls += 1,
            None => self.calls.push((tool.to_owned(), 1)),
        }
    }

    fn phase(&mut self, done: &PhaseDone) {
        self.took_ms = self.took_ms.saturating_add(done.duration_ms);
        if let Some(answer) = &done.inferred {
            self.answered = Some(wording::answered(answer, done.duration_ms));
            let tokens = answer.tokens_in.saturating_add(answer.tokens_out);
            self.tokens = Some(self.tokens.unwrap_or_default().saturating_add(tokens));
            self.left = answer.budget_left.or(self.left);
        }
    }

    fn line(self) -> TimelineRow {
        let calls = self.calls.iter().map(|(name, calls)| match calls {
            1 => name.clone(),
            calls => format!("{name} \u{d7}{calls}"),
        });
        let calls: Vec<String> = calls.collect();
        let called = (!calls.is_empty()).then(|| format!("called {}", calls.join(", ")));
        let parts: Vec<String> = self.answered.into_iter().chain(called).collect();
        let happened = match parts.join("; ") {
            nothing if nothing.is_empty() => format!("done in {}", wording::duration(self.took_ms)),
            happened => happened,
        };
        let words = Words {
            step: "turn".to_owned(),
            happened,
            tokens: self.tokens,
            left: self.left,
            tone: Tone::Plain,
            running: None,
            command: None,
        };
        TimelineRow { turn: self.turn, at: self.at, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::dev::timeline;
    use serde_json::{Value, json};

    fn event(name: &str, turn: i64, data: &Value) -> SeenEvent {
        SeenEvent::read(&json!({"name": name, "turn": turn, "engagement_id": "e", "data": data, "at": 0}))
    }

    fn phase(turn: i64, phase: &str) -> SeenEvent {
        event("phase.completed", turn, &json!({"phase": phase, "duration_ms": 2}))
    }

    fn infer(turn: i64, reason: &str) -> SeenEvent {
        timeline::infer(turn, reason, 10)
    }

    fn said(lines: &mut TurnLines, events: &[SeenEvent]) -> Vec<String> {
        events
            .iter()
            .flat_map(|event| lines.add(event))
            .map(|line| format!("{} {}: {}", line.turn, line.words.step, line.words.happened))
            .collect()
    }

    #[test]
    fn a_turn_is_one_line_with_its_calls_and_its_answer() {
        let call = |name: &str| event("tool.called", 1, &json!({"call_id": "c", "name": name, "input": {}}));
        let events = [
            phase(1, "init"),
            infer(1, "tool_use"),
            call("search"),
            call("clock"),
            call("search"),
            event("tool.completed", 1, &json!({"call_id": "c", "name": "search", "duration_ms": 3})),
            phase(1, "exec"),
            phase(1, "persist"),
            phase(1, "emit"),
            phase(2, "init"),
            infer(2, "stop"),
            event("job.completed", 2, &json!({"attempt": 1, "duration_ms": 9, "model_used": "m"})),
        ];
        let lines = said(&mut TurnLines::default(), &events);
        assert_eq!(
            lines,
            [
                "1 turn: m at p answered in 812 ms (tool_use); called search \u{d7}2, clock",
                "2 turn: m at p answered in 812 ms (stop)",
                "2 job: completed by m",
            ]
        );
    }

    #[test]
    fn a_parked_turn_has_a_line_before_and_one_after_the_wait_if_there_is_more_to_say() {
        let mut lines = TurnLines::default();
        let parked = event("job.parked", 1, &json!({"children": 2}));
        let before = said(&mut lines, &[infer(1, "tool_use"), parked]);
        assert!(
            before[0].starts_with("1 turn: m at p answered") && before[1].starts_with("1 job: parked"),
            "{before:?}"
        );
        assert_eq!(said(&mut lines, &[phase(1, "persist"), phase(1, "emit")]), Vec::<String>::new());
        assert_eq!(said(&mut lines, &[phase(2, "init"), phase(2, "emit")]), ["2 turn: done in 4 ms"]);
    }

    #[test]
    fn a_failed_call_is_seen_at_once() {
        let mut lines = TurnLines::default();
        let failed = event(
            "tool.failed",
            1,
            &json!({"call_id": "c", "name": "search", "code": "C", "message": "no", "type": "t", "recoverable": true}),
        );
        assert_eq!(said(&mut lines, &[infer(1, "tool_use"), failed]), ["1 search: C: no"]);
        assert_eq!(said(&mut lines, &[phase(1, "emit")]).len(), 1);
    }
}
