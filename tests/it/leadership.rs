//! Concurrent schedulers on a real store: one acts, and another one takes over when it dies or ends.

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use turnstone_domain::{JobState, Timestamp};
use turnstone_scheduler::{Scheduler, SchedulerOptions};
use turnstone_store::{Duty, Ring, StoreError, Term, Upkeep};
use turnstone_tests::{Backend, Fleet};

/// The term in a fleet, in milliseconds.
const TERM: i64 = 1_200;

/// The holder of each duty that a store performed, in order.
type Acts = Arc<Mutex<Vec<String>>>;

/// A store that reports its answers to requests for the leadership, and the duties that it performs.
struct Overheard {
    inner: Arc<dyn Upkeep>,
    answers: mpsc::UnboundedSender<bool>,
    acts: Acts,
}

#[async_trait]
impl Upkeep for Overheard {
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_due().await
    }

    async fn lead(&self, holder: &str, lease_ms: i64, now: Timestamp) -> Result<Option<Term>, StoreError> {
        let term = self.inner.lead(holder, lease_ms, now).await?;
        let _ = self.answers.send(term.is_some());
        Ok(term)
    }

    async fn resign(&self, term: &Term) -> Result<(), StoreError> {
        self.inner.resign(term).await
    }

    async fn perform(
        &self,
        duty: Duty,
        term: &Term,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let rows = self.inner.perform(duty, term, now, limit).await?;
        self.acts.lock().unwrap().push(term.holder.clone());
        Ok(rows)
    }

    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.inner.release_all(now).await
    }
}

/// A running scheduler, and the answers to its requests for the leadership.
struct Running {
    name: &'static str,
    answers: mpsc::UnboundedReceiver<bool>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(fleet: &Fleet, name: &'static str, acts: &Acts) -> Self {
        let (sender, answers) = mpsc::unbounded_channel();
        let (inner, acts) = (Arc::clone(&fleet.store.upkeep), Arc::clone(acts));
        let upkeep = Arc::new(Overheard { inner, answers: sender, acts });
        let (doorbell, clock) = (fleet.store.doorbell.clone(), Arc::new(fleet.clock.clone()));
        let scheduler = Scheduler::new(upkeep, doorbell, clock, SchedulerOptions::new(name));
        let stop = CancellationToken::new();
        let task = tokio::spawn(scheduler.run(stop.clone()));
        Self { name, answers, stop, task }
    }

    /// Returns the answer to its next request.
    async fn leads(&mut self) -> bool {
        let next = tokio::time::timeout(Duration::from_secs(60), self.answers.recv()).await;
        next.expect("a scheduler asks for the leadership every 400 ms").expect("it runs")
    }

    /// Asserts that its next two requests are refused. The first may have been sent before.
    async fn is_refused(&mut self) {
        while self.answers.try_recv().is_ok() {}
        assert!(!self.leads().await && !self.leads().await, "{} leads", self.name);
    }

    /// Ends it as SIGKILL does.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Ends it as SIGTERM does.
    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Returns the holder of the leadership and the end of its term, in milliseconds from now.
async fn leader(fleet: &Fleet) -> (String, i64) {
    let rows: Vec<(String, i64)> = fleet.place.rows("SELECT holder, expires_at FROM leaders").await;
    let [(holder, expires_at)] = rows.as_slice() else { panic!("one row of leaders: {rows:?}") };
    (holder.clone(), expires_at - fleet.now().0)
}

/// Waits until one of these leads and returns it; the clock is paused, so its term has just begun.
async fn successor(fleet: &Fleet, standing_by: &mut Vec<Running>) -> Running {
    let names: Vec<&str> = standing_by.iter().map(|running| running.name).collect();
    let mut row = (String::new(), 0);
    fleet
        .until("another scheduler leads", async || {
            row = leader(fleet).await;
            names.contains(&row.0.as_str())
        })
        .await;
    assert_eq!(row.1, TERM, "the term of {} began with this moment", row.0);
    let at = names.iter().position(|name| *name == row.0).unwrap();
    standing_by.remove(at)
}

/// Makes a job due, and asserts that only this scheduler acts.
async fn acts_alone(fleet: &Fleet, running: &Running, acts: &Acts) {
    acts.lock().unwrap().clear();
    let job =
        json!({"type": "email.send", "args": [], "queue": "mail", "options": {"delay_until": "+PT0.1S"}});
    let id = fleet.push(&job).await;
    fleet.clock.advance_ms(100);
    fleet.store.doorbell.ring(Ring::Due);
    fleet.wait_for(&id, &[JobState::Available]).await;
    let acted = acts.lock().unwrap().clone();
    assert!(!acted.is_empty() && acted.iter().all(|who| who == running.name), "{acted:?}");
}

/// Asserts that the next two requests of each of these are refused.
async fn are_refused(standing_by: &mut [Running]) {
    join_all(standing_by.iter_mut().map(Running::is_refused)).await;
}

async fn one_acts(backend: Backend) {
    let fleet = Fleet::builder().on(backend).workers(0).start().await;
    let acts = Acts::default();
    let mut first = Running::start(&fleet, "first", &acts);
    assert!(first.leads().await);
    let mut standing_by: Vec<Running> =
        ["second", "third"].map(|name| Running::start(&fleet, name, &acts)).into();
    are_refused(&mut standing_by).await;
    acts_alone(&fleet, &first, &acts).await;

    // SIGKILL: the term lasts to its last millisecond, and no longer.
    first.kill().await;
    let (holder, left) = leader(&fleet).await;
    assert_eq!(holder, "first");
    fleet.clock.advance_ms(left - 1);
    are_refused(&mut standing_by).await;
    fleet.clock.advance_ms(1);
    let second = successor(&fleet, &mut standing_by).await;
    are_refused(&mut standing_by).await;
    acts_alone(&fleet, &second, &acts).await;

    // SIGTERM: the term is returned, and the clock need not move.
    second.end().await;
    let third = successor(&fleet, &mut standing_by).await;
    acts_alone(&fleet, &third, &acts).await;
    third.end().await;
    fleet.end().await;
}

/// A term of 1.2 s is measured with the clock of the test. The additional pause of 0.4 s between two requests of a
/// standby is measured in the scheduler's unit tests.
#[tokio::test]
async fn one_scheduler_acts_and_another_one_when_it_dies_or_ends() {
    join_all(Backend::ALL.map(one_acts)).await;
}
