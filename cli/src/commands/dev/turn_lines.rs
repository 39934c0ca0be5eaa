//! One line per turn: the phases and calls of a turn, gathered until it ends.

use super::timeline::SeenEvent;
use super::wording::{self, Tone, Words};
use serde_json::Value;
use turnstone_domain::event::EventName;
use turnstone_domain::{Phase, Timestamp};

/// The part of a turn that has been seen and is not printed yet.
#[derive(Clone, PartialEq, Debug, Default)]
struct OpenTurn {
    engagement: String,
    turn: i64,
    /// The last answer of the model: how it was given, and its text.
    answered: Option<(String, String)>,
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
    pub fn add(&mut self, event: &SeenEvent) -> Vec<(SeenEvent, Words)> {
        let mut lines = Vec::new();
        let is_part = event.turn > 0 && self.gathers(event, &mut lines);
        if !is_part {
            let words = wording::of(event);
            if event.turn == 0 || event.name.starts_with("job.") {
                lines.extend(self.close());
            }
            lines.push((event.clone(), words));
        }
        lines
    }

    /// Adds a routine event to its turn; returns false for any other event.
    fn gathers(&mut self, event: &SeenEvent, lines: &mut Vec<(SeenEvent, Words)>) -> bool {
        let Some(name) = EventName::parse(&event.name) else { return false };
        if !matches!(name, EventName::PhaseCompleted | EventName::ToolCalled | EventName::ToolCompleted) {
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
        match name {
            EventName::ToolCalled => open.called(event.data["name"].as_str().unwrap_or("?")),
            EventName::PhaseCompleted => {
                open.phase(event);
                if event.data["phase"] == Phase::Emit.as_str() {
                    lines.extend(self.close());
                }
            }
            _ => {}
        }
        true
    }

    /// Returns the line of the turn that is open, if it has anything to say.
    fn close(&mut self) -> Option<(SeenEvent, Words)> {
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

    fn phase(&mut self, event: &SeenEvent) {
        self.took_ms = self.took_ms.saturating_add(event.data["duration_ms"].as_i64().unwrap_or_default());
        if event.data["phase"] != Phase::Infer.as_str() {
            return;
        }
        let words = wording::of(event);
        let text = event.data["text"].as_str().unwrap_or_default().to_owned();
        self.answered = Some((wording::answered(&event.data), text));
        self.tokens = match (self.tokens, words.tokens) {
            (Some(before), Some(tokens)) => Some(before.saturating_add(tokens)),
            (before, tokens) => tokens.or(before),
        };
        self.left = words.left.or(self.left);
    }

    fn line(self) -> (SeenEvent, Words) {
        let (answered, text) = self.answered.unwrap_or_default();
        let calls: Vec<String> = self
            .calls
            .iter()
            .map(|(name, calls)| if *calls > 1 { format!("{name} \u{d7}{calls}") } else { name.clone() })
            .collect();
        let called = (!calls.is_empty()).then(|| format!("called {}", calls.join(", ")));
        let parts: Vec<String> =
            [Some(answered).filter(|answered| !answered.is_empty()), called].into_iter().flatten().collect();
        let mut happened = parts.join("; ");
        if happened.is_empty() {
            happened = format!("done in {}", wording::duration(Some(self.took_ms)));
        }
        if !text.is_empty() {
            happened = format!("{happened}: {text}");
        }
        let event = SeenEvent {
            name: EventName::PhaseCompleted.as_str().to_owned(),
            turn: self.turn,
            engagement: self.engagement,
            data: Value::Null,
            at: self.at,
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
        (event, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(name: &str, turn: i64, data: Value) -> SeenEvent {
        SeenEvent { name: name.to_owned(), turn, engagement: "e".to_owned(), data, at: Timestamp(0) }
    }

    fn phase(turn: i64, phase: &str) -> SeenEvent {
        event("phase.completed", turn, json!({"phase": phase, "duration_ms": 2}))
    }

    fn infer(turn: i64, reason: &str, text: &str) -> SeenEvent {
        let data = json!({"phase": "infer", "duration_ms": 812, "model": "m", "tokens_in": 10, "tokens_out": 5,
                          "finish_reason": reason, "budget_left": 85, "text": text});
        event("phase.completed", turn, data)
    }

    fn said(lines: &mut TurnLines, events: &[SeenEvent]) -> Vec<String> {
        events
            .iter()
            .flat_map(|event| lines.add(event))
            .map(|(event, words)| format!("{} {}: {}", event.turn, words.step, words.happened))
            .collect()
    }

    #[test]
    fn a_turn_is_one_line_with_its_calls_and_its_answer() {
        let call = |name: &str| event("tool.called", 1, json!({"name": name, "input": {}}));
        let events = [
            phase(1, "init"),
            infer(1, "tool_calls", ""),
            call("search"),
            call("clock"),
            call("search"),
            event("tool.completed", 1, json!({"name": "search", "duration_ms": 3})),
            phase(1, "exec"),
            phase(1, "persist"),
            phase(1, "emit"),
            phase(2, "init"),
            infer(2, "stop", "hello"),
            event("job.completed", 2, json!({"model_used": "m"})),
        ];
        let lines = said(&mut TurnLines::default(), &events);
        assert_eq!(
            lines,
            [
                "1 turn: m answered in 812 ms (tool_calls); called search \u{d7}2, clock",
                "2 turn: m answered in 812 ms (stop): hello",
                "2 job: completed by m",
            ]
        );
    }

    #[test]
    fn a_parked_turn_has_a_line_before_and_one_after_the_wait_if_there_is_more_to_say() {
        let mut lines = TurnLines::default();
        let parked = event("job.parked", 1, json!({"children": 2}));
        let before = said(&mut lines, &[infer(1, "tool_calls", ""), parked]);
        assert!(
            before[0].starts_with("1 turn: m answered") && before[1].starts_with("1 job: parked"),
            "{before:?}"
        );
        assert_eq!(said(&mut lines, &[phase(1, "persist"), phase(1, "emit")]), Vec::<String>::new());
        assert_eq!(said(&mut lines, &[phase(2, "init"), phase(2, "emit")]), ["2 turn: done in 4 ms"]);
    }

    #[test]
    fn a_failed_call_is_seen_at_once() {
        let mut lines = TurnLines::default();
        let failed = event("tool.failed", 1, json!({"name": "search", "code": "C", "message": "no"}));
        assert_eq!(said(&mut lines, &[infer(1, "tool_calls", ""), failed]), ["1 search: C: no"]);
        assert_eq!(said(&mut lines, &[phase(1, "emit")]).len(), 1);
    }
}
