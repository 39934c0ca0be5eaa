//! Each text of each table is damaged in turn: the columns come from the database, so a new one is covered.

use super::schema::{Cell, cells};
use super::stage::Stage;
use turnstone_tests::Backend;

/// Longer than the term of the scheduler that the stage uses.
const TERM_MS: i64 = 3_660_000;

/// Damages these values at once, and asserts that everything else works.
async fn beside(stage: &Stage, cells: Vec<Cell>, number: usize) {
    let names: Vec<String> = cells.iter().map(|cell| format!("{}.{}", cell.table, cell.column)).collect();
    let names = names.join(", ");
    let place = &stage.server.fleet.place;
    stage.victims().await;
    let mut damages = Vec::new();
    for cell in cells {
        damages.extend(cell.damage(place, number).await);
    }
    if names.contains("leaders.") {
        // An unknown leader leads to the end of its term.
        stage.server.pass_ms(TERM_MS).await;
    }
    stage.lists_answer(&names).await;
    stage.approve().await;
    stage.neighbours_complete(&names).await;
    stage.lists_answer(&names).await;
    for damage in damages {
        damage.undo(place).await;
    }
}

/// The first text of every table at once, then the second one, and so on.
async fn in_rounds(backend: Backend) {
    let stage = Stage::start(backend).await;
    let all = cells(&stage.server.fleet.place).await;
    let rounds = all.iter().map(|cell| cell.place + 1).max().unwrap();
    for round in 0..rounds {
        let cells: Vec<Cell> = all.iter().filter(|cell| cell.place == round).cloned().collect();
        beside(&stage, cells, round).await;
    }
    stage.server.end().await;
}

async fn one_by_one(backend: Backend) {
    let stage = Stage::start(backend).await;
    for (number, cell) in cells(&stage.server.fleet.place).await.into_iter().enumerate() {
        beside(&stage, vec![cell], number).await;
    }
    stage.server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_text_of_any_table_harms_its_own_row_alone() {
    in_rounds(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every text alone, on both stores"]
async fn each_damaged_text_harms_its_own_row_alone() {
    futures::future::join_all(Backend::ALL.map(one_by_one)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: the same rule on PostgreSQL"]
async fn a_damaged_text_of_any_table_harms_its_own_row_alone_on_postgres() {
    in_rounds(Backend::Postgres).await;
}
