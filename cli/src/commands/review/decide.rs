//! `turnstone review approve` and `reject`: answer a review.

use crate::client::unwrapped;
use crate::commands::{Session, several};
use crate::output::{Format, text};
use clap::Args;
use serde_json::json;
use std::process::ExitCode;

/// The answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Yes.
    Approve,
    /// No.
    Reject,
}

/// `turnstone review approve` and `reject`.
#[derive(Clone, Debug, Args)]
pub struct DecideArgs {
    /// The reviews' ids; `-` reads them from standard input, one per line
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Why; it is kept with the answer
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Whose answer it is; the reviewer's who is asked, unless it is said
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// Answers one after the other. One that cannot be answered does not keep the others from it.
///
/// # Errors
/// The server cannot be asked, or a review could not be answered.
pub async fn run(answer: Answer, args: DecideArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (verb, done) = match answer {
        Answer::Approve => ("approve", "approved"),
        Answer::Reject => ("reject", "rejected"),
    };
    let client = session.client()?;
    let output = session.output;
    let mut outcome = several::Outcome::new(output);
    for id in several::ids(args.ids)? {
        let by = match &args.by {
            Some(by) => by.clone(),
            None => match client.get(&["reviews", &id], &[]).await {
                Ok(review) => {
                    unwrapped(review, "review")["reviewer"].as_str().unwrap_or("operator").to_owned()
                }
                Err(failure) => {
                    outcome.failed(&id, failure)?;
                    continue;
                }
            },
        };
        let body = json!({ "by": by, "reason": args.reason });
        match client.post(&["reviews", &id, verb], &body).await {
            Ok(review) => match output.format {
                Format::Json => output.ndjson(&unwrapped(review, "review"))?,
                Format::Ids => output.line(&text::line(&id))?,
                Format::Table => {
                    output.line(&format!("{} {done} by {}", text::line(&id), text::line(&by)))?
                }
            },
            Err(failure) => outcome.failed(&id, failure)?,
        }
    }
    outcome.finish(&format!("could not be {done}"))
}
