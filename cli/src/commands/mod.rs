//! The commands, one file each. [`start`] runs the one of the command line.
//!
//! To add a command, write its file with a type of its flags and a function `run`, and add it to `Command` in `args.rs` and to
//! [`start`].

pub mod agent;
pub mod audit;
pub mod bench;
pub mod breaker;
pub mod budget;
mod bulk;
mod chosen;
pub mod completions;
pub mod config;
pub mod conformance;
pub mod credential;
pub mod cron;
pub mod dead_letter;
pub mod dev;
pub mod doctor;
pub mod engagement;
pub mod freeze;
pub mod job;
pub mod key;
pub mod mcp;
mod migrate;
pub mod policy;
pub mod progress;
pub mod queue;
pub mod review;
pub mod serve;
mod several;
mod since;
pub mod webhook;
pub mod worker;
pub mod workflow;

use crate::args::{Cli, Command, GlobalArgs};
use crate::client::Client;
use crate::config::{Layers, Loaded, LogConfig};
use crate::failure::{Exit, Failure};
use crate::output::{Output, has_terminal_for_errors};
use anyhow::Context as _;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_telemetry::Service;
use turnstone_worker::host_name;
use worker::WorkerArgs;

/// The longest time that the end of a service waits until its last telemetry is exported.
const TELEMETRY_TIMEOUT: Duration = Duration::from_secs(3);

/// The context of every command.
#[derive(Clone, Debug)]
pub struct Session {
    /// The form and the place of its output.
    pub output: Output,
    global: GlobalArgs,
}

impl Session {
    /// Returns the configuration: the flags first, then the environment, the file and the defaults.
    ///
    /// # Errors
    /// A value is wrong, or the file cannot be read; the message names the key or the file.
    pub fn config(&self, flags: Vec<(&'static str, String)>) -> Result<Loaded, Failure> {
        Layers::of_process(self.global.config.clone(), [self.global.overrides(), flags].concat()).load()
    }

    /// Returns a client for the configured server. A problem in another section of the configuration is only a remark, so that
    /// a client's command works with the file of a server.
    ///
    /// # Errors
    /// `[client]` of the configuration, or the API key, is wrong.
    pub fn client(&self) -> Result<Client, Failure> {
        let layers = Layers::of_process(self.global.config.clone(), self.global.overrides());
        let (client, wrong) = layers.load_client()?;
        if let Some(wrong) = wrong {
            self.output.remark(&format!(
                "the configuration has an error, so only its [client] is used: {}",
                wrong.message
            ));
        }
        Client::new(&client, self.output)
    }
}

/// Runs the command and returns the exit code of the program.
///
/// # Errors
/// The error of the command, which [`crate::failure::report`] prints.
pub fn start(cli: Cli) -> anyhow::Result<ExitCode> {
    let GlobalArgs { output, no_color, quiet, verbose, .. } = cli.global;
    let session = Session { output: Output::detect(output, no_color, quiet, verbose), global: cli.global };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime cannot be started")?;
    let ended = runtime.block_on(async {
        match cli.command {
            // These handle Ctrl-C themselves, because they have something to drain or to clean up.
            Command::Dev(args) => {
                let config = session.config(args.overrides())?.config;
                // The demo prints a timeline on the terminal; a full log would make it unreadable.
                start_log(&config.log, &session.output, args.demo && session.output.tty, Some("turnstone"));
                Box::pin(dev::run(args, config, &session)).await
            }
            Command::Bench(args) => {
                let config = session.config(Vec::new())?.config;
                start_log(&config.log, &session.output, true, None);
                Box::pin(bench::run(args, session.output)).await
            }
            Command::Api(args) => {
                let config = session.config(args.overrides())?.config;
                start_log(&config.log, &session.output, false, Some("turnstone-api"));
                Box::pin(serve::api::run(config, args.enable_reset, &session)).await
            }
            Command::Scheduler(args) => {
                let config = session.config(args.overrides())?.config;
                start_log(&config.log, &session.output, false, Some("turnstone-scheduler"));
                Box::pin(serve::scheduler::run(config, &session)).await
            }
            Command::Worker(WorkerArgs { command: None, run }) => {
                let config = session.config(run.overrides())?.config;
                start_log(&config.log, &session.output, false, Some("turnstone-worker"));
                Box::pin(serve::worker::run(config, &session)).await
            }
            Command::Worker(WorkerArgs { command: Some(command), .. }) => {
                until_interrupted(worker::run(command, &session)).await
            }
            Command::Migrate => {
                let config = session.config(Vec::new())?.config;
                start_log(&config.log, &session.output, true, None);
                until_interrupted(migrate::run(config, &session)).await
            }
            Command::Doctor(args) => until_interrupted(doctor::run(args, &session)).await,
            Command::Breaker(command) => until_interrupted(breaker::run(command, &session)).await,
            Command::Budget(command) => until_interrupted(budget::run(command, &session)).await,
            Command::Credential(command) => until_interrupted(credential::run(command, &session)).await,
            Command::Audit(command) => until_interrupted(audit::run(command, &session)).await,
            Command::Freeze(command) => until_interrupted(freeze::run(command, &session)).await,
            Command::Key(command) => until_interrupted(key::run(command, &session)).await,
            Command::Queue(command) => until_interrupted(queue::run(command, &session)).await,
            Command::DeadLetter(command) => until_interrupted(dead_letter::run(command, &session)).await,
            Command::Cron(command) => until_interrupted(cron::run(command, &session)).await,
            Command::Workflow(command) => until_interrupted(workflow::run(command, &session)).await,
            Command::Webhook(command) => until_interrupted(webhook::run(command, &session)).await,
            Command::Job(command) => until_interrupted(job::run(command, &session)).await,
            Command::Agent(command) => until_interrupted(agent::run(command, &session)).await,
            Command::Mcp(command) => until_interrupted(mcp::run(command, &session)).await,
            Command::Engagement(command) => until_interrupted(engagement::run(command, &session)).await,
            Command::Policy(command) => until_interrupted(policy::run(command, &session)).await,
            Command::Conformance(command) => until_interrupted(conformance::run(command, &session)).await,
            Command::Review(command) => until_interrupted(review::run(command, &session)).await,
            Command::Config(command) => config::run(&command, &session),
            Command::Completions(args) => completions::run(&args),
        }
    });
    // A task that blocks, such as a name lookup, must not delay the end of the program.
    runtime.shutdown_background();
    turnstone_telemetry::shut_down(TELEMETRY_TIMEOUT);
    ended
}

/// Starts the log on standard error. A `calm` log contains only warnings and errors, unless the configuration sets a filter. A
/// service also exports telemetry by OTLP, under the name `service`.
fn start_log(config: &LogConfig, output: &Output, calm: bool, service: Option<&'static str>) {
    let by_default = if calm { "warn" } else { "warn,turnstone=info" };
    let filter = config.filter.as_deref().unwrap_or(by_default);
    turnstone_telemetry::init(
        config.format.into(),
        Some(filter),
        output.color && has_terminal_for_errors(),
        service
            .map(|name| Service {
                name,
                version: env!("CARGO_PKG_VERSION"),
                instance: format!("{}-{}-{}", host_name(), std::process::id(), SystemIds.next()),
            })
            .as_ref(),
    );
}

/// Runs a command that Ctrl-C may end at any point.
async fn until_interrupted(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let work = Box::pin(work);
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted.into()),
    }
}
