//! Each text of each table is damaged in turn: the columns come from the database, so a new one is covered.

use super::schema::{Cell, cells};
use super::stage::Stage;
use turnstone_tests::Backend;

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
    stage.lists_answer(&names).await;
    stage.approve().await;
    stage.neighbours_complete(&names).await;
    stage.lists_answer(&names).await;
    for damage in damages {
        damage.undo(place).await;
    }
}

/// The first text of every table at once, then the second one, and so on.
async fn in_rounds() {
    let stage = Stage::start(Backend::Sqlite).await;
    let all = cells(&stage.server.fleet.place).await;
    let rounds = all.iter().map(|cell| cell.place + 1).max().unwrap();
    for round in 0..rounds {
        let cells: Vec<Cell> = all.iter().filter(|cell| cell.place == round).cloned().collect();
        beside(&stage, cells, round).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_text_of_any_table_harms_its_own_row_alone() {
    in_rounds().await;
}
