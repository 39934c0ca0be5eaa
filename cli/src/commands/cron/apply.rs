//! `turnstone cron apply`: make or replace an entry.

use crate::client::Received;
use crate::commands::Session;
use crate::commands::job::fields;
use crate::failure::Failure;
use crate::output::table::time;
use crate::output::text;
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use turnstone_ojs::cron::CronBody;

/// `turnstone cron apply`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  turnstone cron apply nightly --at '0 3 * * *' --zone Europe/Berlin --type report.build
  turnstone cron apply hourly-mail --at @hourly --type mail.digest --args '[\"news\"]' --overlap allow
  turnstone cron apply digest --at @hourly --type agent.digest --args '[\"news\"]' --agent digester
  turnstone cron apply nightly --file nightly.json")]
pub struct ApplyArgs {
    /// The entry's name
    pub name: String,
    /// When: five fields (or six with seconds), or @hourly, @daily, @every 5m
    #[arg(long, value_name = "EXPRESSION", required_unless_present = "file")]
    pub at: Option<String>,
    /// The time zone that the times are in
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub zone: String,
    /// The job's type
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "file")]
    pub job_type: Option<String>,
    /// The job's arguments, a JSON array
    #[arg(long, value_name = "JSON", default_value = "[]")]
    pub args: String,
    /// The job's queue
    #[arg(long)]
    pub queue: Option<String>,
    /// The registered agent that runs it
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Any other field of the job, such as ext_agent_model=gpt-4o; a value that is JSON is taken as JSON
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
    /// Treatment of an occurrence while the last job still waits or runs
    #[arg(long, value_parser = ["skip", "allow", "cancel_previous", "enqueue"], default_value = "skip")]
    pub overlap: String,
    /// A JSON file with the whole request instead of flags: {"expression": "@daily", "job_template": {"type": "…", "args": []}}
    #[arg(long, value_name = "FILE", conflicts_with_all = ["at", "job_type", "queue", "agent", "set"])]
    pub file: Option<String>,
}

/// Sends the entry.
///
/// # Errors
/// The file or the arguments are not JSON, the request fails, or the server refuses it.
pub async fn run(args: &ApplyArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let body = body(args)?;
    for remark in fields::remarks(std::slice::from_ref(&body["job_template"])) {
        output.remark(&format!("warning: {remark}"));
    }
    let cron: Received<CronBody> = client.part(&client.post(super::CRONS.path, &body).await?, "cron")?;
    let next = cron.next_run_at.as_ref().map_or_else(|| "never".to_owned(), time);
    let words = format!("{} runs next at {next} ({})", text::line(&args.name), cron.timezone);
    output.answer(&cron, &args.name, &words)?;
    Ok(ExitCode::SUCCESS)
}

fn body(args: &ApplyArgs) -> Result<Value, Failure> {
    if let Some(file) = &args.file {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("{file} cannot be read: {error}")))?;
        let mut body: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::usage(format!("{file} is not JSON: {error}")))?;
        if !body.is_object() {
            return Err(Failure::usage(format!("{file} is not a JSON object")));
        }
        body["name"] = args.name.as_str().into();
        return Ok(body);
    }
    let given: Value = serde_json::from_str(&args.args).map_err(|error| {
        Failure::usage(format!("--args is not JSON: {error}")).hint("--args '[1, \"two\"]'")
    })?;
    let options = args.queue.as_ref().map_or_else(|| json!({}), |queue| json!({ "queue": queue }));
    let mut job = Map::new();
    job.insert("type".to_owned(), json!(args.job_type));
    job.insert("args".to_owned(), given);
    job.insert("options".to_owned(), options);
    fields::put(&mut job, &args.set, args.agent.as_deref())?;
    Ok(json!({
        "name": args.name, "expression": args.at, "timezone": args.zone, "overlap_policy": args.overlap,
        "job_template": job,
    }))
}
