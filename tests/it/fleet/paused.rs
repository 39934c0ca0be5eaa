//! A worker is paused for longer than its lease (SIGSTOP, like a frozen machine) and continues.

use super::Site;
use crate::program::Program;
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::{Gate, Place, Reply, model_server};

/// Starts a site with a worker `sleeper` that waits for a model's answer.
async fn asleep_at_the_model() -> (Site, Program, String, Gate) {
    let (gate, first) = (Gate::default(), AtomicBool::new(true));
    let held = gate.clone();
    let site = Site::start(move |request| match model_server::outcomes(request) {
        0 if first.swap(false, Ordering::SeqCst) => {
            Reply::call("book", json!({"for": "the sleeper"})).behind(&held)
        }
        0 => Reply::call("book", json!({"for": "the other"})),
        _ => Reply::text("done"),
    })
    .await;
    let sleeper = site.worker("sleeper", &["--lease", "1s", "--drain-grace", "1s"], &[]).await;
    let id = site.push("go").await;
    site.fleet.models.seen(1).await;
    (site, sleeper, id, gate)
}

/// Another worker runs the job to its end, then the sleeper wakes up. The tool call of the model's answer to `whose`
/// is made.
async fn the_other_ends_it(site: Site, mut sleeper: Program, id: &str, whose: &str) {
    let time = site.keep_time();
    let other = site.worker("other", &["--lease", "14s"], &[]).await;
    let done = site.fleet.wait_for(id, &[JobState::Completed, JobState::Discarded, JobState::Pending]).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!(site.last_worker(id).await, "other");
    other.stop().await;
    drop(time);
    let written = site.written().await;

    sleeper.signal("CONT");
    sleeper.warns("lease lost").await;
    sleeper.signal("TERM");
    assert_eq!(sleeper.ended().await, Some(0), "{}", sleeper.warned());
    let log = sleeper.warned();
    assert_eq!(log.matches("lease lost").count(), 1, "{log}");
    assert!(log.contains(id), "the job is not named: {log}");
    assert_eq!(site.written().await, written, "the sleeper wrote something");
    assert_eq!(site.fleet.job(id).await, done);
    let calls = site.fleet.tools.calls();
    assert_eq!(calls.len(), 1, "{calls:#?}");
    assert_eq!(calls[0].input["for"], whose);
    site.fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_paused_worker_whose_job_another_one_ended_writes_nothing() {
    let (site, sleeper, id, gate) = asleep_at_the_model().await;
    sleeper.signal("STOP");
    // The answer arrives when the sleeper wakes up, and was charged.
    gate.open();
    the_other_ends_it(site, sleeper, &id, "the other").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_paused_in_a_write_loses_no_answer_and_blocks_no_job() {
    let (site, sleeper, id, gate) = asleep_at_the_model().await;
    let Place::Url(url) = &site.fleet.place else { panic!("this is about PostgreSQL") };
    let mut conn = PgConnection::connect(url).await.unwrap();
    conn.execute("BEGIN").await.unwrap();
    conn.execute("SELECT * FROM totals FOR UPDATE").await.unwrap();
    // The sleeper's write has to wait. It is one statement, which commits while its worker is paused: the paid answer
    // is kept, and no row stays locked.
    gate.open();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    site.fleet.until("the sleeper writes", async || site.fleet.number(waiting).await > 0).await;
    sleeper.signal("STOP");
    conn.close().await.unwrap();
    the_other_ends_it(site, sleeper, &id, "the sleeper").await;
}
