//! A whole fleet under faults, under pressure and as it grows: real processes of the real program on a PostgreSQL of its
//! own.
//!
//! `cargo bench -p turnstone-benches --bench fleet -- faults|pressure|feed|readers|scale-out|takeover|long|flow|outage|waiting [-o json]` measures one thing,
//! or all of them without a name. Without `--bench`, as `cargo test --benches` runs it, everything is tried once and
//! shortly, to see that it works. Nothing here can fail because of a figure.

#![expect(clippy::expect_used, reason = "a bench that cannot continue has to stop")]

mod figures;
mod rates;
mod report;
mod site;
mod stage;
mod subjects;

use figures::Figure;
use report::{Report, Section};
use std::path::Path;
use std::time::Duration;
use subjects::{faults, feed, flow, long, outage, pressure, readers, scale_out, takeover, waiting};
use turnstone_benches::disk;
use turnstone_benches::machine::Machine;

/// How long things are watched.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Everything once and shortly: the figures say nothing.
    trial: bool,
}

impl Pace {
    /// So many seconds; a fraction of one in a trial.
    fn seconds(self, seconds: u64) -> Duration {
        if self.trial { Duration::from_millis(400) } else { Duration::from_secs(seconds) }
    }

    /// So many times; once in a trial.
    fn times(self, times: usize) -> usize {
        if self.trial { 1 } else { times }
    }
}

/// No subject may take longer: its fleet does not do what is waited for.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// Name on the command line, and what is measured.
const SUBJECTS: [(&str, &str); 10] = [
    (
        "faults",
        "time until jobs are completed at 95 % of the clean rate again, from the moment when the fault is over",
    ),
    ("pressure", "jobs completed a second while others press on the database, and afterwards"),
    (
        "feed",
        "how long after its commit an event reaches a reader of all events, with a scheduler and without one",
    ),
    ("readers", "10,000 clients that follow runs at one api process, and how late events come to them"),
    (
        "scale-out",
        "jobs completed a second by more and more worker processes, with a model that answers after 200 ms",
    ),
    ("takeover", "time until another process does the work of one that was ended with SIGKILL"),
    (
        "long",
        "an engagement of 1,000 turns: its turns 900 to 990 beside 10 to 100, and a death in the middle",
    ),
    (
        "flow",
        "1,000 model calls of a MapNode and 200 nodes in a row: their rate beside that of turns, and late ones beside early ones",
    ),
    (
        "outage",
        "5,000 jobs beside ten for which the model always fails, and 5,000 whose model is away for a minute",
    ),
    ("waiting", "10,000 engagements that wait for a slow model in one process, and a fast one beside them"),
];

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let pace = Pace {
        trial: !arguments.iter().any(|word| word == "--bench")
            || arguments.iter().any(|word| word == "--test"),
    };
    let json = arguments.windows(2).any(|words| words == ["-o", "json"]);
    let named: Vec<_> =
        SUBJECTS.iter().filter(|(name, _)| arguments.iter().any(|word| word == name)).collect();
    let wanted = if named.is_empty() { SUBJECTS.iter().collect() } else { named };
    let machine = Machine::look();
    let mut subjects = Vec::new();
    for (subject, what) in wanted {
        eprintln!("measuring {subject}");
        let disk = disk::watch(Path::new(".")).await.expect("the current directory can be written");
        let measured = tokio::time::timeout(PATIENCE, measure(subject, pace)).await;
        let figures = measured.unwrap_or_else(|_| panic!("{subject} takes longer than {PATIENCE:?}"));
        subjects.push(Section { subject, what, fdatasync_per_s: disk.fdatasync_per_s, figures });
    }
    Report { machine, trial: pace.trial, subjects }.print(json);
}

async fn measure(subject: &str, pace: Pace) -> Vec<Figure> {
    match subject {
        "faults" => Box::pin(faults::measure(pace)).await,
        "pressure" => Box::pin(pressure::measure(pace)).await,
        "feed" => Box::pin(feed::measure(pace)).await,
        "readers" => Box::pin(readers::measure(pace)).await,
        "scale-out" => Box::pin(scale_out::measure(pace)).await,
        "takeover" => Box::pin(takeover::measure(pace)).await,
        "long" => Box::pin(long::measure(pace)).await,
        "flow" => Box::pin(flow::measure(pace)).await,
        "outage" => Box::pin(outage::measure(pace)).await,
        _ => Box::pin(waiting::measure(pace)).await,
    }
}
