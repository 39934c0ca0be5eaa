//! `turnstone job cancel`: end jobs.

use crate::client::unwrapped;
use crate::commands::{Session, several};
use crate::output::{Format, text};
use clap::Args;
use std::process::ExitCode;

/// `turnstone job cancel`.
#[derive(Clone, Debug, Args)]
pub struct CancelArgs {
    /// The jobs' ids; `-` reads them from standard input, one per line
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
}

/// Cancels one after the other. One that cannot be cancelled does not keep the others from it.
///
/// # Errors
/// The ids cannot be read, the server cannot be asked, or a job could not be cancelled.
pub async fn run(args: CancelArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let client = session.client()?;
    let output = session.output;
    let mut outcome = several::Outcome::new(output);
    for id in several::ids(args.ids)? {
        match client.delete(&["ojs", "v1", "jobs", &id]).await {
            Ok(answer) => match output.format {
                Format::Json => output.ndjson(&unwrapped(answer, "job"))?,
                Format::Ids => output.line(&text::line(&id))?,
                Format::Table => output.line(&format!("{} cancelled", text::line(&id)))?,
            },
            Err(failure) => outcome.failed(&id, failure)?,
        }
    }
    outcome.finish("could not be cancelled")
}
