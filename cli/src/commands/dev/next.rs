//! Five commands to try next, written so that they work when they are pasted into another terminal.

use crate::args::GlobalArgs;
use crate::config::Config;
use crate::output::text::quoted;
use std::path::Path;
use turnstone_telemetry::SecretRef;

/// The example job, seen from the directory of the project.
const JOB_FILE: &str = "examples/jobs/research.json";
/// The example job without its file; under the same question the demo recognises it when it is started again.
const SAME_JOB: &str = "--type agent.research --args '[\"Summarize recent developments in quantum computing\"]' \
                        --set ext_agent_model=gpt-4o --set ext_agent_token_budget=50000 \
                        --set 'ext_agent_tools=[{\"name\":\"web_search\"}]'";
/// A job for the agent that a person has to approve.
const BOOKING: &str = "--type agent.travel --agent travel-desk \
                       --args '[\"Book me a flight from Berlin to Lisbon on 2 March.\"]'";

/// The parts of the commands.
#[derive(Clone, Debug)]
pub struct NextCommands {
    /// How this program was started.
    program: String,
    /// The full command line of this `dev`.
    again: String,
    /// The flags with which other commands find this server and authenticate.
    flags: String,
    /// The example job as arguments of `job push`.
    research: String,
    process: u32,
}

impl NextCommands {
    /// Returns the commands for clients of this process.
    #[must_use]
    pub fn of_process(global: &GlobalArgs, config: &Config, url: &str, key: Option<&SecretRef>) -> Self {
        let arguments: Vec<String> =
            std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let by_cargo = turnstone_telemetry::environment::var("CARGO_PKG_NAME")
            .is_some_and(|name| name == env!("CARGO_PKG_NAME"));
        let program = match (by_cargo, arguments.first()) {
            (true, _) if cfg!(debug_assertions) => "cargo run --".to_owned(),
            (true, _) => "cargo run --release --".to_owned(),
            (false, Some(program)) => quoted(program),
            (false, None) => "turnstone".to_owned(),
        };
        let again = arguments.iter().skip(1).fold(program.clone(), |all, next| all + " " + &quoted(next));
        let found_by_default = url == config.client.url && global.config.is_none() && global.url.is_none();
        let mut flags = if found_by_default { String::new() } else { format!(" --url {url}") };
        if let Some(key) = key {
            flags.push_str(&format!(" --api-key-ref {}", quoted(&key.to_string())));
        }
        let research = if Path::new(JOB_FILE).is_file() { JOB_FILE } else { SAME_JOB };
        Self { program, again, flags, research: research.to_owned(), process: std::process::id() }
    }

    /// Returns the commands, each below its purpose; `job` is the job that was shown.
    #[must_use]
    pub fn text(&self, job: &str) -> String {
        let Self { again, research, process, .. } = self;
        let get = self.client(&format!("job get {job} -o json"));
        let list = self.client("job list");
        let watch = self.client(&format!("job push {research} --watch"));
        let book = self.client(&format!("job push {BOOKING}"));
        let approve = self.client("review approve - --by travel-manager");
        let reviews = self.client("review list");
        let ids = self.client("review list -o ids");
        let push = self.client(&format!("job push {research}"));
        format!(
            "Five things to try next, in another terminal:

  1  see everything about this job, and all jobs
     {get}
     {list}

  2  run it once more and follow it
     {watch}

  3  let an agent book a flight: a person has to approve it, and no slot is held meanwhile
     {book}
     {reviews}
     {ids} | {approve}

  4  kill -9 me in the middle of a job and start me again: it resumes where it stopped
     {push} && sleep 1 && kill -9 {process}; {again}

  5  point it at a real model: stop me with Ctrl-C, put your key in OPENAI_API_KEY, and start me again like this
     export TURNSTONE_PROVIDERS__OPENAI__KIND=openai TURNSTONE_PROVIDERS__OPENAI__API_KEY=env:OPENAI_API_KEY
     export TURNSTONE_MODELS__DEFAULT_MODEL=gpt-4o-mini
     {again}
     (vLLM, Ollama, llama.cpp: TURNSTONE_PROVIDERS__OPENAI__BASE_URL=http://127.0.0.1:11434/v1 and jobs that name their
     models; all of it can be written in turnstone.toml instead, see examples/turnstone.toml)

Ctrl-C stops me."
        )
    }

    fn client(&self, command: &str) -> String {
        format!("{} {command}{}", self.program, self.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use turnstone_examples::RESEARCH_JOB;

    fn next(flags: &str) -> NextCommands {
        NextCommands {
            program: "turnstone".into(),
            again: "turnstone dev --demo".into(),
            flags: flags.into(),
            research: SAME_JOB.into(),
            process: 42,
        }
    }

    #[test]
    fn every_client_command_finds_the_server() {
        let text = next(" --url http://127.0.0.1:81").text("J");
        let clients =
            text.lines().filter(|line| line.starts_with("     turnstone job") || line.contains("review"));
        assert!(clients.clone().count() >= 6, "{text}");
        for line in clients {
            assert_eq!(
                line.matches("turnstone ").count() - line.matches("turnstone dev").count(),
                line.matches("--url http://127.0.0.1:81").count(),
                "{line}"
            );
        }
        assert!(text.contains("kill -9 42; turnstone dev --demo"));
    }

    #[test]
    fn the_job_without_its_file_asks_the_same() {
        let job: Value = serde_json::from_str(RESEARCH_JOB).unwrap();
        let arguments = json!(job["args"]).to_string();
        assert!(SAME_JOB.contains(&format!("--args '{arguments}'")), "{SAME_JOB}");
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quoted("./target/release/turnstone"), "./target/release/turnstone");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
