//! Whole turns, seven phases each, of the real worker with a model that costs nothing.

use crate::commands::bench::Bench;
use crate::commands::bench::database::Spending;
use crate::commands::bench::figures::{Figure, Series, Unit};
use crate::commands::bench::load;
use crate::commands::bench::rig::Rig;
use anyhow::Context as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use turnstone_benches::jobs;
use turnstone_benches::machine::processor_ms;
use turnstone_worker::model::NoopModel;

/// The numbers of turns at once by default.
const AT_ONCE: &[usize] = &[1, 16, 64, 256, 1024];
/// The longest that turns are run for one figure; turns that have not settled by then do not count.
const LASTS: Duration = Duration::from_secs(4);
/// The same for the naive way, where the first of many turns may take long to end.
const NAIVE_LASTS: Duration = Duration::from_secs(20);
/// Disks with fewer waits per second are not held to the aim in turns.
const FAST_DISK: f64 = 3000.0;

/// Measures it. Naive is the same engine with a commit for each phase and one commit after another.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let at_once = bench.concurrency.map_or(AT_ONCE.to_vec(), |one| vec![one]);
    let mut figures = Vec::new();
    for turns in at_once {
        let mut series = Series::new(format!("{turns} at once"), Unit::PerSecond("turns/s"));
        let mut cost = Series::new(format!("{turns} at once, processor time of a turn"), Unit::Milliseconds);
        let mut lone_turn = Series::new("a lone turn, claim and settlement included", Unit::Milliseconds);
        let mut database = Database::new(turns);
        let mut slowest = f64::INFINITY;
        for round in 1..=bench.rounds {
            bench.announce(&format!("turns, {turns} at once"), round);
            let disk = bench.place.disk().await?.fdatasync_per_s;
            slowest = slowest.min(disk);
            let (ours, naive) = (rate(bench, turns, false).await?, rate(bench, turns, true).await?);
            series.beside(ours.per_second, naive.per_second, disk);
            lone_turn.beside(1e3 / ours.per_second, 1e3 / naive.per_second, disk);
            cost.in_memory_beside(ours.processor_ms, naive.processor_ms);
            database.round(&ours);
        }
        let figure = series.figure();
        figures.push(if turns == 256 { held_to_its_aim(bench, figure, slowest) } else { figure });
        figures.extend((turns == 1).then(|| match bench.place.is_postgres() {
            true => lone_turn.figure().aiming("≤ 2 ms", |figure| figure.spread.median <= 2.0),
            false => lone_turn.figure().aiming("≤ 1.2 ms", |figure| figure.spread.median <= 1.2),
        }));
        figures.push(cost.figure());
        figures.extend(database.figures(turns));
    }
    figures.extend(lone(bench).await?);
    Ok(figures)
}

/// Sharing commits has to pay on every disk; a rate can only be expected of a disk that allows it.
fn held_to_its_aim(bench: &Bench, figure: Figure, disk: f64) -> Figure {
    let shares = |figure: &Figure| figure.times_naive.is_some_and(|times| times >= 10.0);
    if disk < FAST_DISK {
        return figure.aiming("≥ 10 × naive (and more, had every round 3,000 fdatasync/s)", shares);
    }
    if bench.place.is_postgres() {
        return figure.aiming("≥ 10 × naive and ≥ 10,000/s", |figure| {
            shares(figure) && figure.spread.median >= 10_000.0
        });
    }
    figure
        .aiming("≥ 10 × naive and ≥ 8,000/s", |figure| shares(figure) && figure.spread.median >= 8000.0)
}

struct Rate {
    per_second: f64,
    processor_ms: f64,
    /// The work of the database's server for each turn, up to the end of the last one.
    database: Option<Spending>,
}

/// The cost of a turn for the server of the database.
struct Database {
    total: Series,
    processor: Series,
    rows: Series,
    bytes: Series,
}

