//! Failover to a second PostgreSQL under load. Agents call tools, delegate and wait for reviews, and workers over HTTP run
//! jobs. Readers follow the feed and an engagement's stream.
//!
//! The standby of an asynchronous replication is cut off before, and misses a second of commits. The processes of the
//! fleet keep running: they hold leases, and cursors, that the new primary may not know.

mod cluster;
mod load;
mod readers;
mod record;
mod small;

use crate::program::run;
use cluster::{Cluster, Replication};
use load::{Load, Repeated};
use readers::{Reader, Verdict};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;
use turnstone_domain::{Clock as _, SystemClock};
use turnstone_tests::wait;

/// The number of runs of each test.
const RUNS: usize = 10;
/// The accepted jobs before the fault, and after it.
const JOBS: usize = 40;
/// The deadline of all jobs: leases that no worker holds have to run out.
const SETTLED: Duration = Duration::from_secs(120);

const OPEN: &str = "SELECT count(*) FROM jobs WHERE state NOT IN ('completed', 'discarded', 'cancelled')";
const COMPLETED: &str = "SELECT count(*) FROM jobs WHERE state = 'completed'";

/// The outcome of a run.
#[derive(Debug)]
struct Outcome {
    /// Jobs of clients that were accepted.
    #[expect(dead_code, reason = "printed with the outcome")]
    accepted: usize,
    /// Accepted jobs that the new primary does not have.
    lost: usize,
    /// Jobs of the new primary that did not complete.
    failed: i64,
    repeated: Repeated,
    holes: Vec<String>,
    readers: Vec<(&'static str, Verdict)>,
    /// The output of `turnstone doctor --data`, if it found anything.
    damage: Option<String>,
    /// The milliseconds from the loss of the primary to the end of the promotion, to the next accepted job, and to the
    /// next model call.
    #[expect(dead_code, reason = "printed with the outcome")]
    times: [i64; 3],
}

/// Fails over once under load.
async fn fail_over(replication: Replication, isolated: bool) -> Outcome {
    let mut cluster = Cluster::start(replication, load::model).await;
    let fleet = cluster.fleet().await;
    let url = fleet.api.url.clone();
    load::register(&url).await;
    let load = Load::start(&url);
    let mut readers = vec![Reader::of_stream(&url), Reader::of_pages(&url)];
    load.accepts(JOBS).await;
    readers.push(Reader::of_engagement(&url, load.walk().await));
    cluster.site.models.seen(cluster.site.models.count() + 2 * JOBS).await;
    if replication == Replication::Asynchronous {
        cluster.cut_off_the_standby().await;
    }
    let (clock, lost_at) = (SystemClock, SystemClock.now());
    cluster.fail_over(isolated).await;
    let promoted = clock.now().since(lost_at);
    load.accepts(1).await;
    let accepts = clock.now().since(lost_at);
    cluster.site.models.seen(cluster.site.models.count() + 1).await;
    let works = clock.now().since(lost_at);
    load.accepts(JOBS).await;
    let accepted = load.enough();
    let site = &cluster.site;
    wait::until_within("every job ends", SETTLED, async || site.number(OPEN).await == 0).await;
    feed_has_every_end(&url, site.number(COMPLETED).await).await;
    let mut verdicts = Vec::new();
    for reader in &readers {
        verdicts.push((reader.name, reader.verdict(&url).await));
    }
    let stored = site.postgres.psql(&site.database, "SELECT id FROM jobs").await;
    let stored: BTreeSet<&str> = stored.lines().collect();
    let doctor = run(site.path(), &["doctor", "--data"], &[("DATABASE_URL", &site.database.url)]).await;
    let outcome = Outcome {
        accepted: accepted.len(),
        lost: accepted.iter().filter(|id| !stored.contains(id.as_str())).count(),
        failed: site.number("SELECT count(*) FROM jobs WHERE state <> 'completed'").await,
        repeated: load::repeated(&site.models, &cluster.tools),
        holes: record::holes(&url).await,
        readers: verdicts,
        damage: (doctor.code != Some(0)).then(|| doctor.stdout + &doctor.stderr),
        times: [promoted, accepts, works],
    };
    load.end().await;
    drop(readers);
    fleet.stop().await;
    outcome
}

/// Waits until the feed has the end of each completed job.
async fn feed_has_every_end(url: &str, completed: i64) {
    let is_end = |event: &&Value| event["type"].as_str().is_some_and(|name| name.ends_with("job.completed"));
    wait::until("the feed has the end of every job", async || {
        let ends = readers::feed(url).await.iter().filter(is_end).count();
        i64::try_from(ends).expect("a few") >= completed
    })
    .await;
}

/// Runs the test as often as is required, and prints each outcome.
async fn outcomes(replication: impl Fn(usize) -> Replication) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for run in 0..RUNS {
        let outcome = fail_over(replication(run), run % 2 == 1).await;
        eprintln!("run {run}, {:?}: {outcome:#?}", replication(run));
        outcomes.push(outcome);
    }
    outcomes
}

