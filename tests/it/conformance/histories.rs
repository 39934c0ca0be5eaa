//! Random histories of operations on a store and on the model; after every step both are equal.
//!
//! `PROPTEST_CASES` raises the number of histories. proptest shrinks a failure to the shortest history that fails.

use super::backend::{Backend, open};
use super::history::History;
use super::operations::{Op, operation};
use proptest::prelude::*;

const STEPS: usize = 60;

fn config(cases: u32) -> ProptestConfig {
    let requested = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: requested.unwrap_or(cases), max_shrink_iters: 500, ..ProptestConfig::default() }
}

fn run(backend: Backend, ops: Vec<Op>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let at = open(backend).await;
        let mut history = History::begin(&at).await;
        for (step, op) in ops.into_iter().enumerate() {
            history.step(step, op).await;
        }
    });
}

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn sqlite_does_what_the_model_does(ops in prop::collection::vec(operation(), 1..=STEPS)) {
        run(Backend::Sqlite, ops);
    }
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    #[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
    fn postgres_does_what_the_model_does(ops in prop::collection::vec(operation(), 1..=STEPS)) {
        run(Backend::Postgres, ops);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    #[ignore = "long: 60 histories on each store"]
    fn every_store_does_what_the_model_does(ops in prop::collection::vec(operation(), 1..=STEPS)) {
        run(Backend::Sqlite, ops.clone());
        run(Backend::Postgres, ops);
    }
}
