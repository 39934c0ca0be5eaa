//! `turnstone review approve`, `reject` and `answer`: answer a review.

use crate::client::Received;
use crate::commands::{Session, several};
use crate::failure::Failure;
use crate::output::{Format, text};
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;
use turnstone_api::answers::Review;
use turnstone_domain::json::unambiguous;

/// The answer.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    /// Yes.
    Approve,
    /// No.
    Reject,
    /// The call was made, with this result.
    Made(Value),
}

/// `turnstone review answer`.
#[derive(Clone, Debug, Args)]
pub struct AnswerArgs {
    /// The review's id, of the kind `unknown_outcome`
    pub id: String,
    /// The result of the call, as JSON; a text is written in double quotes
    #[arg(long, value_name = "JSON", value_parser = read_result)]
    pub result: Value,
    /// The reason; it is kept with the answer
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// The reviewer's name; not needed for reviews by the operators
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

fn read_result(text: &str) -> Result<Value, String> {
    unambiguous(text).map_err(|why| format!("{why}; a text is written as '\"text\"'"))
}

/// `turnstone review approve` and `reject`.
#[derive(Clone, Debug, Args)]
pub struct DecideArgs {
    /// The reviews' ids; `-` reads them from standard input, one per line
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// The reason; it is kept with the answer
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// The reviewer's name; not needed for reviews by the operators
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// The reviewer of questions without a particular one.
const OPERATOR: &str = "operator";

/// Returns the default reviewer: the operators, for their own reviews. Every other reviewer must be named, so that no
/// answer is given in another's name.
fn reviewer(review: &Review) -> Result<String, Failure> {
    if review.reviewer == OPERATOR {
        return Ok(OPERATOR.to_owned());
    }
    let names = review.members.join(", ");
    let requested = if names.is_empty() { text::line(&review.reviewer) } else { names };
    let problem = format!("the answer has no name; reviewers: {requested}");
    Err(Failure::usage(problem).hint("say whose answer it is with --by NAME"))
}

/// Reports the result of a call of unknown outcome.
///
/// # Errors
/// As [`run`].
pub async fn report(args: AnswerArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let AnswerArgs { id, result, reason, by } = args;
    run(Decision::Made(result), DecideArgs { ids: vec![id], reason, by }, session).await
}

/// Answers one after the other. A failed answer does not keep the others from it.
///
/// # Errors
/// The request fails, or a review could not be answered.
pub async fn run(answer: Decision, args: DecideArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (verb, done) = match answer {
        Decision::Approve => ("approve", "approved"),
        Decision::Reject => ("reject", "rejected"),
        Decision::Made(_) => ("approve", "answered"),
    };
    let client = session.client()?;
    let output = session.output;
    let mut outcome = several::Outcome::new(output);
    for id in several::ids(args.ids)? {
        let by = match &args.by {
            Some(by) => by.clone(),
            None => match client.get(&["reviews", &id], &[]).await.and_then(|review| reviewer(&review)) {
                Ok(by) => by,
                Err(failure) => {
                    outcome.failed(&id, failure)?;
                    continue;
                }
            },
        };
        let mut body = json!({ "by": by, "reason": args.reason });
        if let Decision::Made(result) = &answer {
            body["result"] = result.clone();
        }
        match client.post::<Received<Review>>(&["reviews", &id, verb], &body).await {
            Ok(review) => match output.format {
                Format::Json => output.ndjson(&review)?,
                Format::Ids => output.line(&text::line(&id))?,
                Format::Table => {
                    let counted = match review.state == "open" {
                        true => format!(": {}", super::show::votes(&review)),
                        false => String::new(),
                    };
                    output.line(&format!("{} {done} by {}{counted}", text::line(&id), text::line(&by)))?;
                }
            },
            Err(failure) => outcome.failed(&id, failure)?,
        }
    }
    outcome.finish(&format!("could not be {done}"))
}
