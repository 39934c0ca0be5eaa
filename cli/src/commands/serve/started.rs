//! The message of a service that runs: one line for people and programs, or one JSON object.

use crate::output::{Format, Output};
use serde::Serialize;
use std::io;

/// The message of a service that runs.
#[derive(Clone, Debug, Serialize)]
pub struct Started {
    /// The service.
    pub service: &'static str,
    /// Its name in the fleet; the api has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address of the API for clients on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The process.
    pub pid: u32,
    /// The line for people.
    #[serde(skip)]
    pub line: String,
}

impl Started {
    /// Returns a service of this process.
    #[must_use]
    pub fn new(service: &'static str, line: String) -> Self {
        Self { service, name: None, url: None, pid: std::process::id(), line }
    }

    /// Prints it.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(&self, output: &Output) -> io::Result<()> {
        if output.format == Format::Json { output.ndjson(self) } else { output.line(&self.line) }
    }
}
