//! `turnstone`: the server, its worker and scheduler, and the operator's commands, in one program.

mod args;
mod client;
mod commands;
mod config;
mod failure;
mod output;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    client::install_tls();
    commands::start(cli).unwrap_or_else(|error| failure::report(&error, &mut std::io::stderr().lock()).into())
}
