//! The command line: the flags of every command, and the list of commands. The doc comment of a command or flag is its text in
//! `--help`; the type of a command's own flags is in its file of `commands/`.

use crate::commands::serve::api::ApiArgs;
use crate::commands::serve::scheduler::SchedulerArgs;
use crate::commands::{
    agent, audit, bench, breaker, budget, completions, config, conformance, credential, cron, dead_letter,
    dev, doctor, engagement, freeze, job, key, mcp, policy, queue, review, webhook, worker, workflow,
};
use crate::output::OutputForm;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  turnstone dev --demo                      serve on this machine and run the example job
  turnstone job push job.json --watch       enqueue a job and follow it to its end
  turnstone job list --state active -o ids | turnstone job cancel -
  turnstone agent lint agents/*.yaml        check agent files without a server
  DATABASE_URL=postgres://u@db/t turnstone worker --slots 512      one worker of a fleet

Exit codes: 0 ok, 1 failed, 2 usage, 3 auth, 4 not found, 5 conflict, 130 interrupted.
Values come from: flag, then TURNSTONE_SECTION__KEY, then turnstone.toml, then the default.";

/// A durable worker fleet for AI agents.
#[derive(Debug, Parser)]
#[command(name = "turnstone", version, about, after_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// The server's address [env: TURNSTONE_URL] [default: `http://127.0.0.1:8080`]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// Reference to the API key or token: env:NAME or file:/path [default: env:TURNSTONE_API_KEY, if it is set]
    #[arg(long, global = true, value_name = "REF")]
    pub api_key_ref: Option<String>,
    /// The form of the output: table, json, jsonl (one object per line) or ids
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORM",
        hide_possible_values = true
    )]
    pub output: OutputForm,
    /// The configuration file [default: ./turnstone.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// No colours; NO_COLOR does the same
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Print results and errors, and no remarks
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every request to the server, and each phase and call in a timeline
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

impl GlobalArgs {
    /// Returns the values of the flags, by configuration key.
    #[must_use]
    pub fn overrides(&self) -> Vec<(&'static str, String)> {
        let url = self.url.as_ref().map(|url| ("client.url", url.clone()));
        let key = self.api_key_ref.as_ref().map(|key| ("client.api_key", key.clone()));
        url.into_iter().chain(key).collect()
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve everything on this machine: API, scheduler and worker in one process on an SQLite file
    Dev(dev::DevArgs),
    /// Create or upgrade the tables of a fleet's PostgreSQL database
    #[command(after_help = "Example: DATABASE_URL=postgres://turnstone@db/turnstone turnstone migrate")]
    Migrate,
    /// Serve the API of a fleet on PostgreSQL
    #[command(after_help = "Example: DATABASE_URL=postgres://turnstone@db/turnstone turnstone api")]
    Api(ApiArgs),
    /// Run a scheduler of a fleet; several may run, of which one leads
    #[command(after_help = "Example: DATABASE_URL=postgres://turnstone@db/turnstone turnstone scheduler")]
    Scheduler(SchedulerArgs),
    /// Run a worker of a fleet, or list and direct running ones
    #[command(after_help = "\
Examples:
  DATABASE_URL=postgres://turnstone@db/turnstone turnstone worker --slots 512 --queues ai-agents,default
  turnstone worker list")]
    Worker(worker::WorkerArgs),
    /// Check the configuration, or with --data all stored rows; exit code 1 when something is wrong
    #[command(after_help = "\
Examples:
  turnstone doctor
  turnstone doctor --data -o json")]
    Doctor(doctor::DoctorArgs),
    /// Enqueue, read, watch, cancel and retry jobs
    #[command(subcommand)]
    Job(job::JobCommand),
    /// List, pause, bound and limit queues
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// List jobs that failed for good, and retry or delete them
    #[command(subcommand)]
    DeadLetter(dead_letter::DeadLetterCommand),
    /// Enqueue jobs on a schedule
    #[command(subcommand)]
    Cron(cron::CronCommand),
    /// Start workflows, whose jobs wait for one another, and follow them
    #[command(subcommand)]
    Workflow(workflow::WorkflowCommand),
    /// Send events to other services by HTTP
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Check, register and list agents
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// List the configured MCP servers, and show the tools that agents get from them
    #[command(subcommand)]
    Mcp(mcp::McpCommand),
    /// Show, answer, fork, compare and move engagements of agents
    #[command(subcommand)]
    Engagement(engagement::EngagementCommand),
    /// Evaluate an agent's CEL assertions over recorded engagements
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Run black-box cases of the specifications against a server with a scripted model
    #[command(subcommand)]
    Conformance(conformance::ConformanceCommand),
    /// Answer the questions of agents
    #[command(subcommand)]
    Review(review::ReviewCommand),
    /// Show and reset circuit breakers
    #[command(subcommand)]
    Breaker(breaker::BreakerCommand),
    /// Show, set and raise spending limits
    #[command(subcommand)]
    Budget(budget::BudgetCommand),
    /// Store the credentials with which tools are called, of users and of static identities
    #[command(subcommand)]
    Credential(credential::CredentialCommand),
    /// Stop all calls of models and tools, for the fleet or for a tenant, and lift the stop
    #[command(subcommand)]
    Freeze(freeze::FreezeCommand),
    /// List, verify and export the audit of changes
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Create, list, rotate and revoke API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Show and check the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Measure the performance of this machine
    Bench(bench::BenchArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example: turnstone completions bash > ~/.local/share/bash-completion/completions/turnstone"
    )]
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Returns true if the command reads the secrets of a server, so that it hides them from other processes.
    #[must_use]
    pub fn reads_secrets(&self) -> bool {
        match self {
            Self::Dev(_) | Self::Migrate | Self::Api(_) | Self::Scheduler(_) | Self::Mcp(_) => true,
            Self::Worker(worker) => worker.command.is_none(),
            Self::Agent(agent::AgentCommand::Lint(lint)) => lint.reach,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_flags_may_stand_behind_the_command() {
        let cli = Cli::try_parse_from(["turnstone", "job", "get", "x", "-o", "json", "--url", "http://h:1"])
            .unwrap();
        assert_eq!(cli.global.output, OutputForm::Json);
        assert_eq!(cli.global.overrides(), [("client.url", "http://h:1".to_owned())]);
    }

    #[test]
    fn a_worker_is_run_by_default() {
        let worker = |arguments: &[&str]| {
            let cli = Cli::try_parse_from([&["turnstone", "worker"], arguments].concat())?;
            let Command::Worker(worker) = cli.command else { panic!("not worker") };
            Ok::<_, clap::Error>(worker)
        };
        let run = worker(&["--slots", "512", "--queues", "a,b", "--lease", "15s", "--name", "w"]).unwrap();
        assert!(run.command.is_none());
        assert_eq!(
            run.run.overrides(),
            [
                ("worker.slots", "512".to_owned()),
                ("worker.queues", "a,b".to_owned()),
                ("worker.lease_ms", "15000".to_owned()),
                ("worker.name", "w".to_owned()),
            ]
        );
        assert!(worker(&["list", "-o", "json"]).unwrap().command.is_some());
        assert!(worker(&["--slots", "3", "list"]).is_err());
    }

    #[test]
    fn the_flags_of_dev_become_configuration() {
        let cli =
            Cli::try_parse_from(["turnstone", "dev", "--demo", "--slots", "3", "--bind", "127.0.0.1:0"])
                .unwrap();
        let Command::Dev(dev) = cli.command else { panic!("not dev") };
        assert!(dev.demo);
        assert_eq!(
            dev.overrides(),
            [("server.bind", "127.0.0.1:0".to_owned()), ("worker.slots", "3".to_owned())]
        );
    }
}
