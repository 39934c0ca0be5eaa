//! `turnstone`: the server, its worker and scheduler, and the operator's commands, in one program.
//!
//! The first commands below run services over a store. Most others are clients of a running API, and contain no rules of jobs.
//! `doctor`, `migrate` and `config` read the configuration of the services or their database.
//!
//! ```text
//!  args ─▶ config: flag, environment, turnstone.toml, default
//!    │
//!    ╰─▶ commands ─┬─ dev, api, scheduler, worker, migrate ─▶ crates api, scheduler, worker over one store
//!                  ├─ job, review, agent, queue … ─▶ client ─▶ a running API ─▶ output: table, JSON, ids
//!                  ├─ doctor, config ─▶ what is misconfigured
//!                  ╰─ bench ─▶ measurements of this machine
//!  failure: the cause, the next step, the exit code
//! ```

mod args;
mod client;
mod commands;
mod config;
#[cfg(test)]
mod documented;
mod failure;
mod output;

use clap::Parser as _;
use std::process::ExitCode;

/// Runs the command that the arguments name, and returns the exit code.
#[must_use]
pub fn run() -> ExitCode {
    let cli = args::Cli::parse();
    client::install_tls();
    commands::start(cli).unwrap_or_else(|error| failure::report(&error, &mut std::io::stderr().lock()).into())
}
