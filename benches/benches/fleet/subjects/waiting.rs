//! Ten thousand engagements that wait for a slow model in one worker process, and a fast one beside them.

use crate::Pace;
use crate::figures::Figure;
use crate::site::Process;
use crate::stage::{PATIENCE, Stage};
use std::time::{Duration, Instant};
use turnstone_benches::jobs::saying;
use turnstone_tests::{Gate, ModelServer, Reply};

/// Engagements of the fast model before anything is measured, and for each figure of it.
const BEFORE: usize = 64;
const FAST: usize = 30;
const ENDED: &str = "SELECT count(*) FROM jobs WHERE state = 'completed'";

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let (waiting, fast) = if pace.trial { (40, 3) } else { (10_000, FAST) };
    let mut figures = Vec::new();
    for postgres in Stage::EACH {
        figures.extend(on(&Stage::start(postgres).await, waiting, fast, pace).await);
    }
    figures
}

async fn on(stage: &Stage, waiting: usize, fast: usize, pace: Pace) -> Vec<Figure> {
    let gate = Gate::default();
    let held = gate.clone();
    let models = ModelServer::start(move |request| {
        let fast = request["messages"].to_string().contains("fast");
        if fast { Reply::text("done") } else { Reply::text("done").behind(&held) }
    })
    .await;
    let settings = format!(
        "[providers.bench]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\ntimeout_ms = 900_000\n",
        models.url
    );
    let worker = stage.worker("only", waiting + BEFORE, "15s", &settings, "").await;
    stage.push(saying(BEFORE, "fast")).await;
    stage.at_least(ENDED, ended(BEFORE)).await;
    let alone = latencies(stage, &worker, fast).await;
    let (before, requested) = (worker.resident_kb(), models.count());
    let began = Instant::now();
    stage.push(saying(waiting, "slow")).await;
    let all = tokio::time::timeout(PATIENCE, models.seen(requested + waiting)).await;
    assert!(all.is_ok(), "{} of {waiting} came to the model", models.count() - requested);
    let filled = began.elapsed().as_secs_f64();
    tokio::time::sleep(pace.seconds(2)).await;
    let memory = (worker.resident_kb() - before) / waiting as f64;
    let (watched, ticks) = (Instant::now(), worker.processor_s());
    tokio::time::sleep(pace.seconds(10)).await;
    let busy = (worker.processor_s() - ticks) / watched.elapsed().as_secs_f64() * 100.0;
    let beside = latencies(stage, &worker, fast).await;
    let released = Instant::now();
    gate.open();
    stage.at_least(ENDED, ended(BEFORE + waiting + 2 * fast)).await;
    let drained = released.elapsed().as_secs_f64();

    let name = |what: &str| format!("{}: {what}", stage.name());
    let alone = Figure::of(name("a fast engagement alone, from enqueue to its end"), "ms", alone);
    let usual = alone.median;
    vec![
        Figure::of(name(&format!("memory of one of {waiting} that wait")), "KB", vec![memory]),
        alone,
        Figure::of(name(&format!("the same beside {waiting} that wait")), "ms", beside)
            .after(usual)
            .aiming("at most twice as long and 50 ms", |figure| figure.median <= usual * 2.0 + 50.0),
        Figure::of(name("processor of the worker while they wait"), "% of a core", vec![busy]),
        Figure::of(name("from the first enqueued to the last at the model"), "s", vec![filled]),
        Figure::of(name("from the answers to the last that is completed, none lost"), "s", vec![drained]),
    ]
}

fn ended(jobs: usize) -> i64 {
    i64::try_from(jobs).unwrap_or(i64::MAX)
}

/// How long engagements of the fast model take, one after another, as the database has it.
async fn latencies(stage: &Stage, worker: &Process, count: usize) -> Vec<f64> {
    let mut took = Vec::new();
    for _ in 0..count {
        let job = saying(1, "fast").remove(0);
        let id = stage.ask(worker, job, "fast").await;
        let of = |what: &str| format!("SELECT {what} FROM jobs WHERE id = '{id}'");
        stage.at_least(&format!("{} AND ended_at IS NOT NULL", of("count(*)")), 1).await;
        took.push(stage.place().number(&of("ended_at - created_at")).await as f64);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    took
}
