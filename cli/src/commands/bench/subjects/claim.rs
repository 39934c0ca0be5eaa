//! Claiming and settling plain jobs, as an OJS worker of somebody else would.

use crate::commands::bench::Bench;
use crate::commands::bench::figures::{Figure, Series, Unit};
use crate::commands::bench::load::{self, QUEUE};
use futures::future::try_join_all;
use serde_json::json;
use std::time::{Duration, Instant};
use turnstone_domain::{Clock as _, Settlement, SystemClock, TurnWrite};
use turnstone_store::{Claim, ClaimRequest, JobKind};

/// The longest that jobs are claimed for one figure.
const LASTS: Duration = Duration::from_secs(2);
/// Jobs in a claim, and how many are enqueued for the measurement.
const BATCHES: &[(usize, usize)] = &[(10, 10_000), (100, 20_000)];

/// Measures it. Naive is one job at a time: claimed, settled, then the next.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let series = |name: String| Series::new(name, Unit::PerSecond("jobs/s"));
    let mut alone = series("one job after another".to_owned());
    let mut several: Vec<Series> = BATCHES
        .iter()
        .map(|(batch, _)| series(format!("{batch} jobs in a claim, settled together")))
        .collect();
    for round in 1..=bench.rounds {
        bench.tell("claim", round);
        let disk = bench.place.disk().await?.fdatasync_per_s;
        let naive = rate(bench, 1, 5_000).await?;
        alone.round(naive, disk);
        for (series, (batch, jobs)) in several.iter_mut().zip(BATCHES) {
            series.beside(rate(bench, *batch, *jobs).await?, naive, disk);
        }
    }
    Ok(std::iter::once(&alone).chain(&several).map(Series::figure).collect())
}

async fn rate(bench: &Bench, batch: usize, jobs: usize) -> anyhow::Result<f64> {
    let ground = bench.place.open().await?;
    let ids = load::enqueue(&ground, jobs, load::plain).await?;
    let ledger = &ground.store.ledger;
    let (began, mut settled) = (Instant::now(), 0);
    while began.elapsed() < LASTS {
        let request = ClaimRequest {
            kind: JobKind::Plain,
            queues: vec![QUEUE.to_owned()],
            limit: batch,
            worker_id: "bench".to_owned(),
            lease_ms: 60_000,
            now: SystemClock.now(),
        };
        let claims = ledger.claim(request).await?;
        if claims.is_empty() {
            break;
        }
        settled += claims.len();
        let settle = |claim: Claim| async move {
            let done = Settlement::Complete { result: json!("done") };
            ledger.settle(&claim.lease, TurnWrite::default(), done, SystemClock.now()).await
        };
        try_join_all(claims.into_iter().map(settle)).await?;
    }
    let took = began.elapsed();
    load::clear(&ground, &ids).await?;
    Ok(settled as f64 / took.as_secs_f64())
}
