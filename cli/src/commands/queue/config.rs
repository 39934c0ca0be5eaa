//! `turnstone queue set`: bounds and limits of a queue.

use crate::client::Received;
use crate::commands::Session;
use crate::failure::Failure;
use crate::output::text;
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use turnstone_api::answers::QueueDetail;

/// `turnstone queue set`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  turnstone queue set mail --max-depth 100000 --per-second 50
  turnstone queue set mail --max-depth none")]
pub struct SetArgs {
    /// The queue; it need not exist yet
    pub name: String,
    /// Refuse jobs while this many wait; none takes the bound away
    #[arg(long, value_name = "N", value_parser = bound)]
    pub max_depth: Option<Bound>,
    /// At most this many jobs are active at once; none removes the limit
    #[arg(long, value_name = "N", value_parser = bound)]
    pub concurrency: Option<Bound>,
    /// At most this many jobs start per second; none removes the limit
    #[arg(long, value_name = "N", value_parser = bound)]
    pub per_second: Option<Bound>,
}

/// A bound, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound(Option<u64>);

fn bound(text: &str) -> Result<Bound, String> {
    if text == "none" {
        return Ok(Bound(None));
    }
    text.parse().map(|number| Bound(Some(number))).map_err(|_| "write a whole number, or none".to_owned())
}

/// Sets the given values and leaves the rest as it is.
///
/// # Errors
/// Nothing is given, or the server refused.
pub async fn run(args: &SetArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let mut config: Map<String, Value> = Map::new();
    let mut put = |name: &str, bound: Option<Bound>, of: fn(u64) -> Value| {
        if let Some(bound) = bound {
            config.insert(name.to_owned(), bound.0.map_or(Value::Null, of));
        }
    };
    put("backpressure", args.max_depth, |depth| json!({ "max_depth": depth, "strategy": "reject" }));
    put("concurrency", args.concurrency, Value::from);
    put("rate_limit", args.per_second, |rate| json!({ "max_per_second": rate }));
    if config.is_empty() {
        let failure = Failure::usage("there is nothing to set");
        return Err(failure.hint("give --max-depth, --concurrency or --per-second").into());
    }
    let path = ["ojs", "v1", "queues", &args.name];
    let (client, output) = (session.client()?, session.output);
    let answer: Received<QueueDetail> = client.put(&path, &config).await?;
    let words = format!("{}: {}", text::line(&args.name), super::show::bounds(&answer));
    output.answer(&answer, &args.name, &words)?;
    Ok(ExitCode::SUCCESS)
}