/// The rules that an outcome breaks, by run.
struct Broken<'a> {
    outcomes: &'a [Outcome],
    rules: Vec<String>,
}

impl<'a> Broken<'a> {
    /// Checks what holds in every replication.
    fn of(outcomes: &'a [Outcome]) -> Self {
        let mut broken = Self { outcomes, rules: Vec::new() };
        broken.none("jobs did not complete", |run| Some(run.failed).filter(|failed| *failed > 0));
        broken.none("records have holes", |run| Some(&run.holes).filter(|&holes| !holes.is_empty()));
        broken.none("doctor --data finds damage", |run| run.damage.as_ref());
        broken.none("readers missed events, or saw others, without a refusal", |run| {
            let silent: Vec<_> = run.readers.iter().filter(|(_, verdict)| verdict.is_silent()).collect();
            (!silent.is_empty()).then_some(silent)
        });
        broken.none("calls were repeated with another key", |run| {
            Some(run.repeated.changed_keys).filter(|changed| *changed > 0)
        });
        broken
    }

    /// Checks that nothing is found in any run.
    fn none<T: Debug>(&mut self, what: &str, found: impl Fn(&'a Outcome) -> Option<T>) {
        let found = |(run, outcome)| Some((run, found(outcome)?));
        let found: Vec<(usize, T)> = self.outcomes.iter().enumerate().filter_map(found).collect();
        if !found.is_empty() {
            self.rules.push(format!("{what}, by run: {found:?}"));
        }
    }

    /// Asserts that no rule is broken.
    fn end(self) {
        assert!(self.rules.is_empty(), "{:#?}", self.rules);
    }
}

/// Commits wait for the standby: it has everything that a client, a worker or a reader knows. A worker whose commit was under
/// way looks its outcome up and asks neither model nor tool again: each turn is asked once, and each tool call is made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: ten failovers under load"]
async fn a_fail_over_to_a_synchronous_standby_loses_and_repeats_nothing() {
    let outcomes = outcomes(|run| Replication::Synchronous(["on", "remote_apply"][run / 2 % 2])).await;
    let mut broken = Broken::of(&outcomes);
    broken.none("accepted jobs are lost", |run| Some(run.lost).filter(|lost| *lost > 0));
    broken.none("calls were repeated", |run| {
        let Repeated { model, tools, .. } = run.repeated;
        Some((model, tools)).filter(|repeated| *repeated != (0, 0))
    });
    broken.none("readers had to begin anew", |run| {
        Some(run.readers.iter().map(|(_, verdict)| verdict.resets).sum()).filter(|resets: &usize| *resets > 0)
    });
    broken.end();
}

/// The standby misses a second of commits. Accepted jobs of that second are lost, and calls of that second are repeated. No
/// record of the new primary has a hole, no reader misses an event silently, and a repeated call keeps its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: ten failovers under load"]
async fn a_fail_over_to_an_asynchronous_standby_leaves_no_hole_and_no_silent_gap() {
    let outcomes = outcomes(|_| Replication::Asynchronous).await;
    assert!(outcomes.iter().any(|run| run.lost > 0), "no failover lost a job: the standby missed nothing");
    Broken::of(&outcomes).end();
}
