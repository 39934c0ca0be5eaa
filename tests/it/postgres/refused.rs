//! A write that the database refuses fails alone, and costs the others of its batch a few transactions.

use super::{few, migrated, opened};
use crate::conformance::jobs::plain;
use turnstone_domain::NewJob;
use turnstone_store::PostgresOptions;
use turnstone_tests::Place;
use turnstone_tests::servers::Postgres;

/// Refuses jobs of one type, and counts the statements that insert jobs. A sequence forgets nothing, whatever becomes of the
/// transaction.
const REFUSE: &str = "
CREATE SEQUENCE inserts;
GRANT USAGE, SELECT ON SEQUENCE inserts TO PUBLIC;
CREATE FUNCTION count_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('inserts'); RETURN NULL; END $$;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by a trigger'; END $$;
CREATE TRIGGER counted BEFORE INSERT ON jobs FOR EACH STATEMENT EXECUTE FUNCTION count_insert();
CREATE TRIGGER refused BEFORE INSERT ON jobs FOR EACH ROW WHEN (NEW.job_type = 'refused') EXECUTE FUNCTION refuse();";

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_batch_with_a_refused_write_is_bisected() {
    let database = migrated().await;
    Postgres::shared().await.psql(&database, REFUSE).await;
    let options = PostgresOptions { writers: 1, ..few(&database.url) };
    let store = opened(&options).await;
    let jobs: Vec<NewJob> = (0..256)
        .map(|number| {
            let job_type = if number == 77 { "refused" } else { "fine" };
            NewJob { job_type: job_type.into(), ..plain(0) }
        })
        .collect();
    // One thread: all of them wait for the writer before it runs.
    let pushes = jobs.into_iter().map(|job| store.intake.push(vec![job]));
    let pushed = futures::future::join_all(pushes).await;
    let refused: Vec<usize> = (0..pushed.len()).filter(|number| pushed[*number].is_err()).collect();
    assert_eq!(refused, [77]);
    let place = Place::from(&database);
    assert_eq!(place.number("SELECT count(*) FROM jobs").await, 255);
    // Twice for the batch, then once for each half on the way to the one that is refused.
    let inserts = place.number("SELECT last_value FROM inserts").await;
    assert!(inserts < 2 + 3 * i64::from(256_u32.ilog2()), "{inserts} statements");
}
