//! One line of progress: rewritten on a terminal, and printed from time to time everywhere else.

use crate::output::{Format, Output, columns, text};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};

/// How often progress is queried.
pub const PAUSE: Duration = Duration::from_secs(1);
/// How often a line is printed where it cannot be rewritten.
const PRINTED: Duration = Duration::from_secs(10);
/// How long is watched before the rate that is seen replaces the rate since the beginning.
const SEEN: Duration = Duration::from_secs(10);

/// The line.
#[derive(Debug)]
pub struct Line {
    output: Output,
    bar: Option<ProgressBar>,
    printed: Option<(Instant, String)>,
    last: Value,
}

impl Line {
    /// Returns a line on standard output; nothing is printed yet.
    #[must_use]
    pub fn new(output: Output) -> Self {
        let on_terminal = output.tty && !output.quiet && output.format == Format::Table;
        let bar = on_terminal.then(ProgressBar::new_spinner);
        if let (Some(bar), Ok(style)) = (&bar, ProgressStyle::with_template("{spinner} {wide_msg}")) {
            bar.set_style(style);
        }
        Self { output, bar, printed: None, last: Value::Null }
    }

    /// Shows the progress: `words` to people, `value` to programs, each when it has changed.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn show(&mut self, words: &str, value: &impl Serialize) -> io::Result<()> {
        match (self.output.format, &self.bar) {
            (Format::Table, Some(bar)) => {
                bar.set_message(
                    text::fit(&text::line(words), columns(&self.output).unwrap_or(80)).into_owned(),
                );
                bar.tick();
                Ok(())
            }
            (Format::Table, None) => {
                let due = self.printed.as_ref().is_none_or(|(at, _)| at.elapsed() >= PRINTED);
                if due && !self.output.quiet { self.print(words) } else { Ok(()) }
            }
            (Format::Json, _) => {
                let value = serde_json::to_value(value)?;
                if self.last == value {
                    return Ok(());
                }
                self.output.ndjson(&value)?;
                self.last = value;
                Ok(())
            }
            (Format::Ids, _) => Ok(()),
        }
    }

    /// Prints the last line, which stays.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn end(mut self, words: &str, value: &impl Serialize) -> io::Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        match self.output.format {
            Format::Table => self.print(words),
            _ => self.show(words, value),
        }
    }

    fn print(&mut self, words: &str) -> io::Result<()> {
        if self.printed.as_ref().is_some_and(|(_, last)| last == words) {
            return Ok(());
        }
        self.printed = Some((Instant::now(), words.to_owned()));
        self.output.line(&text::line(words))
    }
}

/// How fast a count grows, for an estimate of the rest.
#[derive(Debug)]
pub struct Rate {
    began: Instant,
    first: Option<u64>,
}

impl Rate {
    /// Returns a rate whose time begins now.
    #[must_use]
    pub fn begin() -> Self {
        Self { began: Instant::now(), first: None }
    }

    /// Returns about how many milliseconds the rest takes. `done` of them took `elapsed_ms` in total; `None` while
    /// nothing is known.
    pub fn left(&mut self, done: u64, open: u64, elapsed_ms: Option<i64>) -> Option<i64> {
        let first = *self.first.get_or_insert(done);
        let seen = self.began.elapsed();
        let (count, ms) = if seen >= SEEN && done > first {
            (done - first, i64::try_from(seen.as_millis()).ok()?)
        } else {
            (done, elapsed_ms?)
        };
        let (count, open) = (i64::try_from(count).ok()?, i64::try_from(open).ok()?);
        (count > 0 && ms > 0).then(|| ms.saturating_mul(open) / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_from_what_is_done() {
        let mut rate = Rate::begin();
        assert_eq!(rate.left(0, 10, Some(1_000)), None, "nothing is done yet");
        assert_eq!(rate.left(5, 10, None), None);
        assert_eq!(rate.left(5, 10, Some(1_000)), Some(2_000));
    }
}
