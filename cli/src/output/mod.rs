//! Standard output: tables for people, JSON and ids for programs. Remarks, prompts and errors go to standard error.
//!
//! No other file of this crate writes to either of them (clippy.toml). So no text of an agent, a tool or another client
//! reaches a terminal as control characters: texts are cleaned here, and JSON is escaped. JSON and documents that
//! go to a pipe or a file are exact.

pub mod table;
pub mod text;

use crate::client::Received;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use turnstone_telemetry::redact;

/// The form of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people: a table or a timeline.
    #[default]
    Table,
    /// For programs: JSON with the API's field names; streams are one JSON object per line.
    Json,
    /// Only the ids, one per line, ready for `xargs` or another command's `-`.
    Ids,
}

/// The forms that `-o` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum OutputForm {
    /// [`Format::Table`].
    #[default]
    Table,
    /// [`Format::Json`], indented.
    Json,
    /// [`Format::Json`], with each element of a list, or the one object, on a line of its own.
    Jsonl,
    /// [`Format::Ids`].
    Ids,
}

impl OutputForm {
    fn format(self) -> Format {
        match self {
            Self::Table => Format::Table,
            Self::Json | Self::Jsonl => Format::Json,
            Self::Ids => Format::Ids,
        }
    }
}

/// Where and how this run prints.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    /// The requested form.
    pub format: Format,
    /// True if JSON is printed on one line.
    pub compact: bool,
    /// True if standard output is a terminal.
    pub is_terminal: bool,
    /// True if it is a terminal that obeys cursor movements.
    pub tty: bool,
    /// True if colours may be used.
    pub color: bool,
    /// True if remarks are left out.
    pub quiet: bool,
    /// True if every request is printed.
    pub verbose: bool,
}

impl Output {
    /// Checks the terminal and the environment.
    #[must_use]
    pub fn detect(form: OutputForm, no_color: bool, quiet: bool, verbose: bool) -> Self {
        let is_terminal = standard_output().is_terminal();
        let tty = is_terminal && !is_dumb();
        Self {
            format: form.format(),
            compact: form == OutputForm::Jsonl,
            is_terminal,
            tty,
            color: tty && !no_color && allows_colors(),
            quiet,
            verbose,
        }
    }

