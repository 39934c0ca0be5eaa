//! `turnstone agent run`: one conversation with an agent at the prompt.

use crate::client::{Client, Received};
use crate::commands::Session;
use crate::commands::dev::timeline::SeenEvent;
use crate::commands::job::question::Question;
use crate::commands::job::watch;
use crate::failure::{Exit, Failure};
use crate::output::table::plain;
use crate::output::{self, Format, Output, text};
use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::thread;
use tokio::sync::oneshot;
use turnstone_api::answers::{AnswerTaken, Cost, State};
use turnstone_domain::JobState;
use turnstone_domain::event::{EventBody, OpenedReview};
use turnstone_ojs::JobBody;

/// The type of the job that carries the text.
const JOB_TYPE: &str = "agent.run";

/// `turnstone agent run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The agent's name
    pub name: String,
    /// The text
    pub text: String,
    /// The user for whom the agent works
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
}

/// The part of the answer that is printed already.
#[derive(Default)]
struct Printed {
    turn: i64,
    text: String,
}

impl Printed {
    /// Adds a piece of an answer, and returns the text to print. A piece of another turn, or one that begins anew, begins a
    /// new line. A piece after one that was lost is left out: the whole answer follows.
    fn add(&mut self, piece: &Value) -> Option<String> {
        let (turn, offset) = (piece["turn"].as_i64()?, usize::try_from(piece["offset"].as_i64()?).ok()?);
        let said = text::block(piece["text"].as_str()?).into_owned();
        let anew = turn != self.turn || offset == 0;
        let before = if anew && !self.text.is_empty() { "\n" } else { "" };
        if anew {
            *self = Self { turn, text: String::new() };
        }
        if self.text.chars().count() != offset {
            return None;
        }
        self.text.push_str(&said);
        Some(format!("{before}{said}"))
    }
}

/// Runs it. When the prompt is closed in the middle of a question, the run waits and can be answered later.
///
/// # Errors
/// There is no such agent, the request fails, or the prompt was closed.
pub async fn run(args: RunArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let mut job = json!({"type": JOB_TYPE, "args": [args.text], "meta": {"agent": args.name}});
    if let Some(user) = args.user {
        job["meta"]["user"] = json!({"id": user});
    }
    let JobBody { id, engagement_id, .. } =
        client.part(&client.post(&["ojs", "v1", "jobs"], &job).await?, "job")?;
    let engagement = engagement_id.context("the job has no engagement")?;
    output.detail(&format!("job {id}, engagement {engagement}"));
    let printed = converse(&engagement, &client, output).await?;
    let job = client.member(&["ojs", "v1", "jobs", &id], &[], "job").await?;
    conclude(&job, &printed, output)?;
    if output.format == Format::Table {
        output.remark(&cost(&engagement, &client).await?);
    }
    Ok(if job.state == JobState::Completed { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

/// Follows the engagement to its end, and answers its questions; returns the part of the last answer that was printed.
async fn converse(engagement: &str, client: &Client, output: Output) -> anyhow::Result<Printed> {
    let (mut printed, mut cursor) = (Printed::default(), String::new());
    loop {
        let stopped = client.follow_engagement(engagement, &mut cursor, |name, event| {
            if name == "delta" {
                if output.format == Format::Table
                    && let Some(said) = printed.add(event)
                {
                    output.piece(&said)?;
                }
                return Ok(ControlFlow::Continue(()));
            }
            match SeenEvent::read(event).body {
                Some(EventBody::ToolCalled(call)) => output.remark(&format!("calls {}", plain(&call.name))),
                Some(EventBody::ReviewOpened(OpenedReview { review_id: id, reviewer, .. })) => {
                    output
                        .remark(&format!("waits for review {id} by {reviewer}: turnstone review show {id}"));
                }
                Some(EventBody::InputRequested(_)) => return Ok(ControlFlow::Break(())),
                _ => {}
            }
            Ok(ControlFlow::Continue(()))
        });
        if !stopped.await? {
            return Ok(printed);
        }
        let state: State = client.get(&["engagements", engagement], &[]).await?;
        // A question that was answered elsewhere meanwhile is not asked again.
        if let Some(question) = Question::of(&state) {
            if !printed.text.is_empty() && output.format == Format::Table {
                output.line("")?;
                printed = Printed::default();
            }
            let answers = prompt(&question).await?;
            let said = json!({"answers": answers, "call_id": question.call_id()});
            client.post::<AnswerTaken>(&["engagements", engagement, "answer"], &said).await?;
        }
    }
}

/// Asks at the prompt for a value of each key; a value that is JSON is taken as JSON.
async fn prompt(question: &Question) -> Result<Map<String, Value>, Failure> {
    let mut answers = Map::new();
    for (key, meaning) in question.keys() {
        let asked = if meaning.is_empty() { key } else { meaning };
        output::ask(asked);
        let Some(answer) = line().await else {
            let waits = "the prompt was closed, and the run waits for an answer";
            return Err(Failure::failed(waits).hint(question.command()));
        };
        if !io::stdin().is_terminal() {
            output::say("");
        }
        answers.insert(key.clone(), serde_json::from_str(&answer).unwrap_or_else(|_| json!(answer)));
    }
    Ok(answers)
}

/// Reads a line of standard input; `None` when it is closed. The thread that reads does not outlive the process, so
/// Ctrl-C ends it.
async fn line() -> Option<String> {
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line).ok().filter(|bytes| *bytes > 0);
        // An interrupted command does not wait for it.
        let _ = sender.send(read.map(|_| line.trim_end_matches(['\r', '\n']).to_owned()));
    });
    receiver.await.ok().flatten()
}

/// Prints what is not printed yet: the result, or the error.
fn conclude(job: &Received<JobBody>, printed: &Printed, output: Output) -> io::Result<()> {
    match output.format {
        Format::Json => return output.json(job),
        Format::Ids => return output.line(&text::line(&plain(&job.engagement_id))),
        Format::Table => {}
    }
    let result = job.result.as_ref().filter(|result| !result.is_null());
    let result = result.map(watch::result).unwrap_or_default();
    let said_already = !result.is_empty() && printed.text.trim() == result.trim();
    if !printed.text.is_empty() {
        output.line("")?;
    }
    if !said_already && !result.is_empty() {
        output.line(&result)?;
    }
    if job.state != JobState::Completed {
        let why = job.error.as_ref().map(|error| format!("{} {}", error.code, error.message));
        output.remark(&format!("the run is {}: {}", job.state, why.unwrap_or_default()));
    }
    Ok(())
}

/// Returns the cost of the engagement in words.
async fn cost(engagement: &str, client: &Client) -> Result<String, Failure> {
    let Cost { tokens, cost, .. } = client.get(&["engagements", engagement, "cost"], &[]).await?;
    Ok(format!("{} tokens, cost {}; engagement {engagement}", tokens.used, cost.used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_printed_once_and_in_order() {
        let piece =
            |turn: i64, offset: i64, text: &str| json!({"turn": turn, "offset": offset, "text": text});
        let mut printed = Printed::default();
        assert_eq!(printed.add(&piece(1, 0, "Hé")).as_deref(), Some("Hé"));
        assert_eq!(printed.add(&piece(1, 2, "llo")).as_deref(), Some("llo"));
        assert_eq!(printed.add(&piece(1, 9, "lost")), None);
        assert_eq!(printed.add(&piece(2, 0, "again")).as_deref(), Some("\nagain"));
        assert_eq!(printed.text, "again");
    }
}
