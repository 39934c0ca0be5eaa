//! The start of a job on an idle worker: from before the push until the first phase runs.

use crate::commands::bench::Bench;
use crate::commands::bench::figures::{Figure, Series, Unit};
use crate::commands::bench::rig::Rig;
use anyhow::Context as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use turnstone_benches::disk::percentile;
use turnstone_benches::jobs;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Ids, JobId};
use turnstone_worker::model::NoopModel;

/// Jobs of one round.
const JOBS: usize = 500;
/// Jobs in a second, under load.
const RATE: u32 = 100;
/// Between a settlement and the next push: long enough for the worker to be idle again.
const PAUSE: Duration = Duration::from_millis(4);
/// A job that has not started after this time never will.
const PATIENCE: Duration = Duration::from_secs(10);

/// Notes when the worker makes an id. The first one for a job is INIT's: making it is the first thing that the first
/// phase does. Later phases make some, too.
struct Noted {
    at: mpsc::UnboundedSender<Instant>,
}

impl Ids for Noted {
    fn next(&self) -> String {
        // The channel is closed when the measurement is over.
        let _ = self.at.send(Instant::now());
        SystemIds.next()
    }
}

/// Measures it.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let name = |part: &str| format!("enqueue to first phase, {part}");
    let mut series = [("p50", 50), ("p95", 95), ("p99", 99)]
        .map(|(part, percent)| (Series::new(name(part), Unit::Milliseconds), percent));
    let mut pushes = Series::new("of which the push itself, p50", Unit::Milliseconds);
    for round in 1..=bench.rounds {
        bench.announce("start", round);
        let disk = bench.place.disk().await?.fdatasync_per_s;
        let (starts, pushed) = round_of(bench).await?;
        for (series, percent) in &mut series {
            series.round(percentile(&starts, *percent), disk);
        }
        pushes.round(percentile(&pushed, 50), disk);
    }
    let [p50, p95, p99] = series.map(|(series, _)| series.figure());
    let below = |most: f64| move |figure: &Figure| figure.spread.median <= most;
    let (p50, p95) = match bench.place.is_postgres() {
        true => (p50.aiming("≤ 1.5 ms", below(1.5)), p95.aiming("≤ 3 ms", below(3.0))),
        false => (p50.aiming("≤ 1 ms", below(1.0)), p95.aiming("≤ 2 ms", below(2.0))),
    };
    let mut figures = vec![p50, p95, p99, pushes.figure()];
    figures.extend(under_load(bench).await?);
    Ok(figures)
}

/// Measures the same at [`RATE`] jobs a second, without waiting for slow jobs.
async fn under_load(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let name = |part: &str| format!("enqueue to first checkpoint at {RATE}/s, {part}");
    let mut series = [("p50", 50), ("p95", 95), ("p99", 99)]
        .map(|(part, percent)| (Series::new(name(part), Unit::Milliseconds), percent));
    for round in 1..=bench.rounds {
        bench.announce("start under load", round);
        let disk = bench.place.disk().await?.fdatasync_per_s;
        let starts = loaded_round(bench).await?;
        for (series, percent) in &mut series {
            series.round(percentile(&starts, *percent), disk);
        }
    }
    let [p50, p95, p99] = series.map(|(series, _)| series.figure());
    Ok(vec![p50, p95.aiming("≤ 15 ms", |figure| figure.spread.median <= 15.0), p99])
}

/// Sorted milliseconds from the planned push of a job to its first checkpoint; this includes three phases and the wait
/// for their commit.
async fn loaded_round(bench: &Bench) -> anyhow::Result<Vec<f64>> {
    let ground = bench.place.open().await?;
    let running = Rig::new(64, NoopModel::default()).start(&ground);
    let mut every = tokio::time::interval(Duration::from_secs(1) / RATE);
    let mut pushing = JoinSet::new();
    for _ in 0..JOBS {
        let due = every.tick().await.into_std();
        let intake = ground.store.intake.clone();
        pushing.spawn(async move {
            let job = jobs::agent();
            let id = job.id.clone();
            intake.push(vec![job]).await.map(|_| (id, due))
        });
    }
    let pushed: Vec<(JobId, Instant)> = pushing.join_all().await.into_iter().collect::<Result<_, _>>()?;
    let all = running.tally.until_settled(JOBS as u64);
    tokio::time::timeout(PATIENCE, all).await.context("the jobs did not end within 10 s")?;
    let first = running.tally.take_first();
    running.end().await;
    let took = pushed.iter().filter_map(|(id, due)| Some(first.get(id)?.duration_since(*due)));
    let mut starts: Vec<f64> = took.map(|took| took.as_secs_f64() * 1e3).collect();
    starts.sort_by(f64::total_cmp);
    Ok(starts)
}

/// Sorted milliseconds to the first phase, and of the push alone.
async fn round_of(bench: &Bench) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let ground = bench.place.open().await?;
    let (at, mut noted) = mpsc::unbounded_channel();
    let running = Rig { ids: Arc::new(Noted { at }), ..Rig::new(16, NoopModel::default()) }.start(&ground);
    let (mut starts, mut pushes) = (Vec::with_capacity(JOBS), Vec::with_capacity(JOBS));
    // The first jobs find cold caches and are not counted.
    for job in 0..JOBS + 20 {
        let new = jobs::agent();
        let began = Instant::now();
        ground.store.intake.push(vec![new]).await?;
        let pushed = began.elapsed();
        let started = tokio::time::timeout(PATIENCE, noted.recv()).await.ok().flatten();
        let started = started.context("a job did not start within 10 s")?;
        if job >= 20 {
            starts.push(started.duration_since(began).as_secs_f64() * 1e3);
            pushes.push(pushed.as_secs_f64() * 1e3);
        }
        running.tally.until_settled(job as u64 + 1).await;
        while noted.try_recv().is_ok() {}
        tokio::time::sleep(PAUSE).await;
    }
    running.end().await;
    starts.sort_by(f64::total_cmp);
    pushes.sort_by(f64::total_cmp);
    Ok((starts, pushes))
}
