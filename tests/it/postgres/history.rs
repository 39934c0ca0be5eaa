//! Partitions of history: a row is in the partition of its million; partitions are made in advance and dropped whole.

use super::{few, migrated, opened};
use crate::conformance::jobs::{NOW, agent, complete, discard, done, nothing, park, plain, request};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use turnstone_domain::message::{Message, Role};
use turnstone_domain::{JobId, NewJob, Phase, Timestamp, TurnWrite};
use turnstone_scheduler::{Scheduler, SchedulerOptions};
use turnstone_store::{ConfigChange, Duty, JobKind, QueueLimits, Retention, Store};
use turnstone_tests::clock::ManualClock;
use turnstone_tests::servers::Database;
use turnstone_tests::{Place, wait};

const TABLES: [&str; 4] = ["job_envelopes", "job_errors", "job_results", "journal"];
const LATER: Timestamp = Timestamp(NOW.0 + 1_000_000);

/// A store on a database of its own.
struct Site {
    database: Database,
    store: Store,
}

impl Site {
    async fn new() -> Self {
        let database = migrated().await;
        let store = opened(&few(&database.url)).await;
        Self { database, store }
    }

    async fn number(&self, sql: &str) -> i64 {
        Place::from(&self.database).number(sql).await
    }

    /// Sets the number of the next job.
    async fn next_job_is(&self, seq: i64) {
        self.number(&format!("SELECT setval('jobs_seq', {seq}, false)")).await;
    }

    /// Returns the millions for which a table has a partition of its own.
    async fn millions(&self, table: &str) -> Vec<i64> {
        let sql = format!(
            "SELECT substring(c.relname FROM '_([0-9]+)$')::BIGINT / 1000000 FROM pg_inherits AS i
             JOIN pg_class AS c ON c.oid = i.inhrelid
             WHERE i.inhparent = '{table}'::regclass AND c.relname !~ '_rest$' ORDER BY 1"
        );
        Place::from(&self.database).rows::<(i64,)>(&sql).await.into_iter().map(|(million,)| million).collect()
    }

    async fn every_table_has(&self, millions: &[i64]) {
        for table in TABLES {
            assert_eq!(self.millions(table).await, millions, "{table}");
        }
    }

    /// Returns the partitions of each history table with their numbers of rows.
    async fn rows(&self, table: &str) -> Vec<(String, i64)> {
        let sql =
            format!("SELECT CAST(tableoid::regclass AS TEXT), count(*) FROM {table} GROUP BY 1 ORDER BY 1");
        Place::from(&self.database).rows(&sql).await
    }

    async fn prune(&self, before: Timestamp) -> usize {
        let term = self.store.upkeep.lead("test", 1_000_000_000_000, NOW).await.unwrap().unwrap();
        self.store.upkeep.perform(Duty::Prune { before }, &term, LATER, 500).await.unwrap()
    }

    /// Counts all ended jobs, so that they can be pruned.
    async fn count_everything(&self) {
        self.number("WITH m AS (UPDATE statistics_mark SET ended_at = 4000000000000 RETURNING 1) SELECT count(*) FROM m")
            .await;
    }

    async fn push(&self, job: NewJob) -> JobId {
        self.store.intake.push(vec![job]).await.unwrap().remove(0).id
    }

