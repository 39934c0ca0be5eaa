//! `turnstone bench`: measures this machine, so that users can size their own. docs/BENCHMARKS.md explains each figure.
//!
//! It runs the product's own parts in this process, without HTTP: the store, the worker with its runtime, the
//! scheduler. Measuring code is put around them, never into them.

mod database;
mod figures;
mod ledgers;
mod load;
mod models;
mod place;
mod report;
mod rig;
mod subjects;

use crate::failure::{Exit, Failure};
use crate::output::{Format, Output};
use clap::{Args, ValueEnum};
use figures::Figure;
use indicatif::ProgressBar;
use place::BenchPlace;
use report::{Report, Section};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use subjects::{claim, enqueue, history, idle, memory, start, turns};
use turnstone_benches::machine::Machine;

/// The subject of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Subject {
    /// Accepting jobs, one by one and in batches
    Enqueue,
    /// Claiming and settling plain jobs
    Claim,
    /// The same with a million jobs behind; `all` does not include it
    Backlog,
    /// Seven-phase turns with a model that costs nothing
    Turns,
    /// From enqueue to the first phase, on an idle worker and at 100 jobs a second
    Start,
    /// Memory of a turn that waits for a slow model
    Memory,
    /// Turn 1,000 against turn 10 of one engagement
    History,
    /// The calls of an idle worker and scheduler to the store
    Idle,
    /// All of them, one after another
    All,
}

impl Subject {
    const EACH: [Self; 7] =
        [Self::Enqueue, Self::Claim, Self::Turns, Self::Start, Self::Memory, Self::History, Self::Idle];

    /// Returns its name, its description, and the meaning of "naive" there.
    fn words(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Self::Enqueue => (
                "enqueue",
                "jobs accepted, each answer given after its commit",
                Some("one client that waits for each answer, so that no two jobs share a commit"),
            ),
            Self::Claim => (
                "claim",
                "plain jobs claimed and settled",
                Some("one job claimed and settled, then the next"),
            ),
            Self::Backlog => (
                "backlog",
                "plain jobs claimed and settled with a million behind them",
                Some("the same without the million"),
            ),
            Self::Turns => (
                "turns",
                "turns of seven phases through the real worker, with a model that answers at once",
                Some("the same engine with a commit for each phase, one commit after another"),
            ),
            Self::Start => (
                "start",
                "from before the push of a job to its first phase: 500 jobs on an idle worker, and 100 a second",
                None,
            ),
            Self::Memory => ("memory", "memory that a turn takes while it waits for a slow model", None),
            Self::History => {
                ("history", "one engagement of 1,010 turns, each with a model call and a tool call", None)
            }
            Self::Idle => ("idle", "calls of the store by an idle process, over 8 s", None),
            Self::All => ("all", "everything", None),
        }
    }
}

/// `turnstone bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// The subject to measure
    pub subject: Subject,
    /// The store to measure, as sqlite:PATH or postgres://…; jobs of the measurement stay in it. Without it: fresh files
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Measure through a pooler in transaction mode that is at the address of --store
    #[arg(long)]
    pub transaction_pooler: bool,
    /// The directory of the temporary files: on the disk that matters [default: the store's, else the current
    /// directory]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Clients of `enqueue`, or turns at once of `turns` and `memory` [default: several]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub concurrency: Option<u32>,
    /// Messages that each waiting turn of `memory` holds [default: 1, then 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub messages: Option<u32>,
    /// How often each figure is measured; the median and the range are shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub rounds: u32,
}

/// A run of measurements.
pub struct Bench {
    /// The place of the measurement.
    place: BenchPlace,
    /// The number of rounds.
    rounds: u32,
    /// The user's concurrency, if given.
    concurrency: Option<usize>,
    /// The messages of a waiting turn, if given.
    messages: Option<usize>,
    progress: ProgressBar,
}

impl Bench {
    /// Shows the current measurement on a terminal.
    fn announce(&self, what: &str, round: u32) {
        self.progress.set_message(format!("measuring {what}: round {round} of {}", self.rounds));
    }
}

/// Measures and prints.
///
/// # Errors
/// The command line is wrong, or the measurement could not be made.
pub async fn run(args: BenchArgs, output: Output) -> anyhow::Result<ExitCode> {
    if output.format == Format::Ids {
        return Err(Failure::usage("a measurement has no ids").hint("use -o table or -o json").into());
    }
    let subjects = match args.subject {
        Subject::All => Subject::EACH.to_vec(),
        one => vec![one],
    };
    let progress = if output.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    progress.enable_steady_tick(Duration::from_millis(120));
    let bench = Bench {
        place: BenchPlace::new(args.store.as_deref(), args.dir, args.transaction_pooler)?,
        rounds: args.rounds,
        concurrency: args.concurrency.and_then(|n| usize::try_from(n).ok()),
        messages: args.messages.and_then(|n| usize::try_from(n).ok()),
        progress,
    };
    tokio::select! {
        measured = Box::pin(measure_all(&bench, &subjects)) => {
            bench.progress.finish_and_clear();
            measured?.print(&output)?;
            Ok(Exit::Ok.into())
        }
        // Temporary files are removed with the measurement.
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted.into()),
    }
}

async fn measure_all(bench: &Bench, subjects: &[Subject]) -> anyhow::Result<Report> {
    let machine = Machine::look();
    let mut sections = Vec::new();
    for subject in subjects {
        let mut disk = bench.place.disk().await?;
        disk.single_commits_per_s = bench.place.single_commits().await?;
        let figures = measure(bench, *subject).await?;
        let (name, what, naive) = subject.words();
        sections.push(Section { subject: name, what, naive, disk, figures });
    }
    Ok(Report { machine, store: bench.place.name(), rounds: bench.rounds, subjects: sections })
}

async fn measure(bench: &Bench, subject: Subject) -> anyhow::Result<Vec<Figure>> {
    match subject {
        Subject::Enqueue => Box::pin(enqueue::measure(bench)).await,
        Subject::Claim => Box::pin(claim::measure(bench)).await,
        Subject::Backlog => Box::pin(claim::with_backlog(bench)).await,
        Subject::Turns => Box::pin(turns::measure(bench)).await,
        Subject::Start => Box::pin(start::measure(bench)).await,
        Subject::Memory => Box::pin(memory::measure(bench)).await,
        Subject::History => Box::pin(history::measure(bench)).await,
        Subject::Idle => Box::pin(idle::measure(bench)).await,
        Subject::All => Ok(Vec::new()),
    }
}
