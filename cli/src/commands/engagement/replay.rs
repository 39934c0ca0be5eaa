//! `turnstone engagement replay`: runs a record again on this machine, without any model, tool or store.

use super::transfer;
use crate::commands::Session;
use crate::failure::{Exit, Failure};
use crate::output::{Format, text};
use std::path::Path;
use std::process::ExitCode;
use turnstone_domain::record::EngagementRecord;
use turnstone_worker::{Difference, rerun};

/// Runs it again and prints the first difference, if there is one.
///
/// # Errors
/// The document cannot be fetched or read.
pub async fn run(what: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let document = if what == "-" || Path::new(what).exists() {
        transfer::read(what)?
    } else {
        session.client()?.get_text(&["engagements", what, "export"]).await?
    };
    let record = EngagementRecord::read(&document).map_err(Failure::failed)?;
    let reported = Box::pin(rerun(&record)).await.map_err(Failure::failed)?;
    let output = session.output;
    let (turns, phases) = (reported.turns, reported.phases);
    match output.format {
        Format::Json => output.json(&reported)?,
        Format::Ids | Format::Table => match &reported.difference {
            None => output.line(&format!(
                "the same: {}, {}, and the result",
                text::counted(turns, "turn"),
                text::counted(phases, "phase")
            ))?,
            Some(difference) => output.line(&text::line(&sentence(difference)))?,
        },
    }
    Ok(if reported.difference.is_none() { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

fn sentence(difference: &Difference) -> String {
    let place = match difference.phase {
        Some(phase) => format!("turn {}, phase {phase}", difference.turn),
        None => format!("turn {}", difference.turn),
    };
    let both = match (&difference.recorded, &difference.rerun) {
        (None, None) => String::new(),
        (a, b) => {
            let shown = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
            format!(": {} on record, {} now", shown(a), shown(b))
        }
    };
    format!("it differs in {place}: {}{both}", difference.what)
}
