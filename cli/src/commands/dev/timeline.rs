//! The timeline of a job: one line per turn, or per event, with colours and a spinner on a terminal. Used by
//! `dev --demo`, `job watch` and `engagement follow`.

use super::turn_lines::{TimelineRow, TurnLines};
use super::wording::{self, Tone, Words};
use crate::output::{Output, text};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::io;
use std::time::Duration;
use turnstone_domain::Timestamp;
use turnstone_domain::event::{Event, EventBody, EventName};

/// Columns of the elapsed time.
const TIME: usize = 9;
/// Columns of the turn.
const TURN: usize = 4;
/// Columns of the phase or tool.
const STEP: usize = 12;
/// Columns of the tokens and of the budget left.
const NUMBER: usize = 11;
/// Columns of everything but the text, with two spaces between any two.
const FIXED: usize = TIME + TURN + STEP + 2 * NUMBER + 5 * 2;
/// Columns of the text where nothing limits the line; longer texts push the numbers to the right.
const HAPPENED: usize = 56;
/// The fewest columns of the text on a narrow terminal.
const HAPPENED_LEAST: usize = 20;
/// The most characters of the text that are shown where nothing limits the line.
const HAPPENED_MOST: usize = 160;

/// An event as the timeline needs it, from any source.
#[derive(Clone, PartialEq, Debug)]
pub struct SeenEvent {
    /// The name.
    pub name: String,
    /// The turn it happened in; 0 outside of turns.
    pub turn: i64,
    /// The engagement; empty for plain jobs.
    pub engagement: String,
    /// The fields that the name promises.
    pub data: Value,
    /// The same, if this version knows the event and can read them.
    pub body: Option<EventBody>,
    /// When it happened.
    pub at: Timestamp,
}

impl SeenEvent {
    /// Reads an event as the API sends it; times are RFC 3339 or milliseconds since the epoch.
    #[must_use]
    pub fn read(event: &Value) -> Self {
        let at = &event["at"];
        let at = at.as_i64().map(Timestamp).or_else(|| at.as_str().and_then(Timestamp::parse_rfc3339));
        let (name, data) = (event["name"].as_str().unwrap_or("event"), &event["data"]);
        Self {
            name: name.to_owned(),
            turn: event["turn"].as_i64().unwrap_or_default(),
            engagement: event["engagement_id"].as_str().unwrap_or_default().to_owned(),
            data: data.clone(),
            body: EventName::parse(name).and_then(|name| EventBody::read(name, data).ok()),
            at: at.unwrap_or_default(),
        }
    }
}

impl From<&Event> for SeenEvent {
    fn from(event: &Event) -> Self {
        Self {
            name: event.name.to_string(),
            turn: event.turn,
            engagement: event.engagement_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            data: event.data.clone(),
            body: event.body(),
            at: event.at,
        }
    }
}

/// The detail of a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// A line per turn.
    Turns,
    /// A line per event: each phase and each call.
    Phases,
}

impl Detail {
    /// Returns the detail that the flags of the command ask for.
    #[must_use]
    pub fn of(output: Output) -> Self {
        if output.verbose { Self::Phases } else { Self::Turns }
    }
}

/// Prints events as they come.
#[derive(Debug)]
pub struct Timeline {
    output: Output,
    /// Gathers the events of a turn; `None` where each has its line.
    turns: Option<TurnLines>,
    started: Option<Timestamp>,
    /// True if the headings are printed.
    headed: bool,
    spinner: Option<ProgressBar>,
}

impl Timeline {
    /// Returns a timeline on standard output. The spinner is on standard error, and only when standard output is a
    /// terminal.
    #[must_use]
    pub fn new(output: Output, detail: Detail) -> Self {
        let spinner = (output.tty && !output.quiet).then(ProgressBar::new_spinner);
        if let (Some(spinner), Ok(style)) = (&spinner, ProgressStyle::with_template("{spinner} {wide_msg}")) {
            spinner.set_style(style);
        }
        let turns = (detail == Detail::Turns).then(TurnLines::default);
        Self { output, turns, started: None, headed: false, spinner }
    }

