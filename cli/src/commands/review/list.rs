//! `turnstone review list`: agents' questions to reviewers and, below, to their users.

use crate::client::Client;
use crate::commands::Session;
use crate::commands::job::waiting;
use crate::output::Format;
use crate::output::table::{Column, column, plain, time};
use crate::output::text;
use clap::{Args, ValueEnum};
use serde::Deserialize as _;
use serde_json::Value;
use std::process::ExitCode;
use turnstone_api::answers::Review;
use turnstone_domain::event::Parked;
use turnstone_ojs::JobBody;

/// The most columns of a question in a table.
const QUESTION: usize = 60;

/// The most parked jobs that are searched for questions to users.
const PARKED: usize = 500;

const COLUMNS: &[Column<Review>] = &[
    column("ID", |review| plain(&review.id)),
    column("KIND", |review| plain(&review.kind)),
    column("STATE", |review| plain(&review.state)),
    column("REVIEWER", |review| plain(&review.reviewer)),
    column("VOTES", votes),
    column("JOB", |review| plain(&review.job_id)),
    column("ASKED", |review| time(&review.created_at)),
    column("DEADLINE", |review| time(&review.deadline_at)),
    column("QUESTION", |review| {
        text::fit(&text::line(&question_text(&review.question)), QUESTION).into_owned()
    }),
];

/// Returns the approvals, and the number that is needed.
fn votes(review: &Review) -> String {
    match &review.quorum {
        _ if review.asked_engagement_id.is_some() => "agent".to_owned(),
        quorum if quorum.of > 1 => format!("{} of {}", quorum.approvals, quorum.needed),
        _ => String::new(),
    }
}

/// Returns the question in a line: the tool with its inputs, or the error.
fn question_text(question: &Value) -> String {
    match (question["name"].as_str(), question.get("inputs")) {
        (Some(name), Some(inputs)) => format!("{name} {}", plain(inputs)),
        _ => match question["error"]["message"].as_str() {
            Some(message) => format!("{}: {message}", plain(&question["error"]["code"])),
            None => plain(question),
        },
    }
}

/// The reviews to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Which {
    /// Reviews that wait for an answer
    Open,
    /// Approved reviews
    Approved,
    /// Rejected reviews
    Rejected,
    /// Reviews without an answer in time, or whose job ended first
    Expired,
    /// All reviews
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
/// The request fails.
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
    let client = session.client()?;
    let (reviews, _) = client.list(&["reviews"], &query, args.limit).await?;
    let requested = match args.state {
        Which::Open | Which::All if session.output.format == Format::Table => {
            questions(&client, args.limit).await
        }
        _ => Vec::new(),
    };
    if !reviews.is_empty() || requested.is_empty() {
        session.output.list(&reviews, |review| &review.id, COLUMNS)?;
    }
    for line in requested {
        session.output.line(&text::line(&line))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a line for each job that waits for its user: `ask_user` opens no review, so such a job has no review id. The
/// reviews are listed even if the key may not read the jobs.
async fn questions(client: &Client, limit: usize) -> Vec<String> {
    let pending = [("state", "pending".to_owned())];
    let Ok((jobs, _)) = client.list(&["ojs", "v1", "admin", "jobs"], &pending, PARKED).await else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let waits_for = |job: &JobBody| job.waits_for.as_ref().and_then(|data| Parked::deserialize(data).ok());
    let asks = |job: &&JobBody| matches!(waits_for(job), Some(Parked::Input { .. }));
    for job in jobs.iter().filter(asks).take(limit) {
        if let Ok(Some(why)) = waiting::reason(job, None, client).await {
            lines.push(format!("job {} waits for {why}", job.id));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_shows_what_one_decides_about() {
        let question = json!({"call_id": "c", "engagement": {}, "inputs": {"amount": 100}, "name": "pay"});
        assert_eq!(question_text(&question), "pay {\"amount\":100}");
        assert_eq!(question_text(&json!({"error": {"code": "C", "message": "why"}})), "C: why");
        assert_eq!(question_text(&json!("go on?")), "go on?");
    }
}
