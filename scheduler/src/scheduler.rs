//! The loop: sleep until something is due, run the duties, query again.

use crate::duties::{DUTIES, FireCron, Interval};
use crate::leadership::Leadership;
use crate::tick::{FALLBACK, SHORTEST, Setback, Timetable, pause};
use crate::{SchedulerOptions, WebhookSender};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use turnstone_domain::{Clock, Ids, Timestamp};
use turnstone_store::{Doorbell, Ring, Store, StoreError, Term, Upkeep};

/// The longest time for which a scheduler that ends waits until its leadership is given back.
const FAREWELL: Duration = Duration::from_secs(1);
/// The duty that takes jobs back from silent workers.
const REAPER: &str = "reap_expired";

/// Runs the duties when they are due, as long as it leads.
///
/// Any number of schedulers may run on one store. One leads; when it dies, another one does after at most four thirds
/// of its term. A scheduler that leads no longer without knowing it changes nothing: the store checks the term in the
/// transaction of every duty.
pub struct Scheduler {
    upkeep: Arc<dyn Upkeep>,
    doorbell: Doorbell,
    clock: Arc<dyn Clock>,
    retention: Option<Duration>,
    leadership: Leadership,
    crons: Option<FireCron>,
    sender: Option<WebhookSender>,
}

/// The outcome of one run of the duties.
#[derive(Default)]
struct Turn {
    /// The rows that the duties for due things changed.
    changed: usize,
    /// True if a periodic duty has more to do.
    unfinished: bool,
}

impl Scheduler {
    /// Returns a scheduler over `upkeep`, which receives [`Ring::Due`] and takes the time from `clock`.
    #[must_use]
    pub fn new(
        upkeep: Arc<dyn Upkeep>,
        doorbell: Doorbell,
        clock: Arc<dyn Clock>,
        options: SchedulerOptions,
    ) -> Self {
        let leadership = Leadership::new(Arc::clone(&upkeep), Arc::clone(&clock), &options);
        Self { upkeep, doorbell, clock, retention: options.retention, leadership, crons: None, sender: None }
    }

    /// Returns the same, which fires the cron entries of `store` as well; their jobs take their ids from `ids`.
    #[must_use]
    pub fn with_crons(self, store: &Store, ids: Arc<dyn Ids>) -> Self {
        Self { crons: Some(FireCron::new(store, ids)), ..self }
    }

    /// Returns the same, which also posts events to webhooks, as long as it leads.
    #[must_use]
    pub fn with_webhooks(self, sender: WebhookSender) -> Self {
        Self { sender: Some(sender), ..self }
    }

    /// Takes or renews the leadership and runs every duty once, the periodic ones included, as of the clock's now. Then
    /// it posts the pending events to webhooks and waits for the responses. Returns how many jobs and reviews reached a
    /// time that they waited for; 0 when another scheduler leads.
    ///
    /// # Errors
    /// The first failure of a duty. The other duties have run nevertheless, and a later tick makes up for the failed
    /// one.
    pub async fn tick(&self) -> Result<usize, StoreError> {
        let Some(term) = self.leadership.take().await? else { return Ok(0) };
        let turn = self.perform(&term, true, self.clock.now(), &mut Timetable::default()).await?;
        if let Some(sender) = &self.sender {
            sender.round(&term).await?;
        }
        Ok(turn.changed)
    }

    /// Runs until `shutdown`, then gives the leadership back, if it has it, within a second.
    ///
    /// While nothing is due the leader queries the store once every two seconds for the next time; [`Ring::Due`] makes
    /// it query at once. A failing store never ends it: the first failure is logged, then it tries again with growing
    /// pauses of at most two seconds.
    pub async fn run(self, shutdown: CancellationToken) {
        let holding = self.leadership.hold(&shutdown);
        tokio::pin!(holding);
        // Dropping the duties anywhere is safe: a batch is one transaction, committed or not.
        tokio::select! {
            () = &mut holding => return,
            () = self.keep_time() => {}
            () = self.keep_sending() => {}
            () = shutdown.cancelled() => {}
        }
        if tokio::time::timeout(FAREWELL, holding).await.is_err() {
            tracing::warn!(
                "the store did not take the leadership back in time; another scheduler leads when the term has run out"
            );
        }
    }

