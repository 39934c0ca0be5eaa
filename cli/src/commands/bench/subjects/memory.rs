//! Memory of turns that wait for a slow model.

use crate::commands::bench::Bench;
use crate::commands::bench::figures::{Figure, Series, Unit};
use crate::commands::bench::load;
use crate::commands::bench::models::{Idle, Patient};
use crate::commands::bench::rig::Rig;
use crate::failure::Failure;
use anyhow::Context as _;
use std::time::Duration;
use turnstone_benches::jobs;
use turnstone_benches::machine::resident_kb;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::Capability;
use turnstone_worker::model::NoopModel;
use turnstone_worker::tool::Toolbox;

/// Turns that wait by default.
const WAITING: usize = 10_000;
/// Messages that they hold by default: the user's alone, and that with three tool calls and their answers.
const MESSAGES: &[usize] = &[1, 7];
/// Turns that are run first, so that memory which is needed only once is allocated already.
const BEFORE: usize = 64;
/// Turns that have not reached the model after this time never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures it. A round is a process of its own, because memory that an earlier round gave back to the allocator
/// would be taken again unseen.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let waiting = bench.concurrency.unwrap_or(WAITING);
    let mut figures = Vec::new();
    for messages in bench.messages.map_or(MESSAGES.to_vec(), |one| vec![one]) {
        let name = format!("{waiting} turns waiting, messages each: {messages}");
        let mut series = Series::new(name, Unit::Count("KB/turn"));
        for round in 1..=bench.rounds {
            bench.announce(&format!("memory, messages each: {messages}"), round);
            series.in_memory(match bench.messages {
                Some(_) if bench.rounds == 1 => per_turn(bench, waiting, messages).await?,
                _ => elsewhere(bench, waiting, messages).await?,
            });
        }
        let figure = series.figure();
        figures.push(match messages {
            1 => figure.aiming("≤ 10 KB", |figure| figure.spread.median <= 10.0),
            2..=7 => figure.aiming("≤ 20 KB", |figure| figure.spread.median <= 20.0),
            _ => figure,
        });
    }
    Ok(figures)
}

/// Runs one round in a process of its own.
async fn elsewhere(bench: &Bench, waiting: usize, messages: usize) -> anyhow::Result<f64> {
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let mut command = tokio::process::Command::new(program);
    command.args(["--quiet", "-o", "json", "bench", "memory", "--rounds", "1"]);
    command.args(["--concurrency", &waiting.to_string(), "--messages", &messages.to_string()]);
    command.args(bench.place.flags()).kill_on_drop(true);
    let output = command.output().await.context("another process of this program cannot be started")?;
    let failed = || {
        let words = String::from_utf8_lossy(&output.stderr);
        Failure::failed(format!("a round in a process of its own failed: {}", words.trim()))
    };
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|_| failed())?;
    Ok(report["subjects"][0]["figures"][0]["median"].as_f64().ok_or_else(failed)?)
}

/// Kilobytes that each of `waiting` turns with `messages` messages adds.
async fn per_turn(bench: &Bench, waiting: usize, messages: usize) -> anyhow::Result<f64> {
    let ground = bench.place.open().await?;
    let warm = Rig::new(waiting, NoopModel::default()).start(&ground);
    load::enqueue(&ground, BEFORE, jobs::agent).await?;
    tokio::time::timeout(PATIENCE, warm.tally.until_settled(BEFORE as u64))
        .await
        .context("the turns did not end")?;
    warm.end().await;

    let (model, mut reached) = Patient::new(messages);
    let mut toolbox = Toolbox::default();
    toolbox.insert(std::sync::Arc::new(Idle::new())).map_err(Failure::failed)?;
    let ids = load::enqueue(&ground, waiting, || jobs::of(with_tool())).await?;
    let before = resident().await?;
    let running = Rig { toolbox, ..Rig::new(waiting, model) }.start(&ground);
    let all = reached.wait_for(|reached| *reached >= waiting);
    tokio::time::timeout(PATIENCE, all).await.context("not every turn reached the model")??;
    let after = resident().await?;
    // Cancelling ends the turns at once; a drain would wait for the model.
    drop(running);
    load::cancel(&ground, &ids).await?;
    Ok((after - before) / waiting as f64)
}

fn with_tool() -> AgentDefinition {
    AgentDefinition { capabilities: vec![Capability::named(Idle::NAME)], ..jobs::model() }
}

async fn resident() -> anyhow::Result<f64> {
    // Turns that have just ended may still be releasing their memory.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let kb = resident_kb().ok_or_else(|| Failure::failed("this system does not report the used memory"))?;
    Ok(kb as f64)
}
