//! Jobs beside others for which their model always fails, and jobs whose model is away for a minute.

use crate::Pace;
use crate::figures::Figure;
use crate::stage::Stage;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use turnstone_benches::jobs::saying;
use turnstone_domain::Clock;
use turnstone_domain::clock::SystemClock;
use turnstone_tests::{ModelServer, Reply};

/// Jobs for which the model always fails.
const POISON: usize = 10;
/// Turns at once.
const SLOTS: usize = 64;
/// The share of the clean rate that counts as full.
const FULL: f64 = 0.9;
const GOOD: &str = "SELECT count(*) FROM jobs WHERE state = 'completed'";

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let jobs = if pace.trial { 40 } else { 5_000 };
    let mut figures = Vec::new();
    for postgres in Stage::EACH {
        let clean = beside(&Stage::start(postgres).await, jobs, 0).await;
        let stage = Stage::start(postgres).await;
        let name = |what: &str| format!("{}: {what}", stage.name());
        let alone = Figure::of(name(&format!("{jobs} jobs")), "s", vec![clean]);
        let poisoned = beside(&stage, jobs, POISON).await;
        figures.push(alone);
        figures.push(
            Figure::of(
                name(&format!("the same beside {POISON} for which the model always fails")),
                "s",
                vec![poisoned],
            )
            .after(clean)
            .aiming("at most 1.5 times as long", |figure| figure.median <= clean * 1.5),
        );
        drop(stage);
        figures.extend(away(&Stage::start(postgres).await, jobs, jobs as f64 / clean, pace).await);
    }
    figures
}

async fn server(well: &Arc<AtomicBool>) -> (ModelServer, String) {
    let well = Arc::clone(well);
    let models = ModelServer::start(move |request| {
        let poison = request["messages"].to_string().contains("poison");
        match well.load(Ordering::SeqCst) && !poison {
            false => Reply::Status(503),
            true => Reply::text("done"),
        }
    })
    .await;
    let settings = format!(
        "[providers.bench]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
        models.url
    );
    (models, settings)
}

/// Returns the seconds until all good jobs are completed.
async fn beside(stage: &Stage, good: usize, poison: usize) -> f64 {
    let (_models, settings) = server(&Arc::new(AtomicBool::new(true))).await;
    let _worker = stage.worker("only", SLOTS, "15s", &settings, "").await;
    let began = Instant::now();
    stage.push(saying(poison, "poison")).await;
    stage.push(saying(good, "good")).await;
    stage.at_least(GOOD, i64::try_from(good).unwrap_or(i64::MAX)).await;
    began.elapsed().as_secs_f64()
}

/// The model is away for a minute while all jobs want it.
async fn away(stage: &Stage, count: usize, rate: f64, pace: Pace) -> Vec<Figure> {
    let well = Arc::new(AtomicBool::new(false));
    let (models, settings) = server(&well).await;
    let _worker = stage.worker("only", SLOTS, "15s", &settings, "").await;
    stage.push(saying(count, "good")).await;
    tokio::time::sleep(pace.seconds(60)).await;
    let calls = models.count();
    well.store(true, Ordering::SeqCst);
    let back = SystemClock.now().0;
    let ended = "SELECT count(*) FROM jobs WHERE state IN ('completed', 'discarded')";
    stage.at_least(ended, i64::try_from(count).unwrap_or(i64::MAX)).await;
    let place = stage.place();
    let lost = place.number("SELECT count(*) FROM jobs WHERE state = 'discarded'").await;
    let last = place.number("SELECT max(ended_at) FROM jobs").await;
    let mut full = (last - back).max(0);
    let (mut at, least) = (back, (rate * FULL) as i64);
    while at < last {
        let sql = format!("SELECT count(*) FROM jobs WHERE ended_at >= {at} AND ended_at < {}", at + 1_000);
        if place.number(&sql).await >= least {
            full = at - back;
            break;
        }
        at += 100;
    }
    let name = |what: &str| format!("{}: {what}", stage.name());
    vec![
        Figure::of(name("from the end of an outage to 90 % of the clean rate"), "s", vec![full as f64 / 1e3])
            .aiming("at most 5 s", |figure| figure.median <= 5.0),
        Figure::of(name("calls to the model during the outage"), "", vec![calls as f64]),
        Figure::of(name("jobs lost"), "", vec![lost as f64]).aiming("none", |figure| figure.median == 0.0),
    ]
}
