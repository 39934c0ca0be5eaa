//! Workers and schedulers that die without a word.

use crate::Pace;
use crate::figures::Figure;
use crate::site::{Site, now};
use std::time::{Duration, Instant};
use turnstone_domain::{EventName, JobId};
use turnstone_store::EventFilter;

/// Longer than the bench: the turns of those that die are in the middle of a model call.
const NEVER: Duration = Duration::from_secs(500);
/// The time from one death to the next: not in step with the leases.
const APART: Duration = Duration::from_millis(1_300);
/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let lease = if pace.trial { "1s" } else { "15s" };
    let workers = workers(pace, lease).await;
    let schedulers = schedulers(pace).await;
    let workers = Figure::of(
        format!("from SIGKILL of a worker to its job's next checkpoint elsewhere, lease of {lease}"),
        "s",
        workers,
    );
    let schedulers = Figure::of("from SIGKILL of the leading scheduler to the next leader", "s", schedulers);
    vec![
        workers.aiming("never more than the lease and 1 s", |figure| figure.high <= 16.0),
        schedulers.aiming("never more than 2 s", |figure| figure.high <= 2.0),
    ]
}

async fn workers(pace: Pace, lease: &str) -> Vec<f64> {
    let site = Site::start(&[]).await;
    let _scheduler = site.scheduler().await;
    let mut victims = Vec::new();
    for number in 0..pace.times(8) {
        victims.push(site.worker(&format!("victim-{number}"), 1, NEVER, lease).await);
    }
    let jobs = site.push(victims.len()).await;
    let mut held = Vec::new();
    for job in &jobs {
        held.push((job, event(&site, job, EventName::JobStarted, 1).await.1));
    }
    let _successor = site.worker("successor", 16, Duration::ZERO, lease).await;
    let mut killed = Vec::new();
    for (number, victim) in victims.iter_mut().enumerate() {
        tokio::time::sleep(APART).await;
        victim.kill().await;
        killed.push((format!("victim-{number}"), now()));
    }
    let mut took = Vec::new();
    for (job, worker) in held {
        let died = killed.iter().find(|(name, _)| *name == worker).map_or(0, |(_, at)| *at);
        // Init, norm and resol were committed before the death; what comes next is the model's answer.
        let (at, _) = event(&site, job, EventName::PhaseCompleted, 4).await;
        took.push((at - died) as f64 / 1e3);
    }
    took
}

/// Waits for the nth event of this name; when it was, and the worker it names.
async fn event(site: &Site, job: &JobId, name: EventName, nth: usize) -> (i64, String) {
    let since = Instant::now();
    loop {
        let filter = EventFilter::Job(job.clone());
        let events = site.store.views.events_after(&filter, 0, 100).await.expect("events");
        if let Some(event) = events.into_iter().filter(|event| event.name == name).nth(nth - 1) {
            return (event.at.0, event.data["worker_id"].as_str().unwrap_or_default().to_owned());
        }
        assert!(since.elapsed() < PATIENCE, "job {job} is not taken over");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn schedulers(pace: Pace) -> Vec<f64> {
    let site = Site::start(&[]).await;
    let (mut leader, mut standby) = (site.scheduler().await, site.scheduler().await);
    let mut took = Vec::new();
    for round in 0..pace.times(8) {
        let leads = another_leader(&site, "").await;
        // The holder's name contains its process: `host-pid-run`.
        let is = |process: &crate::site::Process| {
            process.pid().is_some_and(|pid| leads.contains(&format!("-{pid}-")))
        };
        if is(&standby) {
            std::mem::swap(&mut leader, &mut standby);
        }
        // Not in step with the renewals of the term.
        tokio::time::sleep(Duration::from_millis(70 * round as u64)).await;
        let died = Instant::now();
        leader.kill().await;
        another_leader(&site, &leads).await;
        took.push(died.elapsed().as_secs_f64());
        leader = site.scheduler().await;
    }
    took
}

/// Waits until another scheduler leads.
async fn another_leader(site: &Site, than: &str) -> String {
    let since = Instant::now();
    loop {
        if let Some(leads) = site.witness().leader().await.filter(|leads| leads != than) {
            return leads;
        }
        assert!(since.elapsed() < PATIENCE, "no scheduler leads");
    }
}
