//! `turnstone bench`: measures this machine, so that users can size their own.

use crate::config::Config;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use std::process::ExitCode;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Subject {
    /// Accepting jobs, one by one and in batches of 100.
    Enqueue,
    /// Claiming and settling plain jobs.
    Claim,
    /// Seven-phase turns with a model that costs nothing.
    Turns,
    /// From enqueue to the first phase of an idle server.
    Start,
    /// Memory of a turn that waits for a slow model.
    Memory,
    /// Turn 10 against turn 1,000 of one engagement.
    History,
}

/// `turnstone bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// What is measured
    pub subject: Subject,
    /// The store to measure; a fresh SQLite file in the data directory when absent
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// How much goes on at once
    #[arg(long, value_name = "N")]
    pub concurrency: Option<u32>,
}

/// Measures and prints.
///
/// # Errors
/// The measurement could not be made.
pub async fn run(args: BenchArgs, config: Config) -> anyhow::Result<ExitCode> {
    let place = args.store.unwrap_or_else(|| config.server.data.display().to_string());
    Err(Failure::failed(format!("this build cannot measure {:?} on {place} yet", args.subject)).into())
}