    /// Prints one line, or several, for people.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn line(&self, line: &str) -> io::Result<()> {
        print(&text::block(line), "\n")
    }

    /// Prints a line with colours of our own: see [`text::colored`].
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn colored(&self, line: &str) -> io::Result<()> {
        print(&text::colored(line), "\n")
    }

    /// Prints a piece of a text at once, without a line break.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn piece(&self, piece: &str) -> io::Result<()> {
        print(&text::block(piece), "")
    }

    /// Clears a terminal.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn clear(&self) -> io::Result<()> {
        if self.tty { print("\u{1b}[2J\u{1b}[H", "\n") } else { Ok(()) }
    }

    /// Prints a document: to a pipe or a file exactly. On a terminal, what it would obey is escaped in a document of JSON, and
    /// removed from any other.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn document(&self, document: &str) -> io::Result<()> {
        let is_json = document.trim_start().starts_with(['{', '[']);
        let shown = match (self.is_terminal, is_json) {
            (false, _) => Cow::Borrowed(document),
            (true, true) => text::json(document),
            (true, false) => text::block(document),
        };
        print(&shown, "\n")
    }

    /// Prints a value as indented JSON, or on one line where that was requested.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn json(&self, value: &impl Serialize) -> io::Result<()> {
        if self.compact {
            return self.ndjson(value);
        }
        // A member that holds JSON as a text is parsed, so that it is indented like the others.
        let text = match serde_json::to_value(value) {
            Ok(value) => serde_json::to_string_pretty(&value),
            Err(_) => serde_json::to_string_pretty(value),
        };
        self.print_json(&text?)
    }

    /// Prints a value as one line of JSON: an element of a stream.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn ndjson(&self, value: &impl Serialize) -> io::Result<()> {
        let text = match serde_json::to_value(value) {
            Ok(value) => value.to_string(),
            // A number that is out of range stays the text that it is.
            Err(_) => serde_json::to_string(value)?.replace(['\n', '\r'], " "),
        };
        self.print_json(&text)
    }

    fn print_json(&self, json: &str) -> io::Result<()> {
        let shown = if self.is_terminal { text::json(json) } else { json.into() };
        print(&shown, "\n")
    }

    /// Prints an answer in the requested form: as JSON, the id of its subject, or the words.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn answer(&self, answer: &impl Serialize, id: &str, words: &str) -> io::Result<()> {
        match self.format {
            Format::Json => self.json(answer),
            Format::Ids => self.line(&text::line(id)),
            Format::Table => self.line(words),
        }
    }

    /// Prints a list in the requested form; `id` returns what identifies an item, or nothing.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn list<T>(
        &self,
        items: &[Received<T>],
        id: impl Fn(&T) -> &str,
        columns: &[table::Column<T>],
    ) -> io::Result<()> {
        match self.format {
            Format::Json if self.compact => items.iter().try_for_each(|item| self.ndjson(item)),
            Format::Json => self.json(&items),
            Format::Ids => items
                .iter()
                .map(|item| id(item))
                .filter(|id| !id.is_empty())
                .try_for_each(|id| self.line(&text::line(id))),
            Format::Table => {
                let rows = items.iter().map(|item| table::cells::<T>(item, columns)).collect();
                self.line(&table::ruled(table::headings(columns), rows, self.tty))?;
                if items.is_empty() {
                    self.remark("there are none");
                }
                Ok(())
            }
        }
    }

    /// A remark for people, on standard error; nothing with `--quiet`.
    pub fn remark(&self, remark: &str) {
        if !self.quiet {
            say(remark);
        }
    }

    /// Prints a detail with `--verbose`, on standard error.
    pub fn detail(&self, detail: &str) {
        if self.verbose {
            say(detail);
        }
    }
}

/// Prints words on standard error, without secrets. If it cannot be written, they are lost.
pub fn say(words: &str) {
    let _ = writeln!(standard_error(), "{}", text::block(&redact(words)));
}

/// Prints a question on standard error; the answer follows on the same line.
pub fn ask(question: &str) {
    let _ = write!(standard_error(), "{} ", text::line(&redact(question)));
}

/// Prints an error of the command line on standard error, in colour on a terminal.
pub fn usage(error: &clap::Error) {
    let styled = error.render();
    let shown = if standard_error().is_terminal() && allows_colors() {
        text::colored(&styled.ansi().to_string()).into_owned()
    } else {
        text::block(&styled.to_string()).into_owned()
    };
    let _ = write!(standard_error(), "{shown}");
}

/// Prints a script that this program generated, exactly.
///
/// # Errors
/// Standard output cannot be written.
pub fn script(script: &[u8]) -> io::Result<()> {
    standard_output().lock().write_all(script)
}

/// Returns true if standard error is a terminal.
#[must_use]
pub fn has_terminal_for_errors() -> bool {
    standard_error().is_terminal()
}

/// Returns false if the environment asks for no colours. `NO_COLOR` counts when it is set and not empty.
fn allows_colors() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && !is_dumb()
}

/// Returns true if the terminal obeys no escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn print(text: &str, end: &str) -> io::Result<()> {
    let mut out = standard_output().lock();
    write!(out, "{text}{end}")?;
    out.flush()
}

#[expect(clippy::disallowed_methods, reason = "the one place that writes to standard output")]
fn standard_output() -> io::Stdout {
    io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "the one place that writes to standard error")]
fn standard_error() -> io::Stderr {
    io::stderr()
}

/// Returns the width of the terminal; `None` when standard output is none.
#[must_use]
pub fn columns(output: &Output) -> Option<usize> {
    output.tty.then(|| comfy_table::Table::new().width()).flatten().map(usize::from)
}
