//! `turnstone completions`: a completion script for a shell.

use crate::args::Cli;
use crate::output;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use std::process::ExitCode;

/// `turnstone completions`.
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    // Into memory first: the generator panics when its writer fails, as it does below `| head`.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "turnstone", &mut script);
    output::script(&script)?;
    Ok(ExitCode::SUCCESS)
}
