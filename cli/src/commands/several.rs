//! Commands that apply one action to several targets: the sources of the names, and the treatment of failures.

use crate::failure::{Exit, Failure, report};
use crate::output::Output;
use anyhow::Context as _;
use std::io::{self, Read as _};
use std::process::ExitCode;

/// Returns the given ids; `-` is replaced by those on standard input, separated by white space.
///
/// # Errors
/// Standard input cannot be read, or there is no id at all.
pub fn ids(given: Vec<String>) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::with_capacity(given.len());
    for id in given {
        if id == "-" {
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text).context("standard input cannot be read")?;
            ids.extend(text.split_whitespace().map(str::to_owned));
        } else {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Counts failures; the first one determines the exit of the program.
#[derive(Debug)]
pub struct Outcome {
    output: Output,
    first: Option<Exit>,
    failures: usize,
}

impl Outcome {
    /// Nothing has failed yet.
    #[must_use]
    pub fn new(output: Output) -> Self {
        Self { output, first: None, failures: 0 }
    }

    /// Reports a failure and continues, unless it would be the same for all others.
    ///
    /// # Errors
    /// The failure itself, when no server answered or it refused the key.
    pub fn failed(&mut self, what: &str, failure: Failure) -> Result<(), Failure> {
        let is_of_one = failure.refusal.is_some() || matches!(failure.exit, Exit::NotFound | Exit::Usage);
        if !is_of_one || failure.exit == Exit::Auth {
            return Err(failure);
        }
        self.first.get_or_insert(failure.exit);
        self.failures += 1;
        let failure = Failure { message: format!("{what}: {}", failure.message), ..failure };
        report(&failure.into());
        Ok(())
    }

    /// Returns the exit of the program.
    ///
    /// # Errors
    /// None; the type saves the callers a conversion.
    pub fn finish(self, what: &str) -> anyhow::Result<ExitCode> {
        if self.failures > 1 {
            self.output.remark(&format!("{} {what}", self.failures));
        }
        Ok(self.first.unwrap_or(Exit::Ok).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_decides_and_an_unreachable_server_ends_everything() {
        let output = Output { quiet: true, ..Output::default() };
        let mut outcome = Outcome::new(output);
        assert_eq!(outcome.failed("a", Failure::of_answer(409, "")), Ok(()));
        assert_eq!(outcome.failed("b", Failure::of_answer(404, "")), Ok(()));
        assert_eq!(outcome.failed("01", Failure::usage("01 begins the ids of several jobs")), Ok(()));
        assert_eq!((outcome.first, outcome.failures), (Some(Exit::Conflict), 3));
        assert!(outcome.failed("c", Failure::failed("no server answers")).is_err());
        assert!(outcome.failed("d", Failure::of_answer(401, "")).is_err());
    }
}
