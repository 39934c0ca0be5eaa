//! `turnstone job results`: the outcomes of a batch, one JSON object per line.

use crate::commands::Session;
use crate::output::{Format, text};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use serde_json::{Map, Value};
use std::process::ExitCode;
use turnstone_domain::JobState;

/// The members of a job that are its outcome.
const MEMBERS: [&str; 11] = [
    "id",
    "type",
    "args",
    "state",
    "result",
    "error",
    "enqueued_at",
    "completed_at",
    "ext_agent_engagement_id",
    "ext_agent_tokens_used",
    "ext_agent_cost",
];

/// `turnstone job results`.
#[derive(Clone, Debug, Args)]
pub struct ResultsArgs {
    /// The tag of the jobs
    #[arg(long, value_name = "TAG")]
    pub tag: String,
    /// Only jobs in this state; without it, all jobs that have ended
    #[arg(long, value_parser = PossibleValuesParser::new(JobState::ALL.map(JobState::as_str)))]
    pub state: Option<String>,
}

/// Prints the outcomes, the jobs that were enqueued first before the others.
///
/// # Errors
/// The request fails.
pub async fn run(args: &ResultsArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let mut query = vec![("tag", args.tag.clone()), ("order", "asc".to_owned())];
    query.extend(args.state.clone().map(|state| ("state", state)));
    let (mut printed, mut open) = (0_usize, 0_usize);
    client
        .each_job(&query, |job| {
            if args.state.is_none() && !job.state.known().is_some_and(JobState::is_terminal) {
                open += 1;
                return Ok(());
            }
            printed += 1;
            match output.format {
                Format::Ids => output.line(&text::line(&job.id)),
                Format::Json | Format::Table => output.ndjson(&outcome(job)?),
            }
        })
        .await?;
    if open > 0 {
        output.remark(&format!("{open} jobs of {} have not ended", text::line(&args.tag)));
    } else if printed == 0 {
        output.remark(&format!("no job has tag {}", text::line(&args.tag)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the members of a job that are its outcome; absent ones are left out.
fn outcome(job: &impl Serialize) -> serde_json::Result<Map<String, Value>> {
    let mut all: Map<String, Value> = serde_json::from_value(serde_json::to_value(job)?)?;
    Ok(MEMBERS
        .into_iter()
        .filter_map(|name| all.remove_entry(name))
        .filter(|(_, value)| !value.is_null())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::job::sample;
    use serde_json::json;

    #[test]
    fn an_outcome_has_no_other_members() {
        let job = sample(&json!({"state": "completed", "result": {"a": 1}, "error": null}));
        let names: Vec<String> = outcome(&job).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["id", "type", "args", "state", "result", "enqueued_at"]);
    }
}
