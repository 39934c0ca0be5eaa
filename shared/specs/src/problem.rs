//! What is wrong with a document, where, and by which rule.

use std::fmt;

/// Whether a document with this problem can be used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document can be used, but not all of it means what its author may think.
    Warning,
}

/// One thing that is wrong with a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Line of the document, from 1; 0 when the whole document is meant.
    pub line: u32,
    /// Column in characters, from 1; 0 when the whole document is meant.
    pub column: u32,
    /// The rule that is broken: `OAS-16`, `OAS-A19`, `OSSA-role`, `YAML`.
    pub rule: &'static str,
    /// Whether the document can still be used.
    pub severity: Severity,
    /// A sentence that says what is wrong and what to write instead.
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

/// More problems than this help nobody.
const MAX_PROBLEMS: usize = 100;

/// Problems found so far.
#[derive(Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    pub(crate) fn error(&mut self, at: Place, rule: &'static str, message: impl Into<String>) {
        self.add(at, rule, Severity::Error, message.into());
    }

    pub(crate) fn warning(&mut self, at: Place, rule: &'static str, message: impl Into<String>) {
        self.add(at, rule, Severity::Warning, message.into());
    }

    fn add(&mut self, at: Place, rule: &'static str, severity: Severity, message: String) {
        let problem = Problem { line: at.line, column: at.column, rule, severity, message };
        // Aliases repeat what they stand for, and so its problems.
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }

    pub(crate) fn any_error(&self) -> bool {
        self.found.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All of them in the order of the document, errors first when there are too many to show.
    pub(crate) fn in_order(mut self) -> Vec<Problem> {
        if self.found.len() > MAX_PROBLEMS {
            self.found.sort_by_key(|problem| problem.severity);
            self.found.truncate(MAX_PROBLEMS);
        }
        self.found.sort_by_key(|problem| (problem.line, problem.column));
        self.found
    }
}
