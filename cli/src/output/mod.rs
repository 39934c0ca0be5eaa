//! Standard output: tables for people, JSON and ids for programs. Remarks go to standard error.

pub mod table;
pub mod text;

use crate::client::Received;
use serde::Serialize;
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
    /// True if standard output is a terminal that obeys cursor movements.
    pub tty: bool,
    /// True if colours may be used.
    pub color: bool,
    /// True if remarks are left out.
    pub quiet: bool,
    /// True if every request is printed.
    pub verbose: bool,
}

impl Output {
    /// Checks the terminal and the environment. `NO_COLOR` counts when it is set and not empty.
    #[must_use]
    pub fn detect(form: OutputForm, no_color: bool, quiet: bool, verbose: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let tty = io::stdout().is_terminal() && !dumb;
        Self {
            format: form.format(),
            compact: form == OutputForm::Jsonl,
            tty,
            color: tty && !no_color && !set("NO_COLOR"),
            quiet,
            verbose,
        }
    }

    /// Prints one line.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn line(&self, line: &str) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{line}")
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
        self.line(&text::json(&text?))
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
        self.line(&text::json(&text))
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

fn say(words: &str) {
    // If standard error cannot be written, the line is lost.
    let _ = writeln!(io::stderr().lock(), "{}", text::block(&redact(words)));
}

/// Returns the width of the terminal; `None` when standard output is none.
#[must_use]
pub fn columns(output: &Output) -> Option<usize> {
    output.tty.then(|| comfy_table::Table::new().width()).flatten().map(usize::from)
}
