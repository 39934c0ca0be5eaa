//! Accepting jobs: many clients at once share commits; one that waits for each answer cannot.

use crate::commands::bench::Bench;
use crate::commands::bench::figures::{Figure, Series, Unit};
use crate::commands::bench::load;
use futures::future::try_join_all;
use std::time::{Duration, Instant};
use turnstone_benches::jobs;
use turnstone_domain::NewJob;

/// How long jobs are enqueued for one figure.
const LASTS: Duration = Duration::from_millis(1500);
/// The numbers of clients at once by default.
const CLIENTS: &[usize] = &[16, 64];
/// Clients, and jobs in each request of theirs.
const BATCHES: &[(usize, usize)] = &[(1, 100), (1, 1000), (2, 1000)];
/// Agent jobs in a request.
const AGENT_BATCH: usize = 100;

/// Measures it. Naive is one client that waits for each answer before it sends the next job: no two jobs ever share a
/// commit.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let clients = bench.concurrency.map_or(CLIENTS.to_vec(), |one| vec![one]);
    let series = |name: String| Series::new(name, Unit::PerSecond("jobs/s"));
    let mut alone = series("1 client, plain jobs, one after another".to_owned());
    let mut several: Vec<Series> =
        clients.iter().map(|n| series(format!("{n} clients at once, plain jobs"))).collect();
    let mut batches: Vec<Series> = BATCHES
        .iter()
        .map(|(clients, n)| series(format!("{clients} clients, {n} plain jobs in a request")))
        .collect();
    let mut agents = series(format!("1 client, {AGENT_BATCH} agent jobs in a request"));
    for round in 1..=bench.rounds {
        bench.announce("enqueue", round);
        let disk = bench.place.disk().await?.fdatasync_per_s;
        let naive = rate(bench, 1, 1, jobs::plain).await?;
        alone.round(naive, disk);
        for (series, clients) in several.iter_mut().zip(&clients) {
            series.beside(rate(bench, *clients, 1, jobs::plain).await?, naive, disk);
        }
        for (series, (clients, batch)) in batches.iter_mut().zip(BATCHES) {
            series.beside(rate(bench, *clients, *batch, jobs::plain).await?, naive, disk);
        }
        agents.beside(rate(bench, 1, AGENT_BATCH, jobs::agent).await?, naive, disk);
    }
    let all = std::iter::once(&alone).chain(&several).chain(&batches).chain([&agents]);
    let mut figures: Vec<Figure> = all.map(Series::figure).collect();
    if bench.place.is_postgres() {
        let largest = several.len() + BATCHES.len();
        let figure = figures.remove(largest);
        figures.insert(largest, figure.aiming("≥ 80,000/s", |figure| figure.spread.median >= 80_000.0));
    }
    Ok(figures)
}

/// Jobs per second that `clients` clients enqueue, `batch` in each request.
async fn rate(bench: &Bench, clients: usize, batch: usize, job: fn() -> NewJob) -> anyhow::Result<f64> {
    let ground = bench.place.open().await?;
    let began = Instant::now();
    let accepted = try_join_all((0..clients).map(|_| {
        let intake = ground.store.intake.clone();
        let client = async move {
            let mut accepted = 0;
            while began.elapsed() < LASTS {
                let jobs = (0..batch).map(|_| job()).collect();
                accepted += intake.push(jobs).await?.len();
            }
            anyhow::Ok(accepted)
        };
        async { tokio::spawn(client).await? }
    }))
    .await?;
    let took = began.elapsed();
    load::clear(&ground).await?;
    Ok(accepted.iter().sum::<usize>() as f64 / took.as_secs_f64())
}
