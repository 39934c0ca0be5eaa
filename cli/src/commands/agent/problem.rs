//! A problem of an agent file, from any check.

use super::reach::Missing;
use crate::output::{Output, text};
use serde::Serialize;
use std::fmt;
use turnstone_api::answers::Remark;
use turnstone_specs::{Problem, Severity};

/// A problem of an agent file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FoundProblem {
    /// The file.
    pub file: String,
    /// From 1; 0 for the whole document.
    pub line: u64,
    /// From 1; 0 for the whole document.
    pub column: u64,
    /// The rule's stable name.
    pub rule: String,
    /// `error` or `warning`.
    pub severity: String,
    /// The problem, and how to fix it.
    pub message: String,
}

impl FoundProblem {
    /// Returns a problem that the reader of this process found.
    #[must_use]
    pub fn of(file: &str, problem: Problem) -> Self {
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        Self {
            file: file.to_owned(),
            line: problem.line.into(),
            column: problem.column.into(),
            rule: problem.rule.to_owned(),
            severity: severity.to_owned(),
            message: problem.message,
        }
    }

    /// Returns the problem of a file that cannot be read at all.
    #[must_use]
    pub fn unreadable(file: &str, message: String) -> Self {
        let (rule, severity) = ("file".to_owned(), "error".to_owned());
        Self { file: file.to_owned(), line: 0, column: 0, rule, severity, message }
    }

    /// Returns the problem of a thing that the document names and that cannot be reached from here.
    #[must_use]
    pub fn unreached(file: &str, missing: Missing) -> Self {
        Self {
            file: file.to_owned(),
            line: 0,
            column: 0,
            rule: "reach".to_owned(),
            severity: if missing.perhaps { "warning" } else { "error" }.to_owned(),
            message: missing.message,
        }
    }

    /// Returns a problem that the server found.
    #[must_use]
    pub fn remarked(file: &str, remark: &Remark) -> Self {
        let Remark { line, column, rule, severity, message } = remark;
        Self {
            file: file.to_owned(),
            line: (*line).into(),
            column: (*column).into(),
            rule: rule.clone(),
            severity: severity.to_ascii_lowercase(),
            message: message.clone(),
        }
    }

    /// Prints the problem in colour where colours are wanted.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(&self, output: &Output) -> std::io::Result<()> {
        let line = text::line(&self.to_string());
        let code = if self.severity == "error" { "31" } else { "33" };
        let word = format!(": {}[", self.severity);
        let painted = format!(": \u{1b}[{code}m{}\u{1b}[0m[", self.severity);
        output.colored(&if output.color { line.replacen(&word, &painted, 1) } else { line })
    }
}

impl fmt::Display for FoundProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}[{}] {}", self.severity, self.rule, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_compilers_write_it() {
        let said = |line: u32, severity: &str| {
            let (rule, message) = ("OAS-12".to_owned(), "No.".to_owned());
            let remark = Remark { line, column: 5, rule, severity: severity.to_owned(), message };
            FoundProblem::remarked("a.yaml", &remark).to_string()
        };
        assert_eq!(said(3, "Error"), "a.yaml:3:5: error[OAS-12] No.");
        assert_eq!(said(0, "warning"), "a.yaml: warning[OAS-12] No.");
    }
}
