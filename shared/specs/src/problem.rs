//! A problem of a document, with its place and its rule.

use std::fmt;

/// The severity of a problem, which decides if the document can be used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document can be used, but a part of it may not mean what its author intends.
    Warning,
}

/// One problem of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Line of the document, from 1; 0 when the whole document is meant.
    pub line: u32,
    /// Column in characters, from 1; 0 when the whole document is meant.
    pub column: u32,
    /// The broken rule: `OAS-16`, `OAS-A19`, `OSSA-role`, `YAML`.
    pub rule: &'static str,
    /// The severity of the problem.
    pub severity: Severity,
    /// A sentence with the problem and its correction.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{}: {severity}: {} [{}]", self.line, self.column, self.message, self.rule)
    }
}

/// A place in a document; line and column from 1, both 0 for the whole document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The most problems that are reported.
const MAX_PROBLEMS: usize = 100;

/// The most problems that are kept to choose from, so that a document of many thousand mistakes is read in
/// bounded time.
const MAX_KEPT: usize = 10 * MAX_PROBLEMS;

/// Problems found so far.
#[derive(Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
    errors: usize,
    for_running: bool,
}

impl Problems {
    /// Returns a list for a document that is to be run, not only checked.
    pub(crate) fn for_running() -> Self {
        Self { for_running: true, ..Self::default() }
    }

    /// Adds a problem of a valid document with which no run can succeed: a warning in `lint`, an error before a
    /// run.
    pub(crate) fn unrunnable(&mut self, at: Place, rule: &'static str, message: impl Into<String>) {
        let severity = if self.for_running { Severity::Error } else { Severity::Warning };
        self.add(at, rule, severity, message.into());
    }

    pub(crate) fn error(&mut self, at: Place, rule: &'static str, message: impl Into<String>) {
        self.add(at, rule, Severity::Error, message.into());
    }

    pub(crate) fn warning(&mut self, at: Place, rule: &'static str, message: impl Into<String>) {
        self.add(at, rule, Severity::Warning, message.into());
    }

    fn add(&mut self, at: Place, rule: &'static str, severity: Severity, message: String) {
        self.errors += usize::from(severity == Severity::Error);
        // The first error is always kept.
        if self.found.len() >= MAX_KEPT && !(severity == Severity::Error && self.errors == 1) {
            return;
        }
        let problem = Problem { line: at.line, column: at.column, rule, severity, message };
        // Aliases repeat their anchor's value, and so its problems.
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }

    pub(crate) fn any_error(&self) -> bool {
        self.errors > 0
    }

    /// Returns the number of errors, repeated ones included.
    pub(crate) const fn errors(&self) -> usize {
        self.errors
    }

    /// Returns all of them in the order of the document, errors first when there are too many to show.
    pub(crate) fn in_order(mut self) -> Vec<Problem> {
        if self.found.len() > MAX_PROBLEMS {
            self.found.sort_by_key(|problem| problem.severity);
            self.found.truncate(MAX_PROBLEMS);
        }
        self.found.sort_by_key(|problem| (problem.line, problem.column));
        self.found
    }
}