    /// Runs an agent job with a row in every history table. Without an `end` it stays open.
    async fn lived(&self, end: Option<Timestamp>) -> JobId {
        let id = self.push(agent(None)).await;
        let held = self.store.ledger.claim(request(JobKind::Agent, 1, NOW)).await.unwrap().remove(0);
        assert_eq!(held.job, id);
        let write =
            TurnWrite { messages: vec![(1, Message::text(Role::User, "go").into())], ..done(Phase::Init) };
        let Some(end) = end else {
            self.store.ledger.settle(&held.lease, write, park(None), NOW).await.unwrap();
            return id;
        };
        self.store.ledger.settle(&held.lease, write, complete(), end).await.unwrap();
        // A failed job beside it, for the table of errors.
        self.push(plain(0)).await;
        let failed = self.store.ledger.claim(request(JobKind::Plain, 1, NOW)).await.unwrap().remove(0);
        self.store.ledger.settle(&failed.lease, nothing(), discard(), end).await.unwrap();
        id
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn rows_land_in_the_partition_of_their_million() {
    let site = Site::new().await;
    site.next_job_is(999_998).await;
    site.lived(Some(NOW)).await;
    site.lived(Some(NOW)).await;
    for table in TABLES {
        let partitions: Vec<String> = site.rows(table).await.into_iter().map(|(name, _)| name).collect();
        assert_eq!(partitions, [format!("{table}_0"), format!("{table}_1000000")]);
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_partitions_of_the_next_million_are_made_ahead_of_time() {
    let site = Site::new().await;
    site.every_table_has(&[0, 1]).await;
    let everything = Timestamp(0);
    site.prune(everything).await;
    site.every_table_has(&[0, 1]).await;
    // A job that never ends keeps the first million.
    site.lived(None).await;
    site.next_job_is(1_500_000).await;
    for _ in 0..2 {
        site.prune(everything).await;
        site.every_table_has(&[0, 1, 2]).await;
    }
    site.next_job_is(2_999_999).await;
    let scheduler = Scheduler::new(
        Arc::clone(&site.store.upkeep),
        site.store.doorbell.clone(),
        Arc::new(ManualClock::default()),
        SchedulerOptions { holder: "test".into(), retention: None, ..SchedulerOptions::new("test") },
    );
    scheduler.tick().await.unwrap();
    assert!(site.millions("journal").await.ends_with(&[2, 3]), "it is made where everything is kept, too");
    site.lived(Some(NOW)).await;
    for table in TABLES {
        assert!(site.rows(table).await.iter().all(|(name, _)| !name.ends_with("_rest")), "{table}");
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_million_that_came_too_soon_is_kept_beside_the_partitions() {
    let site = Site::new().await;
    site.next_job_is(2_500_000).await;
    site.lived(Some(NOW)).await;
    let open = site.lived(None).await;
    for table in TABLES {
        assert_eq!(site.rows(table).await[0].0, format!("{table}_rest"));
    }
    site.prune(Timestamp(0)).await;
    for table in TABLES {
        assert_eq!(site.millions(table).await, [3], "{table}");
    }
    assert!(site.store.views.job(&open).await.unwrap().is_some());
    site.count_everything().await;
    assert_eq!(site.prune(LATER).await, 2);
    assert_eq!(site.rows("job_results").await, []);
    assert_eq!(site.rows("job_envelopes").await, [("job_envelopes_rest".to_owned(), 1)]);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_million_whose_jobs_have_all_ended_is_dropped_whole_but_never_the_newest() {
    let site = Site::new().await;
    site.lived(Some(NOW)).await;
    site.next_job_is(1_000_000).await;
    let newest = site.lived(Some(NOW)).await;

    site.prune(NOW).await;
    site.every_table_has(&[0, 1, 2]).await;
    // No job is counted, so none is deleted; a partition is dropped whole.
    assert_eq!(site.prune(LATER).await, 0);
    site.every_table_has(&[1, 2]).await;
    assert!(site.store.views.job(&newest).await.unwrap().unwrap().result.is_some());
    site.count_everything().await;
    assert_eq!(site.prune(LATER).await, 4);
    for table in TABLES {
        assert_eq!(site.rows(table).await, [], "{table}");
    }
    assert_eq!(site.number("SELECT count(*) FROM jobs").await, 0);
    site.every_table_has(&[1, 2]).await;
    // The newest partition stays even without jobs: the numbers continue.
    site.next_job_is(3_000_000).await;
    site.prune(LATER).await;
    site.every_table_has(&[3, 4]).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn one_job_that_has_not_ended_long_enough_keeps_its_million() {
    let site = Site::new().await;
    site.lived(Some(NOW)).await;
    let open = site.lived(None).await;
    for (million, end) in [(1, LATER), (2, NOW), (3, NOW)] {
        site.next_job_is(million * 1_000_000).await;
        site.prune(Timestamp(0)).await;
        site.lived(Some(end)).await;
    }
    // The last of them is a later job of the open engagement.
    let moved = "WITH m AS (UPDATE jobs SET engagement_seq = 3, stream = 3 WHERE seq = 3000000 RETURNING 1)
                 SELECT count(*) FROM m";
    assert_eq!(site.number(moved).await, 1);
    assert_eq!(site.number("SELECT seq FROM jobs WHERE state = 'pending'").await, 3);
    site.next_job_is(4_000_000).await;
    assert_eq!(site.prune(LATER).await, 0, "no job is counted yet");
    site.every_table_has(&[0, 1, 3, 4, 5]).await;
    assert!(site.store.views.job(&open).await.unwrap().is_some());
}

/// A million is not dropped while a fork reads it or a queue's own retention keeps it.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_million_that_a_fork_reads_or_a_queue_keeps_is_not_dropped() {
    let site = Site::new().await;
    let read = site.lived(Some(NOW)).await;
    site.next_job_is(1_000_000).await;
    site.prune(Timestamp(0)).await;
    let kept = site.push(NewJob { queue: "kept".into(), ..plain(0) }).await;
    site.store.intake.cancel(&kept, NOW).await.unwrap();
    let retention = Retention { cancelled_ms: Some(2_000_000), ..Retention::default() };
    let limits = Some(QueueLimits { retention, ..QueueLimits::default() });
    let change = ConfigChange { limits, ..ConfigChange::default() };
    site.store.queues.configure("kept", change, NOW).await.unwrap();
    site.next_job_is(2_000_000).await;
    site.prune(Timestamp(0)).await;
    site.lived(Some(NOW)).await;
    let fork = "WITH m AS (INSERT INTO inheritances (engagement_seq, source_seq, generation, turn_until)
                           SELECT 2000000, seq, 1, 2 FROM engagements WHERE seq < 1000000 RETURNING 1)
                SELECT count(*) FROM m";
    assert_eq!(site.number(fork).await, 1);
    site.count_everything().await;
    site.prune(LATER).await;
    site.every_table_has(&[0, 1, 2, 3]).await;
    assert!(site.store.views.job(&read).await.unwrap().unwrap().result.is_some());
    assert!(site.store.views.job(&kept).await.unwrap().is_some());
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_locked_partition_is_dropped_later_and_blocks_no_other() {
    let site = Site::new().await;
    site.lived(Some(NOW)).await;
    site.next_job_is(1_500_000).await;
    let mut reader = PgConnection::connect(&site.database.url).await.unwrap();
    let mut held = reader.begin().await.unwrap();
    let read: i64 = sqlx::query_scalar("SELECT count(*) FROM journal").fetch_one(&mut *held).await.unwrap();
    assert!(read > 0);

    let pruned = wait::output("pruning does not wait for the reader", site.prune(LATER)).await;
    assert_eq!(pruned, 0);
    assert!(site.millions("journal").await.contains(&0));
    wait::output("new jobs do not wait for the reader", site.lived(Some(NOW))).await;
    held.rollback().await.unwrap();
    site.prune(LATER).await;
    site.every_table_has(&[1, 2]).await;
}
