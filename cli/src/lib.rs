//! `turnstone`: the server, its worker and scheduler, and the operator's commands, in one program.
//!
//! The first commands below run services over a store. Most others are clients of a running API, and contain no rules of jobs.
//! `doctor`, `migrate` and `config` read the configuration of the services or their database.
//!
//! ```text
//!  args ─▶ config: flag, environment, turnstone.toml, default
//!    │
//!    ├─▶ conceal: a serving process hides its secrets before it reads them
//!    ╰─▶ commands ─┬─ dev, api, scheduler, worker, migrate ─▶ crates api, scheduler, worker over one store
//!                  ├─ job, review, agent, queue … ─▶ client ─▶ a running API ─▶ output: table, JSON, ids
//!                  ├─ doctor, config ─▶ what is misconfigured
//!                  ╰─ bench ─▶ measurements of this machine
//!  failure: the cause, the next step, the exit code
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod client;
mod commands;
mod conceal;
mod config;
#[cfg(test)]
mod documented;
mod failure;
mod output;

use clap::Parser as _;
use commands::serve::programs::RUN_PROGRAM;
use std::process::ExitCode;
use turnstone_worker::tool::program::become_program;

/// The exit code of the launcher of programs when it cannot become the program, as that of a shell.
const NOT_STARTED: u8 = 126;

/// Runs the command that the arguments name, and returns the exit code.
#[must_use]
pub fn run() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|command| command == RUN_PROGRAM) {
        let why = anyhow::Error::msg(become_program(arguments));
        failure::report(&why);
        return NOT_STARTED.into();
    }
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            output::usage(&error);
            return failure::Exit::Usage.into();
        }
        // The help and the version.
        Err(asked) => asked.exit(),
    };
    let concealed = if cli.command.reads_secrets() { conceal::conceal() } else { Ok(()) };
    client::install_tls();
    concealed
        .map_err(anyhow::Error::from)
        .and_then(|()| commands::start(cli))
        .unwrap_or_else(|error| failure::report(&error).into())
}
