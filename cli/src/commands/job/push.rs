//! `turnstone job push`: enqueue jobs.

use super::watch;
use crate::client::{Client, unwrapped};
use crate::commands::{Session, several};
use crate::failure::Failure;
use crate::output::{Format, text};
use anyhow::Context as _;
use clap::Args;
use futures::StreamExt as _;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;

/// How many jobs are on their way to the server at once.
const AT_ONCE: usize = 8;

/// `turnstone job push`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  turnstone job push job.json --watch
  generate | turnstone job push -
  turnstone job push --type agent.research --agent researcher --args '[\"What is a turnstone?\"]' --queue ai-agents
  turnstone job push --type agent.research --args '[]' --set ext_agent_model=gpt-4o --set ext_agent_token_budget=5000")]
pub struct PushArgs {
    /// A file with one job, a JSON array of jobs, or one job per line; `-` is standard input
    #[arg(value_name = "FILE", conflicts_with_all = ["job_type", "args", "queue", "priority", "agent", "set"])]
    pub file: Option<String>,
    /// The job's type, instead of a file
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// The job's arguments, a JSON array
    #[arg(long, value_name = "JSON", requires = "job_type", default_value = "[]", hide_default_value = true)]
    pub args: String,
    /// The queue
    #[arg(long, requires = "job_type")]
    pub queue: Option<String>,
    /// From -100 to 100; higher runs first
    #[arg(long, requires = "job_type", allow_negative_numbers = true, value_name = "N")]
    pub priority: Option<i64>,
    /// The registered agent that runs it
    #[arg(long, requires = "job_type", value_name = "NAME")]
    pub agent: Option<String>,
    /// Any other field of the job, such as ext_agent_model=gpt-4o; what is JSON is taken as JSON
    #[arg(long, requires = "job_type", value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
    /// Follow the job until it ends
    #[arg(long, short)]
    pub watch: bool,
}

/// Enqueues and prints the ids. One job that is refused does not keep the others out.
///
/// # Errors
/// The jobs cannot be read, the server cannot be asked, or a job was refused.
pub async fn run(args: PushArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let jobs = jobs_of(&args)?;
    if args.watch && jobs.len() != 1 {
        let message = format!("--watch follows one job, and there are {}", jobs.len());
        return Err(Failure::usage(message).hint("push them, then `turnstone job watch ID`").into());
    }
    let client = session.client()?;
    if let (true, [job]) = (args.watch, jobs.as_slice()) {
        let pushed = unwrapped(client.post(&["ojs", "v1", "jobs"], job).await?, "job");
        let id = pushed["id"].as_str().context("the server's answer has no job id")?.to_owned();
        if session.output.format == Format::Table {
            session.output.line(&text::line(&id))?;
        }
        return watch::run(&id, &client, session).await;
    }
    push_all(&client, jobs, session).await
}

async fn push_all(client: &Client, jobs: Vec<Value>, session: &Session) -> anyhow::Result<ExitCode> {
    let output = session.output;
    let single = jobs.len() == 1;
    let mut outcome = several::Outcome::new(output);
    let mut answers = futures::stream::iter(jobs)
        .map(|job| async move { client.post(&["ojs", "v1", "jobs"], &job).await })
        .buffered(AT_ONCE)
        .enumerate();
    while let Some((at, answer)) = answers.next().await {
        match answer {
            Ok(answer) if output.format == Format::Json => output.ndjson(&unwrapped(answer, "job"))?,
            Ok(answer) => {
                output.line(&text::line(unwrapped(answer, "job")["id"].as_str().unwrap_or_default()))?;
            }
            Err(failure) if single => return Err(failure.into()),
            Err(failure) => outcome.failed(&format!("job {}", at + 1), failure)?,
        }
    }
    outcome.finish("jobs were refused; those with an id above are enqueued")
}

fn jobs_of(args: &PushArgs) -> anyhow::Result<Vec<Value>> {
    let text = match (args.file.as_deref(), &args.job_type) {
        (None, Some(job_type)) => return Ok(vec![quick(job_type, args)?]),
        (None, None) if io::stdin().is_terminal() => {
            return Err(Failure::usage("there is no job to push")
                .hint("name a FILE, pipe jobs in with `-`, or give --type and --args")
                .into());
        }
        (None | Some("-"), _) => {
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text).context("standard input cannot be read")?;
            text
        }
        (Some(file), _) => std::fs::read_to_string(Path::new(file))
            .map_err(|error| Failure::usage(format!("{file} cannot be read: {error}")))?,
    };
    let source = args.file.as_deref().filter(|file| *file != "-").unwrap_or("standard input");
    Ok(jobs_in(&text, source)?)
}

