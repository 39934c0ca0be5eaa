//! Claiming and settling plain jobs, as any OJS worker would.

use crate::commands::bench::Bench;
use crate::commands::bench::figures::{Figure, Series, Unit};
use crate::commands::bench::load;
use crate::commands::bench::place::Ground;
use futures::future::try_join_all;
use std::time::{Duration, Instant};
use turnstone_benches::jobs;
use turnstone_store::JobKind;

/// The longest time for which jobs are claimed for one figure.
const LASTS: Duration = Duration::from_secs(2);
/// The jobs in a claim, and the jobs that are enqueued for its measurement.
const BATCHES: &[(usize, usize)] = &[(10, 5_000), (100, 15_000), (500, 25_000)];
/// Jobs that wait behind those that are measured, for the figure with a backlog.
const BACKLOG: usize = 1_000_000;

/// Measures claims and settlements. The naive way is one job at a time: claimed, settled, then the next.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let series = |name: String| Series::new(name, Unit::PerSecond("jobs/s"));
    let mut alone = series("1 worker, one job after another".to_owned());
    let mut several: Vec<(Series, usize, usize, usize)> = Vec::new();
    for workers in [1, 2] {
        for (batch, jobs) in BATCHES {
            let name = format!("{workers} workers, {batch} jobs in a claim, settled together");
            several.push((series(name), workers, *batch, *jobs));
        }
    }
    for round in 1..=bench.rounds {
        bench.announce("claim", round);
        let disk = bench.place.disk().await?.fdatasync_per_s;
        let naive = rate(bench, 1, 1, 2_000).await?;
        alone.round(naive, disk);
        for (series, workers, batch, jobs) in &mut several {
            series.beside(rate(bench, *workers, *batch, *jobs).await?, naive, disk);
        }
    }
    let figures = std::iter::once(&alone).chain(several.iter().map(|(series, ..)| series));
    let mut figures: Vec<Figure> = figures.map(Series::figure).collect();
    if bench.place.is_postgres() {
        let figure = figures.remove(BATCHES.len());
        figures.insert(BATCHES.len(), figure.aiming("≥ 38,000/s", |figure| figure.spread.median >= 38_000.0));
    }
    Ok(figures)
}

/// Measures how fast jobs are claimed and settled while a million further jobs wait, and without these.
///
/// # Errors
/// The measurement could not be made.
pub async fn with_backlog(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let (batch, jobs) = BATCHES[1];
    let mut series = Series::new(
        format!("1 worker, {batch} jobs in a claim, {BACKLOG} behind"),
        Unit::PerSecond("jobs/s"),
    );
    for round in 1..=bench.rounds {
        bench.announce("backlog", round);
        let disk = bench.place.disk().await?.fdatasync_per_s;
        let without = rate(bench, 1, batch, jobs).await?;
        let ground = bench.place.open().await?;
        load::enqueue(&ground, BACKLOG, jobs::plain).await?;
        let with = drain(&ground, 1, batch).await?;
        load::clear(&ground).await?;
        series.beside(with, without, disk);
    }
    let figure = series.figure();
    Ok(vec![figure.aiming("≥ 0.95 of the rate without", |figure| figure.times_naive >= Some(0.95))])
}

async fn rate(bench: &Bench, workers: usize, batch: usize, jobs: usize) -> anyhow::Result<f64> {
    let ground = bench.place.open().await?;
    load::enqueue(&ground, jobs, jobs::plain).await?;
    let rate = drain(&ground, workers, batch).await?;
    load::clear(&ground).await?;
    Ok(rate)
}

async fn drain(ground: &Ground, workers: usize, batch: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let each = (0..workers).map(|_| claim_and_settle(ground, batch, began));
    let settled: usize = try_join_all(each).await?.into_iter().sum();
    Ok(settled as f64 / began.elapsed().as_secs_f64())
}

async fn claim_and_settle(ground: &Ground, batch: usize, began: Instant) -> anyhow::Result<usize> {
    let mut settled = 0;
    while began.elapsed() < LASTS {
        let some = load::settle_some(ground, JobKind::Plain, batch).await?;
        if some == 0 {
            break;
        }
        settled += some;
    }
    Ok(settled)
}
