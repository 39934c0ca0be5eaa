//! The cost of a turn when an engagement gets long.

use crate::commands::bench::Bench;
use crate::commands::bench::figures::{Figure, Series, Unit, median};
use crate::commands::bench::load;
use crate::commands::bench::models::{Idle, Restless};
use crate::commands::bench::rig::Rig;
use crate::failure::Failure;
use anyhow::Context as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use turnstone_benches::jobs;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::{Capability, Limits};
use turnstone_worker::tool::Toolbox;

/// Turns of the engagement: a few more than the last one that is compared.
const TURNS: usize = 1010;
/// The turns that are compared, and the number of neighbours on each side that are averaged with each.
const EARLY: usize = 10;
const LATE: usize = 1000;
const NEIGHBOURS: usize = 5;
/// An engagement that has not ended after this time never will.
const PATIENCE: Duration = Duration::from_secs(300);

/// Measures it: every turn calls the model once and one tool that does nothing.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let mut early = Series::new("turn 10 (median of 5 to 15)", Unit::Milliseconds);
    let mut late = Series::new("turn 1,000 (median of 995 to 1,005)", Unit::Milliseconds);
    let mut growth = Series::new("turn 1,000 compared to turn 10", Unit::Count("times"));
    for round in 1..=bench.rounds {
        bench.announce("history", round);
        let disk = bench.place.disk().await?.fdatasync_per_s;
        let turns = durations(bench).await?;
        let (tenth, thousandth) = (around(&turns, EARLY), around(&turns, LATE));
        early.round(tenth, disk);
        late.round(thousandth, disk);
        growth.in_memory(thousandth / tenth);
    }
    let growth = growth.figure().aiming("≤ 1.2", |figure| figure.spread.median <= 1.2);
    Ok(vec![early.figure(), late.figure(), growth])
}

/// Milliseconds of each turn, from its model call to the next one.
async fn durations(bench: &Bench) -> anyhow::Result<Vec<f64>> {
    let ground = bench.place.open().await?;
    let mut toolbox = Toolbox::default();
    toolbox.insert(Arc::new(Idle::new())).map_err(Failure::failed)?;
    let (model, calls) = Restless::new(TURNS);
    let running = Rig { toolbox, ..Rig::new(1, model) }.start(&ground);
    let ids = load::enqueue(&ground, 1, job).await?;
    let ended = tokio::time::timeout(PATIENCE, running.tally.until_settled(1)).await;
    running.end().await;
    load::cancel(&ground, &ids).await?;
    ended.context("the engagement did not end within 5 min")?;
    let calls: Vec<Instant> = calls.try_iter().collect();
    Ok(calls.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64() * 1e3).collect())
}

fn job() -> turnstone_domain::NewJob {
    jobs::of(AgentDefinition {
        capabilities: vec![Capability::named(Idle::NAME)],
        limits: Limits { max_turns: 2000, ..Limits::default() },
        ..jobs::model()
    })
}

/// Returns the median of a turn (counted from 1) and its neighbours.
fn around(turns: &[f64], turn: usize) -> f64 {
    let mut some: Vec<f64> =
        turns.iter().skip(turn - 1 - NEIGHBOURS).take(2 * NEIGHBOURS + 1).copied().collect();
    some.sort_by(f64::total_cmp);
    median(&some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_judged_with_its_neighbours() {
        let turns: Vec<f64> = (1..=1009).map(f64::from).collect();
        assert_eq!((around(&turns, EARLY), around(&turns, LATE)), (10.0, 1000.0));
    }
}
