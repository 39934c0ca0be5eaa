//! `turnstone doctor`: checks the configuration or the stored data, changes nothing, and suggests fixes.

mod configuration;
mod data;
mod embedded;
mod fleet;
mod issuers;

use super::Session;
use crate::failure::{Exit, reported};
use crate::output::{Format, text};
use std::process::ExitCode;
use turnstone_store::Finding;

/// The choice of what is checked.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Read everything that is stored, and name each value that is damaged: its table, its row, its column and the reason
    #[arg(long)]
    data: bool,
}

/// Checks, and prints the findings.
///
/// # Errors
/// Standard output cannot be written; with `--data`, when the configuration or the database cannot be read.
pub async fn run(args: DoctorArgs, session: &Session) -> anyhow::Result<ExitCode> {
    if args.data {
        return data::run(session).await;
    }
    let findings = match session.config(Vec::new()) {
        Err(failure) => vec![unreadable(&failure.into())],
        Ok(loaded) => {
            let config = &loaded.config;
            let mut findings = vec![Finding::good("the configuration can be read")];
            findings.extend(configuration::findings(config));
            findings.extend(issuers::findings(config).await);
            if config.store.url.is_some() {
                findings.extend(Box::pin(fleet::findings(config)).await);
            } else {
                findings.extend(embedded::findings(config));
                findings.extend(embedded::encryption(config).await);
            }
            findings
        }
    };
    print(&findings, session)?;
    if findings.iter().all(|finding| finding.ok) {
        session.output.remark("everything that was looked at is in order");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(Exit::Failed.into())
}

fn print(findings: &[Finding], session: &Session) -> anyhow::Result<()> {
    let output = &session.output;
    match output.format {
        Format::Json => output.json(&findings)?,
        Format::Ids => {
            findings
                .iter()
                .filter(|finding| !finding.ok)
                .try_for_each(|f| output.line(&text::line(&f.what)))?;
        }
        Format::Table => {
            let cell = |words: &str| text::line(&turnstone_telemetry::redact(words));
            for finding in findings {
                let word = if finding.ok { "ok" } else { "trouble" };
                output.line(&format!("{word:<8} {}", cell(&finding.what)))?;
                if !finding.advice.is_empty() {
                    output.line(&format!("{:<8} to do: {}", "", cell(&finding.advice)))?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the finding for a configuration that cannot be read, with the same message as other commands.
fn unreadable(error: &anyhow::Error) -> Finding {
    let (_, words) = reported(error);
    Finding::bad("the configuration cannot be read", words.join("; "))
}
