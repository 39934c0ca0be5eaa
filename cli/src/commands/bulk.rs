//! One action on many jobs at once, chosen by a filter on the server.

use super::{Session, several};
use crate::client::ids::Named;
use crate::client::{Client, Received};
use crate::failure::{Exit, Failure};
use crate::output::{Format, text};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::process::ExitCode;
use turnstone_api::answers::BulkReply;
use turnstone_domain::JobState;

/// Ids, or a filter.
#[derive(Clone, Debug, Args)]
pub struct JobsArgs {
    /// The jobs' ids or their first characters; `-` reads them from standard input, one per line
    #[arg(value_name = "ID", required_unless_present_any = ["all", "state", "queue", "job_type", "tag", "agent", "error_code"])]
    pub ids: Vec<String>,
    /// Every job in this state, instead of ids
    #[arg(long, conflicts_with = "ids", value_parser = PossibleValuesParser::new(JobState::ALL.map(JobState::as_str)))]
    pub state: Option<String>,
    /// Every job of this queue, instead of ids
    #[arg(long, conflicts_with = "ids")]
    pub queue: Option<String>,
    /// Every job of this type, instead of ids
    #[arg(long = "type", conflicts_with = "ids", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// Every job with this tag, instead of ids
    #[arg(long, conflicts_with = "ids", value_name = "TAG")]
    pub tag: Option<String>,
    /// Every job of this agent, instead of ids
    #[arg(long, conflicts_with = "ids", value_name = "NAME")]
    pub agent: Option<String>,
    /// Every job whose last error has this code, instead of ids
    #[arg(long, conflicts_with = "ids", value_name = "CODE")]
    pub error_code: Option<String>,
    /// Every job that the action applies to, instead of ids
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
    /// Only print how many jobs the filter finds, or which jobs are named
    #[arg(long)]
    pub dry_run: bool,
}

/// The action and its endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// `cancel`: the action.
    pub verb: &'static str,
    /// `cancelled`: the outcome.
    pub done: &'static str,
    /// The endpoint that applies the action to all jobs of a filter.
    pub path: &'static [&'static str],
}

impl JobsArgs {
    /// Applies the action to the named jobs, one after the other, or to all jobs of the filter, on the server.
    ///
    /// # Errors
    /// The ids cannot be read, the request fails, or a job was refused.
    pub async fn run<F, D, T: Serialize>(
        self,
        session: &Session,
        bulk: Bulk,
        one: F,
    ) -> anyhow::Result<ExitCode>
    where
        F: Fn(Client, String) -> D,
        D: Future<Output = Result<T, Failure>>,
    {
        if self.ids.is_empty() {
            return self.filtered(session, bulk).await;
        }
        let (client, output) = (session.client()?, session.output);
        let mut outcome = several::Outcome::new(output);
        for given in several::ids(self.ids)? {
            let id = match client.whole_id(Named::Job, &given).await {
                Ok(id) => id,
                Err(failure) => {
                    outcome.failed(&given, failure)?;
                    continue;
                }
            };
            let shown = text::line(&id);
            if self.dry_run {
                match output.format {
                    Format::Table => output.line(&format!("would {} {shown}", bulk.verb))?,
                    Format::Json => output.ndjson(&json!({ "id": id }))?,
                    Format::Ids => output.line(&shown)?,
                }
                continue;
            }
            match one(client.clone(), id.clone()).await {
                Ok(answer) => match output.format {
                    Format::Json => output.ndjson(&answer)?,
                    Format::Ids => output.line(&shown)?,
                    Format::Table => output.line(&format!("{shown} {}", bulk.done))?,
                },
                Err(failure) => outcome.failed(&id, failure)?,
            }
        }
        outcome.finish(&format!("could not be {}", bulk.done))
    }

    fn filter(&self) -> Map<String, Value> {
        let given = [
            ("state", &self.state),
            ("queue", &self.queue),
            ("type", &self.job_type),
            ("tag", &self.tag),
            ("agent", &self.agent),
            ("error_code", &self.error_code),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into()))).collect()
    }

    async fn filtered(&self, session: &Session, bulk: Bulk) -> anyhow::Result<ExitCode> {
        let (client, output) = (session.client()?, session.output);
        let body = json!({ "filter": self.filter(), "confirm": true, "dry_run": self.dry_run });
        let answer: Received<BulkReply> = client.post(bulk.path, &body).await?;
        match output.format {
            Format::Json => output.json(&answer)?,
            Format::Ids => answer.ids.iter().try_for_each(|id| output.line(&text::line(id)))?,
            Format::Table if self.dry_run => {
                let many = if answer.matched == 1 { "job" } else { "jobs" };
                output.line(&format!("would {} {} {many}", bulk.verb, answer.matched))?
            }
            Format::Table => {
                output.line(&format!("{} of {} jobs {}", answer.succeeded, answer.matched, bulk.done))?
            }
        }
        Ok(if answer.failed > 0 { Exit::Failed.into() } else { ExitCode::SUCCESS })
    }
}
