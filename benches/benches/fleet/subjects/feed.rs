//! The feed of all events: how long after the commit of an event its reader has it, with a scheduler and without one.

use crate::Pace;
use crate::figures::Figure;
use crate::site::{Process, Site};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use turnstone_tests::sse;

/// Jobs that are enqueued in each second, one by one.
const RATE: u32 = 100;

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    turnstone_tests::http::install_crypto();
    let led = delays(pace, true).await;
    let alone = delays(pace, false).await;
    let of = |delays: &[f64], share: f64| {
        let at = (delays.len() as f64 * share) as usize;
        vec![delays.get(at).copied().unwrap_or_default()]
    };
    let longest = alone.last().copied().unwrap_or_default();
    vec![
        Figure::of(format!("delay of an event at {RATE} jobs/s, p50"), "ms", of(&led, 0.5)),
        Figure::of(format!("delay of an event at {RATE} jobs/s, p95"), "ms", of(&led, 0.95))
            .aiming("at most 50 ms", |figure| figure.median <= 50.0),
        Figure::of("without a scheduler, p95", "ms", of(&alone, 0.95)),
        Figure::of("without a scheduler, the longest", "ms", vec![longest])
            .aiming("at most 3 s", |figure| figure.high <= 3_000.0),
    ]
}

/// Returns the delays of all events in milliseconds, the shortest first. Each is counted from the answer to the push, which the
/// store gives right after the commit.
async fn delays(pace: Pace, led: bool) -> Vec<f64> {
    let site = Site::start(&[]).await;
    let _scheduler = if led { Some(site.scheduler().await) } else { None };
    let url = Some(site.database.url.as_str());
    let api = Process::start(&site.folder("api"), &["api", "--bind", "127.0.0.1:0"], url).await;
    let address = api.said.rsplit(' ').next().unwrap_or_default();
    let stream = format!("{address}/ojs/v1/events/stream?types=job.enqueued");
    let pause = Duration::from_secs(1) / RATE;
    let jobs = (pace.seconds(20).as_secs_f64() * f64::from(RATE)) as usize;
    let reading = tokio::spawn(async move {
        let mut came = Vec::with_capacity(jobs);
        let events = sse::follow(
            || stream.clone(),
            |events| {
                came.push(Instant::now());
                events.len() == jobs
            },
        );
        let events = events.await;
        let subject = |event| sse::data(event)["subject"].as_str().unwrap_or_default().to_owned();
        events.iter().map(subject).zip(came).collect::<HashMap<String, Instant>>()
    });
    // The stream begins with the next event, so it has to be open.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut pushed = Vec::with_capacity(jobs);
    let mut ticks = tokio::time::interval(pause);
    for _ in 0..jobs {
        ticks.tick().await;
        let job = site.push(1).await.remove(0);
        pushed.push((job, Instant::now()));
    }
    let came = reading.await.expect("the events of all jobs");
    let delay = |(job, at): &(turnstone_domain::JobId, Instant)| {
        came[job.as_str()].saturating_duration_since(*at).as_secs_f64() * 1e3
    };
    let mut delays: Vec<f64> = pushed.iter().map(delay).collect();
    delays.sort_by(f64::total_cmp);
    delays
}
