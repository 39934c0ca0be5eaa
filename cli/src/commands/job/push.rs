//! `turnstone job push`: enqueue jobs.

use super::waiting::Fleet;
use super::{batch, fields, watch};
use crate::client::{Client, Received};
use crate::commands::dev::timeline::Detail;
use crate::commands::{Session, several};
use crate::failure::Failure;
use crate::output::{Format, Output, text};
use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;
use turnstone_api::answers::BatchView;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Ids as _, JobState};
use turnstone_ojs::JobBody;

/// How many jobs are sent at once; the server accepts no more.
const BATCH: usize = 1_000;

/// Jobs, and how they belong together.
#[derive(Clone, PartialEq, Debug)]
struct JobsInput {
    jobs: Vec<Value>,
    /// True if they were an array, which is enqueued whole or not at all.
    together: bool,
}

/// `turnstone job push`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  turnstone job push job.json --watch
  generate | turnstone job push -
  turnstone job push jobs.jsonl --tag run=7 --last --watch
  turnstone job push --type agent.research --agent researcher --args '[\"What is a turnstone?\"]' --queue ai-agents
  turnstone job push --type agent.research --args '[]' --set ext_agent_model=gpt-4o --set ext_agent_token_budget=5000
What a job may contain: docs/JOBS.md")]
pub struct PushArgs {
    /// A file with one job, a JSON array of jobs (whole or not at all), or one job per line; `-` is standard input
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
    /// Any other field of the job, such as ext_agent_model=gpt-4o or meta.user='{"id":"ada"}'; a value that is JSON is
    /// taken as JSON
    #[arg(long, requires = "job_type", value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
    /// Give each job this tag; commands that take --tag find the jobs by it
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Follow the job until it ends, or the progress of several; these get a tag of their own when --tag gives none
    #[arg(long, short)]
    pub watch: bool,
    /// Close the batch of each --tag: when its last job has ended, the event batch.ended follows
    #[arg(long, requires = "tag")]
    pub last: bool,
}

/// Enqueues in the order given and prints the ids. An array is enqueued whole or not at all. Of jobs one per line, a
/// refused one does not keep the others out.
///
/// # Errors
/// The jobs cannot be read, the request fails, or a job was refused.
pub async fn run(mut args: PushArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let JobsInput { mut jobs, together } = jobs_of(&args)?;
    if args.watch && args.tag.is_empty() && jobs.len() > 1 {
        args.tag.push(format!("push-{}", SystemIds.next()));
    }
    for job in &mut jobs {
        fields::tag(job, &args.tag)?;
    }
    if together && jobs.len() > BATCH {
        let message =
            format!("an array is pushed whole, with at most {BATCH} jobs, and this one has {}", jobs.len());
        return Err(Failure::usage(message).hint("write one job per line instead: `jq -c .[] FILE`").into());
    }
    for remark in fields::remarks(&jobs) {
        session.output.remark(&format!("warning: {remark}"));
    }
    let client = session.client()?;
    if let (true, false, [job]) = (args.watch, args.last, jobs.as_slice()) {
        let job: JobBody = client.part(&client.post(&["ojs", "v1", "jobs"], job).await?, "job")?;
        let id = job.id;
        if session.output.format == Format::Table {
            session.output.line(&text::line(&id))?;
        }
        return watch::run(&id, &client, session, Detail::of(session.output)).await;
    }
    let mut sent = Sent {
        output: session.output,
        silent: args.watch,
        count: 0,
        outcome: several::Outcome::new(session.output),
        stored: Vec::new(),
    };
    if let ([job], false) = (jobs.as_slice(), together) {
        sent.stored(client.part(&client.post(&["ojs", "v1", "jobs"], job).await?, "job")?)?;
    } else if together {
        sent.batch(&client, &jobs).await?;
    } else {
        sent.one_after_the_other(&client, &jobs).await?;
    }
    if args.last && sent.count > 0 {
        for tag in &args.tag {
            client.post::<BatchView>(&["batches", tag, "close"], &json!({})).await?;
        }
    }
    let (count, stored) = (sent.count, sent.stored);
    let refused = sent.outcome.finish("jobs were refused; the others are enqueued")?;
    match args.tag.first().filter(|_| args.watch && count > 0) {
        Some(tag) => {
            if session.output.format == Format::Table {
                let jobs = text::counted(i64::try_from(count).unwrap_or(i64::MAX), "job");
                session.output.line(&text::line(&format!("{jobs} enqueued with tag {tag}")))?;
            }
            let ended = batch::watch(tag, &client, session).await?;
            Ok(if refused == ExitCode::SUCCESS { ended } else { refused })
        }
        None => {
            remark_on_silence(&client, &stored, session).await;
            Ok(refused)
        }
    }
}

