//! More and more worker processes, each with a few turns at once that wait for a slow model.

use crate::Pace;
use crate::figures::Figure;
use crate::site::{Site, now};
use std::time::Duration;

/// How long the model takes.
const MODEL: Duration = Duration::from_millis(200);
/// Turns at once in each process: so few that the processor is not full with the first ones.
const SLOTS: usize = if cfg!(debug_assertions) { 6 } else { 40 };
const PROCESSES: [usize; 4] = [1, 2, 4, 8];

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let site = Site::start(&[]).await;
    let _scheduler = site.scheduler().await;
    let (mut workers, mut figures, mut before) = (Vec::new(), Vec::<Figure>::new(), 0.0);
    let most = SLOTS as f64 / MODEL.as_secs_f64();
    let watched = pace.seconds(10);
    for processes in PROCESSES.into_iter().take(pace.times(PROCESSES.len())) {
        while workers.len() < processes {
            let name = format!("worker-{}", workers.len());
            workers.push(site.worker(&name, SLOTS, MODEL, "15s").await);
        }
        // As much as they could do if nothing but the model took time, and a beginning.
        let begins = pace.seconds(2);
        site.stock(most * processes as f64 * (begins + watched).as_secs_f64()).await;
        tokio::time::sleep(begins).await;
        let (from, cpu) = (now(), cpu());
        tokio::time::sleep(watched).await;
        let busy = cpu_share(cpu);
        let rates = site.rates(from).await;
        let rate = Figure::of(format!("{processes} processes"), "jobs/s", rates.seconds(from, now()));
        let (median, full) = (rate.median, busy >= 90.0);
        let first = figures.first().map_or(median, |first| first.median);
        let grown = median / first / processes as f64;
        figures.push(rate.aiming("in proportion until the processor is full, and never less", |_| {
            (full || grown >= 0.9) && median >= before * 0.95
        }));
        figures.push(Figure::of(
            format!("{processes} processes, of the proportional rate"),
            "%",
            vec![grown * 100.0],
        ));
        figures.push(Figure::of(
            format!("{processes} processes, processor of the machine"),
            "% busy",
            vec![busy],
        ));
        before = median;
    }
    figures
}

/// Ticks of all processors: busy, and in all; of nothing where the system does not tell.
fn cpu() -> (u64, u64) {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> =
        first.split_ascii_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    let all: u64 = ticks.iter().sum();
    (all - idle, all)
}

fn cpu_share((busy, all): (u64, u64)) -> f64 {
    let now = cpu();
    (now.0 - busy) as f64 * 100.0 / (now.1 - all).max(1) as f64
}