impl Database {
    fn new(turns: usize) -> Self {
        let series = |what: &str, unit| Series::new(format!("{turns} at once, {what} of a turn"), unit);
        Self {
            total: series("processor time with the database's", Unit::Milliseconds),
            processor: series("processor time of the database", Unit::Milliseconds),
            rows: series("rows written", Unit::Count("rows")),
            bytes: series("write-ahead log", Unit::Count("bytes")),
        }
    }

    fn round(&mut self, rate: &Rate) {
        let Some(spent) = rate.database else { return };
        if let Some(processor_ms) = spent.processor_ms {
            self.processor.in_memory(processor_ms);
            self.total.in_memory(processor_ms + rate.processor_ms);
        }
        self.rows.in_memory(spent.rows);
        self.bytes.in_memory(spent.bytes);
    }

    /// None without a server; no processor time of a server on another machine.
    fn figures(&self, turns: usize) -> impl Iterator<Item = Figure> {
        let all = [&self.total, &self.processor, &self.rows, &self.bytes].map(Series::figure);
        let held = move |figure: Figure| match (turns, figure.unit) {
            (256, "ms") if figure.name.contains("with") => {
                figure.aiming("≤ 0.2 ms", |figure| figure.spread.median <= 0.2)
            }
            (1, "rows") => figure.aiming("≤ 10", |figure| figure.spread.median <= 10.5),
            _ => figure,
        };
        all.into_iter().filter(|figure| !figure.rounds.is_empty()).map(held)
    }
}

/// Turns in a second with a backlog of jobs that take one turn each.
async fn rate(bench: &Bench, at_once: usize, naive: bool) -> anyhow::Result<Rate> {
    let ground = bench.place.open().await?;
    let jobs = if naive { 200 + 4 * at_once } else { 2000 + 160 * at_once.min(256) };
    load::enqueue(&ground, jobs, jobs::agent).await?;
    let rig = Rig { naive, ..Rig::new(at_once, NoopModel::default()) };
    let ground = bench.place.reconnect(ground).await?;
    let spent = bench.place.spending().await?;
    let (began, busy) = (Instant::now(), processor_ms().unwrap_or_default());
    let running = rig.start(&ground);
    let lasts = if naive { NAIVE_LASTS } else { LASTS };
    let _ = tokio::time::timeout(lasts, running.tally.until_settled(jobs as u64)).await;
    let (settled, took) = running.tally.settled_since(began);
    let busy = processor_ms().unwrap_or_default() - busy;
    running.end().await;
    let settled = settled as f64;
    anyhow::ensure!(settled > 0.0, "no turn ended within {lasts:?}");
    let ground = bench.place.reconnect(ground).await?;
    let spent = spent.zip(bench.place.spending().await?);
    let database = spent.map(|(before, after)| after.since(before, settled));
    load::clear(&ground).await?;
    Ok(Rate { per_second: settled / took.as_secs_f64(), processor_ms: busy / settled, database })
}

/// Measures how often a job of one turn waits for the disk, from claim to settlement.
async fn lone(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let mut ours = Series::new(
        "waits for durability of a lone turn, claim and settlement included",
        Unit::Count("waits"),
    );
    let mut naive = Series::new("the same with a commit for each phase", Unit::Count("waits"));
    for (series, naive) in [(&mut ours, false), (&mut naive, true)] {
        let ground = bench.place.open().await?;
        load::enqueue(&ground, 1, jobs::agent).await?;
        let running = Rig { naive, ..Rig::new(1, NoopModel::default()) }.start(&ground);
        tokio::time::timeout(LASTS, running.tally.until_settled(1)).await.context("the turn did not end")?;
        series.in_memory(running.tally.waits.load(Ordering::Relaxed) as f64);
        running.end().await;
        load::clear(&ground).await?;
    }
    let ours = ours.figure().aiming("≤ 3", |figure| figure.spread.high <= 3.0);
    Ok(vec![ours, naive.figure()])
}