/// The outcome of the jobs that were sent.
struct Sent {
    output: Output,
    /// True if the jobs are watched instead of printed.
    silent: bool,
    /// The jobs that were enqueued.
    count: usize,
    outcome: several::Outcome,
    /// One plain job per queue, for the remarks.
    stored: Vec<JobBody>,
}

impl Sent {
    fn stored(&mut self, job: Received<JobBody>) -> io::Result<()> {
        self.count += 1;
        match self.output.format {
            _ if self.silent => {}
            Format::Json => self.output.ndjson(&job)?,
            _ => self.output.line(&text::line(&job.id))?,
        }
        let known = self.stored.iter().any(|other| other.queue == job.queue);
        if job.engagement_id.is_none() && job.state == JobState::Available && !known {
            self.stored.push(job.into_value());
        }
        Ok(())
    }

    /// Sends jobs together: all or none.
    async fn batch(&mut self, client: &Client, jobs: &[Value]) -> anyhow::Result<()> {
        let answer = client.post(&["ojs", "v1", "jobs", "batch"], &json!({ "jobs": jobs })).await?;
        let jobs: Vec<_> = client.part(&answer, "jobs")?;
        Ok(jobs.into_iter().try_for_each(|job| self.stored(job))?)
    }

    /// Sends jobs in their order. A refused batch stores nothing; then each of its jobs is sent alone.
    async fn one_after_the_other(&mut self, client: &Client, jobs: &[Value]) -> anyhow::Result<()> {
        for (at, part) in jobs.chunks(BATCH).enumerate() {
            let refused = match self.batch(client, part).await {
                Ok(()) => continue,
                Err(error) => error.downcast::<Failure>()?,
            };
            if refused.refusal.is_none() {
                return Err(refused.into());
            }
            for (within, job) in part.iter().enumerate() {
                let at = at * BATCH + within;
                match client.post(&["ojs", "v1", "jobs"], job).await {
                    Ok(answer) => self.stored(client.part(&answer, "job")?)?,
                    Err(failure) if is_full(&failure) => {
                        let left = jobs.len() - at;
                        let hint = format!("the last {left} of {} jobs were not enqueued", jobs.len());
                        return Err(Failure { hint: Some(hint), ..failure }.into());
                    }
                    Err(failure) => self.outcome.failed(&format!("job {}", at + 1), failure)?,
                }
            }
        }
        Ok(())
    }
}

/// Returns true if the jobs that follow would be refused as well.
fn is_full(failure: &Failure) -> bool {
    failure.refusal.as_ref().is_some_and(|refusal| refusal.status == 429)
}

/// Prints a warning when no worker fetches these plain jobs. A caller that may not read the list of workers gets
/// none.
async fn remark_on_silence(client: &Client, stored: &[JobBody], session: &Session) {
    if stored.is_empty() || session.output.quiet {
        return;
    }
    let Ok(fleet) = Fleet::ask(client).await else { return };
    for why in stored.iter().filter_map(|job| fleet.keeps(job)) {
        session.output.remark(&format!("it waits: {why}"));
    }
}

fn jobs_of(args: &PushArgs) -> anyhow::Result<JobsInput> {
    let text = match (args.file.as_deref(), &args.job_type) {
        (None, Some(job_type)) => {
            return Ok(JobsInput { jobs: vec![quick(job_type, args)?], together: false });
        }
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

/// Reads one job, an array of jobs, or one job per line.
fn jobs_in(text: &str, source: &str) -> Result<JobsInput, Failure> {
    let (mut jobs, mut together) = (Vec::new(), false);
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(Value::Array(several)) if jobs.is_empty() => {
                jobs.extend(several);
                together = true;
            }
            Ok(job) => {
                jobs.push(job);
                together = false;
            }
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
    Ok(JobsInput { jobs, together })
}

/// Returns a job from flags.
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
    fields::put(&mut job, &args.set, args.agent.as_deref())?;
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
    fn the_three_forms_of_a_file_are_distinguished() {
        let two = vec![json!({ "type": "a" }), json!({ "type": "b" })];
        let given = |text: &str| {
            let JobsInput { jobs, together } = jobs_in(text, "f").unwrap();
            (jobs, together)
        };
        assert_eq!(given(r#" {"type":"a"} "#), (two[..1].to_vec(), false));
        assert_eq!(given(r#"[{"type":"a"},{"type":"b"}]"#), (two.clone(), true));
        assert_eq!(given("{\"type\":\"a\"}\n\n{\"type\":\"b\"}\n"), (two, false));
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
