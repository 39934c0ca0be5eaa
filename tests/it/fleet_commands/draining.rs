//! One signal drains a process, a second one stops it at once; neither loses a job.

use super::Site;
use futures::StreamExt as _;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_tests::{Reply, wait};

/// A site with a model that does not answer the first time.
async fn site() -> Site {
    let first = AtomicBool::new(true);
    Site::migrated(
        move |_| if first.swap(false, Ordering::SeqCst) { Reply::Hang } else { Reply::text("done") },
    )
    .await
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_drained_worker_releases_its_jobs_at_once() {
    let site = site().await;
    let api = site.api().await;
    let mut worker = site.worker("first", &["--lease", "10m", "--drain-grace", "1s"]).await;
    let id = api.push().await;
    site.asked().await;
    worker.signal("TERM");
    worker.warns("stopping: turns give their jobs back").await;
    assert_eq!(worker.ended().await, Some(0));
    assert_eq!(api.job(&id).await["state"], "available", "a lease of ten minutes was not given back");
    assert!(api.workers().await.is_empty());

    // There is no scheduler: no lease has to expire or to be reaped.
    let second = site.worker("second", &[]).await;
    api.event(&id, |name, _| name == "job.completed").await;
    let job = api.job(&id).await;
    assert_eq!(job["attempt"], 2, "{job:#}");
    assert!(job["errors"].as_array().is_none_or(Vec::is_empty), "a drain is no failure: {job:#}");
    second.stop().await;
    api.program.stop().await;
}

/// `worker drain` does to a worker on any machine what SIGTERM does to its process.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_is_drained_from_afar() {
    let site = site().await;
    let api = site.api().await;
    let mut worker = site.worker("first", &["--lease", "10m", "--drain-grace", "1s"]).await;
    let id = api.push().await;
    site.asked().await;
    let quiet = api.run(&["worker", "quiet", "first"]).await;
    assert!(quiet.code == Some(5) && quiet.stderr.contains("turnstone worker drain"), "{quiet:?}");
    let planned = api.run(&["worker", "drain", "--matching", "f*", "--dry-run"]).await;
    assert_eq!(planned.stdout.trim(), "would drain first", "{planned:?}");
    let drained = api.run(&["worker", "drain", "first"]).await;
    assert_eq!(drained.stdout.trim(), "first drains", "{drained:?}");
    worker.warns("an operator directed this worker to drain").await;
    worker.warns("stopping: turns give their jobs back").await;
    assert_eq!(worker.ended().await, Some(0));
    assert_eq!(api.job(&id).await["state"], "available", "a lease of ten minutes was not given back");
    assert!(api.workers().await.is_empty());
    let unknown = api.run(&["worker", "drain", "first"]).await;
    assert_eq!(unknown.code, Some(4), "{unknown:?}");

    // A worker of the same name is not drained again.
    let second = site.worker("first", &[]).await;
    api.event(&id, |name, _| name == "job.completed").await;
    second.stop().await;
    api.program.stop().await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_second_signal_stops_a_worker_at_once_and_loses_nothing() {
    let site = site().await;
    let api = site.api().await;
    let mut worker = site.worker("first", &["--lease", "2s", "--drain-grace", "10m"]).await;
    let id = api.push().await;
    site.asked().await;
    worker.signal("TERM");
    worker.warns("stopping").await;
    let http = turnstone_tests::http::client();
    wait::until("the fleet sees that the worker drains", async || {
        let listed = http.get(format!("{}/workers", api.url)).send().await.unwrap();
        let workers: Vec<Value> = listed.json().await.unwrap();
        workers.iter().any(|worker| worker["state"] == "draining" && worker["busy"] == 1)
    })
    .await;
    // The model never answers, so a drain would last for its ten minutes of grace.
    worker.signal("INT");
    assert_eq!(worker.ended().await, Some(130));

    // Started after the kill, so that no lease of a slow machine is reaped while its worker lives.
    let scheduler = site.scheduler().await;
    let second = site.worker("second", &[]).await;
    api.event(&id, |name, _| name == "job.completed").await;
    assert_eq!(api.job(&id).await["attempt"], 2);
    for program in [second, scheduler, api.program] {
        program.stop().await;
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_drained_api_ends_its_event_streams() {
    let site = site().await;
    let mut api = site.api().await;
    let id = api.push().await;
    let http = turnstone_tests::http::client();
    let url = format!("{}/ojs/v1/jobs/{id}/events?stream=true", api.url);
    let mut stream = http.get(url).send().await.unwrap().bytes_stream();
    wait::output("the first event of the stream", stream.next()).await.unwrap().unwrap();
    api.program.signal("TERM");
    wait::output("the end of the stream", stream.count()).await;
    assert_eq!(api.program.ended().await, Some(0));
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_drained_scheduler_lets_the_next_one_lead_at_once() {
    let site = site().await;
    let (first, second) = (site.scheduler().await, site.scheduler().await);
    first.stop().await;
    second.stop().await;
    let leads = turnstone_tests::servers::Postgres::shared()
        .await
        .psql(
            &site.database,
            "SELECT count(*) FROM leaders WHERE expires_at > extract(epoch FROM now()) * 1000",
        )
        .await;
    assert_eq!(leads, "0", "a term outlived its scheduler");
}
