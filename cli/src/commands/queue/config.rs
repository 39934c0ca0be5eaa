//! `turnstone queue set`: bounds and limits of a queue.

use crate::commands::Session;
use crate::failure::Failure;
use crate::output::{Format, text};
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// `turnstone queue set`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: turnstone queue set mail --max-depth 100000 --per-second 50")]
pub struct SetArgs {
    /// The queue; it need not exist yet
    pub name: String,
    /// Refuse jobs while this many wait
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u64>,
    /// At most this many jobs are active at once
    #[arg(long, value_name = "N")]
    pub concurrency: Option<u64>,
    /// At most this many jobs start per second
    #[arg(long, value_name = "N")]
    pub per_second: Option<u64>,
}

/// Sets what is given.
///
/// # Errors
/// Nothing is given, or the server refused.
pub async fn run(args: &SetArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let mut config: Map<String, Value> = Map::new();
    if let Some(depth) = args.max_depth {
        config.insert("backpressure".to_owned(), json!({ "max_depth": depth, "strategy": "reject" }));
    }
    if let Some(concurrency) = args.concurrency {
        config.insert("concurrency".to_owned(), concurrency.into());
    }
    if let Some(rate) = args.per_second {
        config.insert("rate_limit".to_owned(), json!({ "max_per_second": rate }));
    }
    if config.is_empty() {
        let failure = Failure::usage("there is nothing to set");
        return Err(failure.hint("give --max-depth, --concurrency or --per-second").into());
    }
    let path = ["ojs", "v1", "admin", "queues", &args.name, "config"];
    let (client, output) = (session.client()?, session.output);
    let answer = client.put(&path, &Value::Object(config)).await?;
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Ids => output.line(&text::line(&args.name))?,
        Format::Table => output.line(&format!("{} is set", text::line(&args.name)))?,
    }
    Ok(ExitCode::SUCCESS)
}