    /// Takes an event, and prints what it completes: its own line, or that of its turn.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn event(&mut self, event: &SeenEvent) -> io::Result<()> {
        let words = wording::of(event);
        let running = words.running.clone();
        self.started.get_or_insert(event.at);
        let lines = match &mut self.turns {
            Some(turns) => turns.add(event),
            None => vec![TimelineRow { turn: event.turn, at: event.at, words }],
        };
        lines.iter().try_for_each(|line| self.print(line))?;
        self.show_running(running.as_deref(), event.turn);
        Ok(())
    }

    /// Prints one line, below the headings if it is the first one.
    fn print(&mut self, next: &TimelineRow) -> io::Result<()> {
        let columns = crate::output::columns(&self.output);
        let mut lines = String::new();
        if !std::mem::replace(&mut self.headed, true) {
            lines = headings(columns) + "\n";
        }
        let elapsed = next.at.since(self.started.unwrap_or(next.at));
        lines.push_str(&line(next.turn, &next.words, elapsed, columns, self.output.color));
        if let Some(command) = &next.words.command {
            lines.push_str(&format!("\n{:TIME$}  answer with: {}", "", text::line(command)));
        }
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| self.output.colored(&lines)),
            None => self.output.colored(&lines),
        }
    }

    /// Removes the spinner; the lines stay.
    pub fn close(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    fn show_running(&mut self, running: Option<&str>, turn: i64) {
        let Some(running) = running else { return self.close() };
        if let Some(spinner) = &self.spinner {
            let turn = if turn > 0 { format!("turn {turn} · ") } else { String::new() };
            spinner.set_message(turn + &text::line(running));
            spinner.enable_steady_tick(Duration::from_millis(120));
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the columns that are left for the text on a line of this many columns.
fn room(columns: Option<usize>) -> usize {
    columns.map_or(HAPPENED, |columns| columns.saturating_sub(FIXED).max(HAPPENED_LEAST))
}

fn headings(columns: Option<usize>) -> String {
    let room = room(columns);
    format!(
        "{:>TIME$}  {:<TURN$}  {:<STEP$}  {:<room$}  {:>NUMBER$}  {:>NUMBER$}",
        "TIME", "TURN", "STEP", "WHAT HAPPENED", "TOKENS", "BUDGET LEFT"
    )
}

/// Returns one line. On a terminal the text is cut to fit; elsewhere only its length is bounded, and errors are shown
/// in full.
fn line(turn: i64, words: &Words, elapsed_ms: i64, columns: Option<usize>, color: bool) -> String {
    let room = room(columns);
    let happened = text::line(&words.happened);
    let most = match (columns, words.tone) {
        (Some(_), _) => room,
        (None, Tone::Warning | Tone::Bad) => usize::MAX,
        (None, _) => HAPPENED_MOST,
    };
    let happened = padded(&text::fit(&happened, most), room);
    let step = padded(&text::fit(&text::line(&words.step), STEP), STEP);
    let time = format!("{:>TIME$}", elapsed(elapsed_ms));
    let turn = if turn > 0 { turn.to_string() } else { String::new() };
    let number = |n: Option<i64>| n.map(grouped).unwrap_or_default();
    let paint = |code: &str, text: &str| {
        if color && !code.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    };
    let code = match words.tone {
        Tone::Quiet => "2",
        Tone::Plain => "",
        Tone::Good => "32",
        Tone::Warning => "33",
        Tone::Bad => "31",
    };
    let numbers = format!("  {:>NUMBER$}  {:>NUMBER$}", number(words.tokens), number(words.left));
    let line =
        [paint("2", &time), format!("{turn:<TURN$}"), paint("36", &step), paint(code, &happened)].join("  ");
    (line + &numbers).trim_end().to_owned()
}

fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text::width(text))))
}

/// `0.123s`, `59.123s`, `1m02.1s`, `2h03m04s`.
fn elapsed(ms: i64) -> String {
    let ms = ms.max(0);
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}.{:03}s", ms % 1_000),
        (0, _) => format!("{minutes}m{seconds:02}.{}s", ms % 1_000 / 100),
        _ => format!("{hours}h{minutes:02}m{seconds:02}s"),
    }
}

