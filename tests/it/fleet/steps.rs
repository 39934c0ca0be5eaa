//! A database whose clock steps by 20 minutes under a fleet of processes.

use super::Site;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use turnstone_domain::Clock;
use turnstone_domain::ids::SystemIds;
use turnstone_store::{PostgresOptions, PostgresStore};
use turnstone_tests::servers::{Database, Postgres};
use turnstone_tests::{Fleet, Gate, Place, Reply, wait};

const STEP_MS: i64 = 20 * 60_000;
const LEASE_MS: i64 = 3_000;

/// Makes the database's clock show a time that [`step`] moves: sessions find this function before PostgreSQL's own.
async fn movable_clock() -> Database {
    let postgres = Postgres::shared().await;
    let database = postgres.database().await;
    Place::from(&database).migrate().await;
    let sql = format!(
        "CREATE SCHEMA clock; CREATE TABLE clock.steps (by_ms BIGINT NOT NULL); INSERT INTO clock.steps VALUES (0); \
         GRANT USAGE ON SCHEMA clock TO PUBLIC; GRANT SELECT ON clock.steps TO PUBLIC; \
         CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ \
         SELECT pg_catalog.clock_timestamp() + by_ms * interval '1 millisecond' FROM clock.steps $$; \
         ALTER DATABASE {} SET search_path = public, pg_catalog",
        database.name
    );
    postgres.psql(&database, &sql).await;
    database
}

async fn step(url: &str, by_ms: i64) {
    let name = url.rsplit('/').next().unwrap();
    let postgres = Postgres::shared().await;
    let sql = format!("UPDATE clock.steps SET by_ms = by_ms + {by_ms}");
    postgres.psql(&postgres.named(name), &sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn processes_adopt_a_step_of_the_clock_within_two_seconds_of_one_another() {
    let database = movable_clock().await;
    let options =
        PostgresOptions { connections: 2, writers: 1, listen: false, ..PostgresOptions::new(&database.url) };
    let mut opened = Vec::new();
    for _ in 0..3 {
        opened.push(PostgresStore::open(&options, Arc::new(SystemIds)).await.unwrap());
    }
    for by_ms in [STEP_MS, -STEP_MS] {
        let before = opened[0].1.now();
        step(&database.url, by_ms).await;
        let mut adopted = Vec::new();
        let is_adopted = |clock: &Arc<dyn Clock>| (clock.now().since(before) - by_ms).abs() < STEP_MS / 2;
        wait::until("every process adopts the step", async || {
            let now = opened.iter().filter(|(_, clock)| is_adopted(clock)).count();
            adopted.resize(now.max(adopted.len()), Instant::now());
            adopted.len() == opened.len()
        })
        .await;
        let apart = *adopted.last().unwrap() - adopted[0];
        assert!(apart < Duration::from_secs(2), "the processes adopted the step {apart:?} apart");
        let steps = opened[0].1.steps();
        let found = if by_ms > 0 { steps.forward } else { steps.back };
        assert!((found.unwrap().by_ms - STEP_MS).abs() < 500, "{steps:?}");
    }
    // Together the steps change nothing.
    let forward = opened[0].1.steps().forward;
    assert!(forward.is_none_or(|step| step.by_ms < 500), "{forward:?}");
}

/// Two workers hold leases when the clock steps. Later one of them is killed, and the clock steps again.
#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn leases_keep_their_lengths(first_ms: i64, second_ms: i64) {
    let gate = Gate::default();
    let held = gate.clone();
    let database = movable_clock().await;
    let builder = Fleet::builder().on_database(database).in_real_time().workers(0);
    let fleet = builder.model(move |_| Reply::text("done").behind(&held)).start().await;
    let site = Site { folder: super::configured(&fleet), fleet };
    let url = site.fleet.place.to_string();
    let lease = format!("{LEASE_MS}ms");
    let mut workers = Vec::new();
    for name in ["one", "two"] {
        workers.push(site.worker(name, &["--slots", "2", "--lease", &lease], &[]).await);
    }
    let mut schedulers = Vec::new();
    for _ in 0..2 {
        let mut scheduler = site.program(&["scheduler"], &[]);
        scheduler.first_line("turnstone scheduler ").await;
        schedulers.push(scheduler);
    }
    let mut jobs = Vec::new();
    for n in 0..4 {
        jobs.push(site.push(&format!("job {n}")).await);
    }
    site.fleet.models.seen(4).await;

    step(&url, first_ms).await;
    // Each lease is extended beyond its second end in the new time.
    let begun = site.fleet.number("SELECT max(lease_expires_at) FROM jobs").await;
    let extended = format!(
        "SELECT count(*) FROM jobs WHERE state = 'active' AND lease_expires_at BETWEEN {0} + 2 * {LEASE_MS} AND {0} + 60000",
        begun + first_ms
    );
    site.fleet.until("the leases last", async || site.fleet.number(&extended).await == 4).await;
    for id in &jobs {
        assert_eq!(site.fleet.job(id).await["attempt"], 1, "a lease was lost");
    }

    let orphans = site.jobs_of("one").await;
    assert_eq!(orphans.len(), 2);
    let mut victim = workers.remove(0);
    victim.signal("KILL");
    assert_eq!(victim.ended().await, None);
    step(&url, second_ms).await;
    workers.push(site.worker("three", &["--slots", "2", "--lease", &lease], &[]).await);
    let most = Duration::from_millis(LEASE_MS.unsigned_abs()) + Duration::from_secs(9);
    tokio::time::timeout(most, site.fleet.models.seen(6))
        .await
        .expect("the jobs of a killed worker are taken over");
    gate.open();
    for id in &jobs {
        let done = site.fleet.settled(id).await;
        let attempts = if orphans.contains(id) { 2 } else { 1 };
        assert_eq!((&done["state"], &done["attempt"]), (&json!("completed"), &json!(attempts)), "{done:#}");
    }
    assert_eq!(site.fleet.models.count(), 6, "a turn ran twice");
    for program in workers.into_iter().chain(schedulers) {
        program.stop().await;
    }
    site.fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: leases of three seconds outlast two steps"]
async fn a_step_back_of_the_clock_neither_loses_a_lease_nor_keeps_that_of_a_killed_worker() {
    leases_keep_their_lengths(-STEP_MS, -STEP_MS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: leases of three seconds outlast two steps"]
async fn a_step_forward_of_the_clock_neither_loses_a_lease_nor_keeps_that_of_a_killed_worker() {
    leases_keep_their_lengths(STEP_MS, STEP_MS).await;
}
