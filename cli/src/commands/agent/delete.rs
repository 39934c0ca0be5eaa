//! `turnstone agent delete`: takes agents out of the register.

use crate::commands::{Session, several};
use crate::output::{Format, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;

/// `turnstone agent delete`.
#[derive(Clone, Debug, Args)]
pub struct DeleteArgs {
    /// The agents' names; `-` reads them from standard input
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Remove them although other agents name them; calls of them then fail
    #[arg(long)]
    pub allow_unresolved: bool,
}

/// Removes them one after the other. A refused one does not keep the others.
///
/// # Errors
/// The request fails, or an agent was not removed.
pub async fn run(args: DeleteArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let query: &[(&str, String)] =
        if args.allow_unresolved { &[("allow_unresolved", "1".to_owned())] } else { &[] };
    let mut outcome = several::Outcome::new(output);
    for name in several::ids(args.names)? {
        match client.delete_some::<Value>(&["agents", &name], query).await {
            Ok(answer) => match output.format {
                Format::Json => output.ndjson(&answer)?,
                Format::Ids => output.line(&text::line(&name))?,
                Format::Table => output.line(&format!("agent {} is removed", text::line(&name)))?,
            },
            Err(failure) => outcome.failed(&name, failure)?,
        }
    }
    outcome.finish("agents were not removed")
}