/// `1,234,567`.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the event of a model's answer.
#[cfg(test)]
pub(super) fn infer(turn: i64, finish_reason: &str, tokens_in: i64) -> SeenEvent {
    SeenEvent::read(
        &serde_json::json!({"name": "phase.completed", "turn": turn, "engagement_id": "e", "at": 0, "data": {
            "phase": "infer", "duration_ms": 812, "model": "m", "provider": "p", "tokens_in": tokens_in, "tokens_out": 5,
            "tokens_cached": 0, "tokens_reasoning": 0, "finish_reason": finish_reason, "budget_left": 47686}}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn output(text: &str) -> SeenEvent {
        SeenEvent::read(&json!({"name": "tool.completed", "turn": 2, "at": "2026-01-01T00:00:01.500Z",
            "data": {"call_id": "c", "name": "t", "duration_ms": 1, "output": text}}))
    }

    fn printed(event: &SeenEvent, columns: Option<usize>, color: bool) -> String {
        line(event.turn, &wording::of(event), 1500, columns, color)
    }

    #[test]
    fn the_columns_stand_below_their_headings() {
        let (heading, line) = (headings(None), printed(&infer(2, "stop", 2_309), None, false));
        assert_eq!(
            line,
            "   1.500s  2     infer         m at p answered in 812 ms (stop)                                2,314       47,686"
        );
        assert_eq!(heading.len(), line.len());
        assert_eq!(heading.find("STEP"), line.find("infer"));
        assert_eq!(heading.find("WHAT"), line.find("m at p"));
    }

    #[test]
    fn a_terminal_cuts_what_does_not_fit_and_a_pipe_what_has_no_end() {
        let event = output(&"word ".repeat(20));
        assert_eq!(text::width(&printed(&event, Some(100), false)), 100 - 2 * (NUMBER + 2));
        assert!(printed(&event, Some(100), false).contains('…'));
        assert!(printed(&event, None, false).contains(&"word ".repeat(19)));
        let endless = printed(&output(&"word ".repeat(500)), None, false);
        assert!(endless.contains('…') && text::width(&endless) < 250, "{endless}");
    }

    #[test]
    fn colours_only_when_asked_for_and_never_the_servers_own() {
        let event = output("\u{1b}[31mred\u{1b}[0m\u{202e}\nsecond line\u{7}");
        let plain = printed(&event, None, false);
        assert!(
            plain.contains("1 ms: red second line") && !plain.contains(['\u{1b}', '\n', '\u{202e}', '\u{7}']),
            "{plain:?}"
        );
        assert!(printed(&event, None, true).starts_with("\u{1b}[2m   1.500s\u{1b}[0m"));
    }

    #[test]
    fn a_tools_name_is_not_trusted_either() {
        let event = SeenEvent::read(
            &json!({ "name": "tool.called", "turn": 1, "at": 0, "data": { "call_id": "c", "name": "x\u{1b}]0;t\u{7}y", "input": {} } }),
        );
        let line = printed(&event, None, false);
        assert!(line.contains("  xy  ") && line.contains("called with {}"), "{line:?}");
    }

    #[test]
    fn times_and_numbers_read_well() {
        assert_eq!(
            [0, 59_123, 62_150, 7_384_000, -5].map(elapsed),
            ["0.000s", "59.123s", "1m02.1s", "2h03m04s", "0.000s"]
        );
        assert_eq!(
            [0, 999, 1_000, 1_234_567, -1_000].map(grouped),
            ["0", "999", "1,000", "1,234,567", "-1,000"]
        );
        assert_eq!(grouped(i64::MIN), "-9,223,372,036,854,775,808");
    }

    #[test]
    fn events_of_the_store_and_of_the_api_look_the_same() {
        let stored = Event {
            seq: 1,
            name: EventName::JobStarted,
            job_id: "j".into(),
            engagement_id: None,
            turn: 0,
            data: json!({ "attempt": 1, "worker_id": "w" }),
            at: Timestamp(7),
        };
        assert_eq!(SeenEvent::from(&stored), SeenEvent::read(&serde_json::to_value(&stored).unwrap()));
    }
}
