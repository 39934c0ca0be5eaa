//! Log lines for people: one fact each, at most [`LONGEST`] characters, without the contexts of spans.

use crate::trace_ids::current;
use crate::{redact, terminal};
use std::fmt;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The most characters of a line. The text in between is cut; the ids of the trace at the end of the line are whole.
const LONGEST: usize = 200;
/// Characters of a time to the millisecond, in UTC: `2026-01-31T12:00:00.123`.
const TIME: usize = 23;

/// The format of lines for people: time, level, message, fields, and the ids of the trace and the span.
pub(crate) struct TextLine;

impl<S, N> FormatEvent<S, N> for TextLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (mut time, mut said) = (String::new(), String::new());
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        time.truncate(TIME);
        ctx.format_fields(Writer::new(&mut said), event)?;
        let level = *event.metadata().level();
        let ids =
            current().map(|(trace, span)| format!(" trace_id={trace} span_id={span}")).unwrap_or_default();
        let begin = format!("{time}Z {level:>5} ");
        let room = LONGEST.saturating_sub(begin.len() + ids.len());
        // A secret that is cut in the middle could not be recognised afterwards.
        let said = fitted(&redact(&said), room);
        match color(level).filter(|_| writer.has_ansi_escapes()) {
            Some(color) => writeln!(writer, "{time}Z \u{1b}[{color}m{level:>5}\u{1b}[0m {said}{ids}"),
            None => writeln!(writer, "{begin}{said}{ids}"),
        }
    }
}

/// Returns a text on one line, with at most so many characters, and without what a terminal would obey.
fn fitted(text: &str, room: usize) -> String {
    let line = terminal::block(&text.replace(['\n', '\r', '\t', '\u{2028}', '\u{2029}'], " ")).into_owned();
    match line.char_indices().nth(room) {
        None => line,
        Some(_) => line.chars().take(room.saturating_sub(1)).chain(['\u{2026}']).collect(),
    }
}

fn color(level: Level) -> Option<&'static str> {
    match level {
        Level::ERROR => Some("31"),
        Level::WARN => Some("33"),
        Level::INFO => Some("32"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Paper;

    #[test]
    fn a_line_has_no_context_of_spans_and_an_end() {
        let paper = Paper::default();
        let copy = paper.clone();
        let lines = tracing_subscriber::fmt().with_writer(move || copy.clone()).with_ansi(false);
        tracing::subscriber::with_default(lines.event_format(TextLine).finish(), || {
            tracing::info_span!("outer", job = "in-the-span").in_scope(|| {
                tracing::warn!(job = "j1", "two\nlines");
            });
            tracing::warn!(name = %"x\u{1b}[2J\u{9b}8my\u{202e}z\u{2028}.", "named");
            tracing::error!(error = "x".repeat(500), "it failed");
        });
        let text = paper.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].ends_with("Z  WARN two lines job=\"j1\""), "{text}");
        assert!(text.chars().all(|c| c == '\n' || terminal::is_harmless(c)), "{text:?}");
        assert!(lines[2].chars().count() == LONGEST && lines[2].ends_with('\u{2026}'), "{text}");
        assert!(!text.contains("in-the-span"), "{text}");
    }
}
