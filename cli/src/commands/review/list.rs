//! `turnstone review list`: what agents ask.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use crate::output::text;
use clap::{Args, ValueEnum};
use std::process::ExitCode;

/// The most columns that a question takes in a table.
const QUESTION: usize = 60;

const COLUMNS: &[Column] = &[
    column("ID", |review| plain(&review["id"])),
    column("KIND", |review| plain(&review["kind"])),
    column("STATE", |review| plain(&review["state"])),
    column("REVIEWER", |review| plain(&review["reviewer"])),
    column("JOB", |review| plain(&review["job_id"])),
    column("ASKED", |review| time(&review["created_at"])),
    column("QUESTION", |review| text::fit(&text::line(&plain(&review["question"])), QUESTION).into_owned()),
];

/// Which reviews.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Which {
    /// Those that wait for an answer
    Open,
    /// Those answered with yes
    Approved,
    /// Those answered with no
    Rejected,
    /// Those nobody answered in time
    Expired,
    /// All of them
    All,
}

/// `turnstone review list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Only reviews in this state
    #[arg(long, value_enum, default_value = "open")]
    pub state: Which,
    /// At most this many
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    pub limit: usize,
}

/// Prints the list.
///
/// # Errors
/// The server cannot be asked.
pub async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let state = match args.state {
        Which::Open => "open",
        Which::Approved => "approved",
        Which::Rejected => "rejected",
        Which::Expired => "expired",
        Which::All => "",
    };
    let query: Vec<(&str, String)> =
        if state.is_empty() { Vec::new() } else { vec![("state", state.to_owned())] };
    let (reviews, _) = session.client()?.list(&["reviews"], &query, args.limit).await?;
    session.output.list(&reviews, "id", COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
