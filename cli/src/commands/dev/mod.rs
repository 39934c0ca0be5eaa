//! `turnstone dev`: API, scheduler and worker in one process on an SQLite file.

pub mod timeline;
mod wording;

use crate::config::Config;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// `turnstone dev`.
#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// Register the example agents, run the example research job against the scripted model and show its timeline
    #[arg(long)]
    pub demo: bool,
    /// Where the data is kept [default: ./.turnstone]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<String>,
    /// The most turns in flight at once [default: 64]
    #[arg(long, value_name = "N")]
    pub slots: Option<u32>,
}

impl DevArgs {
    /// What the flags say, by configuration key. The effective values are then read from the [`Config`].
    #[must_use]
    pub fn overrides(&self) -> Vec<(&'static str, String)> {
        let data = self.data.as_ref().map(|data| ("server.data", data.display().to_string()));
        let bind = self.bind.as_ref().map(|bind| ("server.bind", bind.clone()));
        let slots = self.slots.map(|slots| ("worker.slots", slots.to_string()));
        data.into_iter().chain(bind).chain(slots).collect()
    }
}

/// Runs until Ctrl-C.
///
/// # Errors
/// Something could not be started.
pub async fn run(args: DevArgs, config: Config) -> anyhow::Result<ExitCode> {
    let demo = if args.demo { " with the demo" } else { "" };
    Err(Failure::failed(format!("this build cannot serve{demo} on {} yet", config.server.bind)).into())
}