    async fn keep_time(&self) {
        let mut setback = Setback::none();
        let mut timetable = Timetable::default();
        // Subscribe before the first query, so that nothing that becomes due after it is missed.
        let mut ear = self.doorbell.listen_for_work();
        loop {
            let term = self.leadership.begun().await;
            match self.turn_of_the_clock(&term, &mut timetable).await {
                Ok(wait) => {
                    if setback.recovered() {
                        tracing::info!("the store answers the scheduler again");
                    }
                    tokio::select! {
                        () = wait_or_ring(&mut ear, wait) => {}
                        // The next term begins with a query of its own.
                        () = self.leadership.ended(&term) => {}
                    }
                }
                Err(error) => {
                    let (first, wait) = setback.failed();
                    if first {
                        tracing::warn!(%error, "the scheduler's store failed; it is tried again until it answers");
                    }
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    /// Posts events to webhooks beside the duties: a slow receiver delays no duty.
    async fn keep_sending(&self) {
        match &self.sender {
            Some(sender) => sender.keep_sending(&self.leadership, &self.doorbell).await,
            None => std::future::pending().await,
        }
    }

    /// Queries the next due time, runs the duties that are due, and returns the pause before the next query.
    async fn turn_of_the_clock(
        &self,
        term: &Term,
        timetable: &mut Timetable,
    ) -> Result<Duration, StoreError> {
        let next = self.upkeep.next_due().await?;
        let now = self.clock.now();
        let wait = pause(next, now);
        let turn = self.perform(term, wait.is_zero(), now, timetable).await?;
        Ok(match turn {
            Turn { unfinished: true, .. } => SHORTEST,
            // Something is due that no duty can change: query again later instead of spinning.
            Turn { changed: 0, .. } if wait.is_zero() => FALLBACK,
            Turn { .. } => wait.max(SHORTEST),
        })
    }

    /// Runs the duties that are due. When the term is lost it stops, and the new leader runs the rest.
    async fn perform(
        &self,
        term: &Term,
        due: bool,
        now: Timestamp,
        timetable: &mut Timetable,
    ) -> Result<Turn, StoreError> {
        let mut turn = Turn::default();
        let mut failure = None;
        for duty in DUTIES {
            if !timetable.wants(duty, due, now) {
                continue;
            }
            let outcome = match duty.run(self.upkeep.as_ref(), term, now, self.retention).await {
                Ok(outcome) => outcome,
                Err(StoreError::Deposed) => {
                    self.leadership.lose(term);
                    return failure.map_or(Ok(turn), Err);
                }
                Err(error) => {
                    tracing::debug!(duty = duty.name, %error, "a duty failed");
                    failure.get_or_insert(error);
                    continue;
                }
            };
            if duty.name == REAPER && outcome.rows > 0 {
                tracing::warn!(
                    jobs = outcome.rows,
                    "workers stopped responding: their leases expired, and other workers resume the jobs"
                );
            }
            match duty.interval {
                Interval::WhenDue => turn.changed += outcome.rows,
                Interval::EveryMs(_) if outcome.unfinished => turn.unfinished = true,
                Interval::EveryMs(_) => timetable.through(duty, now),
            }
        }
        // Last, so that a job that has just ended does not block its successor.
        if let Some(crons) = self.crons.as_ref().filter(|_| due) {
            match crons.run(term, now).await {
                Ok(moved) => turn.changed += moved,
                Err(StoreError::Deposed) => self.leadership.lose(term),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(turn), Err)
    }
}

/// Waits for this time, or until [`Ring::Due`]. Other notifications do not end the wait; a missed notification does.
async fn wait_or_ring(ear: &mut Receiver<Ring>, wait: Duration) {
    let due = async {
        while !matches!(ear.recv().await, Ok(Ring::Due) | Err(RecvError::Lagged(_))) {}
        tokio::time::sleep(SHORTEST).await;
    };
    let _ = tokio::time::timeout(wait, due).await;
    // One query of the store covers every notification up to now.
    *ear = ear.resubscribe();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duties::{BATCH, BATCHES};
    use crate::fake::{BEGIN, Bench};

    const FOR_DUE: [&str; 6] =
        ["expire_jobs", "expire_reviews", "remind_reviews", "time_out_jobs", "reap_expired", "promote_due"];

    async fn tick(scheduler: &Scheduler) -> usize {
        scheduler.tick().await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_tick_does_what_is_due_and_leaves_the_rest() {
        let bench = Bench::new(vec![
            ("promote_due", BEGIN - 100),
            ("reap_expired", BEGIN),
            ("expire_jobs", BEGIN),
            ("time_out_jobs", BEGIN),
            ("expire_reviews", BEGIN + 1_000),
            ("promote_due", BEGIN + 2_000),
        ]);
        let scheduler = bench.scheduler("a");
        assert_eq!(tick(&scheduler).await, 4);
        assert_eq!(tick(&scheduler).await, 0);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(tick(&scheduler).await, 2);
        assert!(bench.store.rows().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn ends_come_before_anything_is_made_available_and_counting_before_pruning() {
        let bench = Bench::new(Vec::new());
        tick(&bench.scheduler("a")).await;
        let requested = bench.rest_in_words().await;
        assert_eq!(requested[..6], FOR_DUE);
        assert_eq!(requested[6..], ["end_batches", "fold_statistics", "prune", "set_aside_reviews"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_backlog_is_worked_off_in_bounded_batches() {
        let bench = Bench::new(vec![("promote_due", BEGIN); BATCHES * BATCH + 1]);
        let scheduler = bench.scheduler("a");
        assert_eq!(tick(&scheduler).await, BATCHES * BATCH);
        let promoted = bench.rest().await.iter().filter(|requested| requested.what == "promote_due").count();
        assert_eq!(promoted, BATCHES);
        assert_eq!(tick(&scheduler).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_failing_duty_does_not_stop_the_others() {
        let bench = Bench::new(vec![("expire_jobs", BEGIN), ("promote_due", BEGIN)]);
        bench.store.rows().failing = vec!["expire_jobs"];
        let scheduler = bench.scheduler("a");
        assert!(scheduler.tick().await.is_err());
        assert_eq!(bench.store.rows().waiting, [("expire_jobs", BEGIN)]);
        assert_eq!(tick(&scheduler).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn retention_and_the_lag_of_statistics_are_kept() {
        let bench = Bench::new(vec![
            ("prune", BEGIN - 10_000),
            ("prune", BEGIN - 9_999),
            ("fold_statistics", BEGIN - 120_001),
            ("fold_statistics", BEGIN - 120_000),
        ]);
        let keeping = |retention| SchedulerOptions { retention, ..SchedulerOptions::new("a") };
        tick(&bench.scheduler_with(keeping(None))).await;
        let waiting = bench.store.rows().waiting.clone();
        assert_eq!(waiting.iter().filter(|(duty, _)| *duty == "prune").count(), 2, "everything is kept");
        tick(&bench.scheduler_with(keeping(Some(Duration::from_millis(9_999))))).await;
        assert_eq!(
            bench.store.rows().waiting,
            [("prune", BEGIN - 9_999), ("fold_statistics", BEGIN - 120_000)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_tick_stops_in_the_middle_when_another_scheduler_takes_over() {
        let bench = Bench::new(vec![("expire_jobs", BEGIN), ("time_out_jobs", BEGIN)]);
        bench.store.rows().overthrown_before = Some("time_out_jobs");
        let scheduler = bench.scheduler("a");
        assert_eq!(tick(&scheduler).await, 1);
        assert_eq!(bench.rest_in_words().await, FOR_DUE[..4]);
        assert_eq!(tick(&scheduler).await, 0);
        assert_eq!(
            bench.rest_in_words().await,
            Vec::<&str>::new(),
            "a standby asks for nothing but the lead"
        );
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(tick(&scheduler).await, 1, "the rival has gone");
    }

    #[tokio::test(start_paused = true)]
    async fn the_loop_sleeps_through_rings_for_others_and_wakes_for_its_own() {
        let bench = Bench::new(Vec::new());
        let running = bench.start("a");
        for expected in ["next_due", "end_batches", "fold_statistics", "prune", "set_aside_reviews"] {
            assert_eq!(bench.next().await.what, expected);
        }
        for _ in 0..100 {
            bench.ring(Ring::Available);
        }
        let requested = bench.next().await;
        assert_eq!(
            (requested.what, requested.at),
            ("next_due", BEGIN + 2_000),
            "nothing but the fallback wakes it"
        );
        bench.store.rows().waiting = vec![("promote_due", BEGIN + 2_000)];
        bench.ring(Ring::Due);
        for expected in ["next_due"].into_iter().chain(FOR_DUE) {
            let requested = bench.next().await;
            assert_eq!((requested.what, requested.at), (expected, BEGIN + 2_005));
        }
        running.end().await;
        assert_eq!(bench.rest_in_words().await, ["resign"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_leader_asks_the_store_once_every_two_seconds() {
        let bench = Bench::new(Vec::new());
        let leader = bench.start("a");
        assert_eq!(bench.next_that(|requested| requested.what == "next_due").await.at, BEGIN);
        let standby = bench.start("b");
        let requested = bench.watch(121).await;
        let looks: Vec<i64> = requested
            .iter()
            .filter(|requested| requested.what == "next_due")
            .map(|requested| requested.at - BEGIN)
            .collect();
        assert_eq!(looks, (1..=60).map(|look| look * 2_000).collect::<Vec<_>>());
        // A row that becomes due without a notification waits for the next query.
        bench.store.rows().waiting = vec![("promote_due", bench.now())];
        let promoted = bench.next_that(|requested| requested.what == "promote_due").await;
        assert_eq!(promoted.at - BEGIN, 122_000);
        leader.end().await;
        standby.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn periodic_duties_run_once_per_period_and_repeat_until_done() {
        let bench = Bench::new(vec![("prune", 0); BATCHES * BATCH + 1]);
        let options = SchedulerOptions { retention: Some(Duration::ZERO), ..SchedulerOptions::new("a") };
        let stop = CancellationToken::new();
        let running = tokio::spawn(bench.scheduler_with(options).run(stop.clone()));
        let mut runs = Vec::new();
        while bench.now() < BEGIN + 125_000 {
            let requested = bench.next().await;
            if ["fold_statistics", "prune"].contains(&requested.what) {
                runs.push((requested.what, (requested.at - BEGIN) / 1_000));
            }
        }
        stop.cancel();
        running.await.unwrap();
        let folded: Vec<_> = runs.iter().filter(|(what, _)| *what == "fold_statistics").collect();
        assert_eq!(folded, [&("fold_statistics", 0), &("fold_statistics", 60), &("fold_statistics", 120)]);
        let pruned: Vec<_> = runs.iter().filter(|(what, _)| *what == "prune").map(|(_, at)| *at).collect();
        assert_eq!(pruned[..=BATCHES], vec![0; BATCHES + 1], "what is left over does not wait for a minute");
        assert_eq!(pruned[BATCHES + 1..], [60, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_store_does_not_end_the_loop() {
        let bench = Bench::new(vec![("reap_expired", BEGIN)]);
        bench.store.rows().failing = vec!["lead", "lead", "next_due", "next_due"];
        let running = bench.start("a");
        for expected in ["next_due"; 3].into_iter().chain(FOR_DUE) {
            assert_eq!(bench.next().await.what, expected);
        }
        assert!(bench.store.rows().waiting.is_empty());
        running.end().await;
    }
}