/// One job, an array of jobs, or one job after the other.
fn jobs_in(text: &str, source: &str) -> Result<Vec<Value>, Failure> {
    let mut jobs = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(Value::Array(several)) if jobs.is_empty() => jobs.extend(several),
            Ok(job) => jobs.push(job),
            Err(error) => return Err(Failure::usage(format!("{source} is not JSON: {error}"))),
        }
    }
    if let Some(at) = jobs.iter().position(|job| !job.is_object()) {
        return Err(Failure::usage(format!("job {} in {source} is not a JSON object", at + 1)));
    }
    if jobs.is_empty() {
        return Err(Failure::usage(format!("there is no job in {source}"))
            .hint("a job is a JSON object such as {\"type\": \"agent.research\", \"args\": []}"));
    }
    Ok(jobs)
}

/// A job from flags.
fn quick(job_type: &str, args: &PushArgs) -> Result<Value, Failure> {
    let arguments: Value = serde_json::from_str(&args.args).map_err(|error| {
        Failure::usage(format!("--args is not JSON: {error}")).hint("for example --args '[\"a question\"]'")
    })?;
    if !arguments.is_array() {
        return Err(
            Failure::usage("--args is not a JSON array").hint(format!("for example --args '[{arguments}]'"))
        );
    }
    let mut job = Map::new();
    job.insert("type".to_owned(), json!(job_type));
    job.insert("args".to_owned(), arguments);
    let queue = args.queue.as_ref().map(|queue| ("queue".to_owned(), json!(queue)));
    let priority = args.priority.map(|priority| ("priority".to_owned(), json!(priority)));
    let options: Map<String, Value> = queue.into_iter().chain(priority).collect();
    if !options.is_empty() {
        job.insert("options".to_owned(), Value::Object(options));
    }
    for field in &args.set {
        let Some((name, value)) = field.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(format!("--set {field} has not the form FIELD=VALUE")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        job.insert(name.to_owned(), value);
    }
    if let Some(agent) = &args.agent {
        let meta = job.entry("meta").or_insert_with(|| json!({}));
        let Some(meta) = meta.as_object_mut() else {
            return Err(Failure::usage("--set meta=… is not a JSON object"));
        };
        meta.insert("agent".to_owned(), json!(agent));
    }
    Ok(Value::Object(job))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser as _;

    fn parsed(flags: &[&str]) -> PushArgs {
        let cli = Cli::try_parse_from(["turnstone", "job", "push"].iter().chain(flags)).unwrap();
        match cli.command {
            crate::args::Command::Job(crate::commands::job::JobCommand::Push(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_three_forms_of_a_file_are_told_apart() {
        let two = vec![json!({ "type": "a" }), json!({ "type": "b" })];
        assert_eq!(jobs_in(r#" {"type":"a"} "#, "f").unwrap(), two[..1]);
        assert_eq!(jobs_in(r#"[{"type":"a"},{"type":"b"}]"#, "f").unwrap(), two);
        assert_eq!(jobs_in("{\"type\":\"a\"}\n\n{\"type\":\"b\"}\n", "f").unwrap(), two);
    }

    #[test]
    fn what_is_not_a_job_is_named_with_its_place() {
        for (text, says) in [
            ("{\"type\":\"a\"}\n{oops", "line 2"),
            ("{}\n7", "job 2 in f is not a JSON object"),
            ("[]", "no job in f"),
            ("", "no job in f"),
        ] {
            let failure = jobs_in(text, "f").unwrap_err();
            assert!(failure.message.contains(says), "{text:?}: {failure}");
        }
    }

    #[test]
    fn flags_make_a_job() {
        let args = parsed(&[
            "--type",
            "agent.research",
            "--args",
            "[\"q\"]",
            "--queue",
            "ai-agents",
            "--priority",
            "-5",
            "--agent",
            "r",
            "--set",
            "ext_agent_model=gpt-4o",
            "--set",
            "ext_agent_token_budget=5000",
            "--set",
            "meta={\"k\":1}",
        ]);
        let job = json!({ "type": "agent.research", "args": ["q"], "options": { "queue": "ai-agents", "priority": -5 },
            "ext_agent_model": "gpt-4o", "ext_agent_token_budget": 5000, "meta": { "k": 1, "agent": "r" } });
        assert_eq!(quick("agent.research", &args).unwrap(), job);
    }

    #[test]
    fn wrong_flags_are_usage_errors() {
        for flags in
            [["--type", "a", "--args", "{}"], ["--type", "a", "--args", "["], ["--type", "a", "--set", "x"]]
        {
            assert_eq!(
                quick("a", &parsed(&flags)).unwrap_err().exit,
                crate::failure::Exit::Usage,
                "{flags:?}"
            );
        }
        assert!(Cli::try_parse_from(["turnstone", "job", "push", "f", "--type", "a"]).is_err());
        assert!(Cli::try_parse_from(["turnstone", "job", "push", "--queue", "q"]).is_err());
    }
}
