//! The loop: ask the store when something is due, sleep until then, run the duties.
//!
//! [`Scheduler::run`] keeps three futures going side by side: one renews the leadership, one runs the duties while this
//! scheduler leads, and one posts events to webhooks. The duties themselves are transactions of the store.

use crate::duties::{DUTIES, FireCron, Interval};
use crate::leadership::Leadership;
use crate::tick::{FALLBACK, SHORTEST, Setback, Timetable, pause};
use crate::{SchedulerOptions, WebhookSender};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use turnstone_domain::agent::FanOutRules;
use turnstone_domain::{Clock, Ids, Timestamp};
use turnstone_store::{Doorbell, Ring, Store, StoreError, Term, Upkeep};

/// The longest time that a scheduler waits at its end until the store has taken its leadership back.
const RESIGN_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of terms for which the duties of a leader fail before it resigns, so that another scheduler leads.
const TERMS: u32 = 2;
/// The same at most, after it has resigned several times without a success.
const MOST_TERMS: u32 = 64;
/// The name of the duty that takes jobs back from workers whose leases have expired. Of all duties, only its changes are logged
/// as a warning.
const REAPER: &str = "reap_expired";

/// Runs the duties when they are due, as long as it leads.
///
/// Any number of schedulers may run on one store. One leads; when it dies, another one takes over after at most four thirds
/// of its term. A scheduler may have lost the leadership without knowing it. It then changes nothing, because the store
/// checks the term in the transaction of every duty.
pub struct Scheduler {
    upkeep: Arc<dyn Upkeep>,
    doorbell: Doorbell,
    clock: Arc<dyn Clock>,
    retention: Option<Duration>,
    leadership: Leadership,
    crons: Option<FireCron>,
    sender: Option<WebhookSender>,
}

/// The outcome of one pass over the table of duties.
#[derive(Default)]
struct Performed {
    /// The rows that the duties of [`Interval::WhenDue`] changed.
    changed: usize,
    /// True if a periodic duty used up its batches and has more to do.
    unfinished: bool,
}

impl Scheduler {
    /// Returns a scheduler that performs duties through `upkeep`, is woken by the [`Ring::Due`] of `doorbell`, and takes the
    /// time from `clock`.
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

    /// Returns the same scheduler, which also fires the cron entries of `store`. The jobs that they make get ids of `ids`, and
    /// join trees within `fan_out`.
    #[must_use]
    pub fn with_crons(self, store: &Store, ids: Arc<dyn Ids>, fan_out: FanOutRules) -> Self {
        Self { crons: Some(FireCron::new(store, ids, fan_out)), ..self }
    }

    /// Returns the same scheduler, which also posts events to webhooks while it leads.
    #[must_use]
    pub fn with_webhooks(self, sender: WebhookSender) -> Self {
        Self { sender: Some(sender), ..self }
    }

    /// Takes or renews the leadership and runs every duty once, the periodic ones included. Then it posts the pending events
    /// to webhooks and waits for the responses. [`Scheduler::run`] does all of this continuously.
    ///
    /// Returns the number of jobs and reviews that were due; 0 when another scheduler leads.
    ///
    /// # Errors
    /// The first failure of a duty. The other duties have run, and a later tick repeats the failed one.
    #[boxed]
    pub async fn tick(&self) -> Result<usize, StoreError> {
        let Some(term) = self.leadership.take().await? else { return Ok(0) };
        let done = self.perform(&term, true, self.clock.now(), &mut Timetable::default()).await?;
        if let Some(sender) = &self.sender {
            sender.round(&term).await?;
        }
        Ok(done.changed)
    }

    /// Runs until `shutdown` is cancelled. If it leads then, it gives the leadership back, and waits at most a second for
    /// that.
    ///
    /// While nothing is due, the leader asks the store every two seconds for the next due time; [`Ring::Due`] makes it ask at
    /// once. A failing store never ends it: the first failure is logged, and it tries again after growing pauses of at most
    /// two seconds. A leader whose duties fail for two terms resigns, and may lead again later.
    #[boxed]
    pub async fn run(self, shutdown: CancellationToken) {
        let holding = self.leadership.hold(&shutdown);
        tokio::pin!(holding);
        // The futures of the duties may be dropped at any point: a batch is one transaction, which is committed or not.
        tokio::select! {
            () = &mut holding => return,
            () = self.run_duties() => {}
            () = self.post_webhooks() => {}
            () = shutdown.cancelled() => {}
        }
        if tokio::time::timeout(RESIGN_TIMEOUT, holding).await.is_err() {
            tracing::warn!(
                "the store did not take the leadership back in time; another scheduler leads when the term has expired"
            );
        }
    }

    /// Runs the duties whenever this scheduler leads and something is due. It never ends.
    async fn run_duties(&self) {
        let mut setback = Setback::none();
        let mut timetable = Timetable::default();
        let mut patience = self.leadership.term() * TERMS;
        let mut led = None;
        // Subscribed before the first query, so that a job that becomes due after the query wakes the loop.
        let mut notifications = self.doorbell.listen_for_work();
        loop {
            let term = self.leadership.begun().await;
            if led.as_ref() != Some(&term.token) {
                setback.measure_anew();
                led = Some(term.token.clone());
            }
            match self.query_and_perform(&term, &mut timetable).await {
                Ok(wait) => {
                    patience = self.leadership.term() * TERMS;
                    log_recovery(setback.recovered());
                    tokio::select! {
                        () = wait_or_due(&mut notifications, wait) => {}
                        // The loop then waits for the next term, and queries as soon as it begins.
                        () = self.leadership.ended(&term) => {}
                    }
                }
                Err(error) => {
                    let (first, wait) = setback.failed();
                    log_failure(first, &error);
                    if setback.lasted() < patience {
                        tokio::time::sleep(wait).await;
                        continue;
                    }
                    // A duty that fails at every scheduler must not move the leadership without end.
                    patience = (patience * 2).min(self.leadership.term() * MOST_TERMS);
                    self.leadership.step_down(&term).await;
                }
            }
        }
    }

    /// Posts events to webhooks, beside the duties, so that a slow receiver delays no duty. It never ends.
    async fn post_webhooks(&self) {
        match &self.sender {
            Some(sender) => sender.keep_sending(&self.leadership, &self.doorbell).await,
            None => std::future::pending().await,
        }
    }

    /// Queries the next due time, runs the duties that are due, and returns the pause before the next query.
    async fn query_and_perform(
        &self,
        term: &Term,
        timetable: &mut Timetable,
    ) -> Result<Duration, StoreError> {
        let next = self.upkeep.next_due().await?;
        let now = self.clock.now();
        let wait = pause(next, now);
        let done = self.perform(term, wait.is_zero(), now, timetable).await?;
        Ok(match done {
            Performed { unfinished: true, .. } => SHORTEST,
            // The store says that something is due, and no duty changed it. An immediate query would repeat that for ever.
            Performed { changed: 0, .. } if wait.is_zero() => FALLBACK,
            Performed { .. } => wait.max(SHORTEST),
        })
    }

    /// Runs the duties of the table in its order: the periodic ones by the timetable, the others if `due` is true. After the
    /// failure of one duty the others run. When the store refuses the term, it stops; the new leader runs the rest.
    async fn perform(
        &self,
        term: &Term,
        due: bool,
        now: Timestamp,
        timetable: &mut Timetable,
    ) -> Result<Performed, StoreError> {
        // `now` was read before: these steps are all that it has, or more.
        self.upkeep.follow(self.clock.steps());
        let mut done = Performed::default();
        let mut failure = None;
        for duty in DUTIES {
            if !timetable.wants(duty, due, now) {
                continue;
            }
            let outcome = match duty.run(self.upkeep.as_ref(), term, now, self.retention).await {
                Ok(outcome) => outcome,
                Err(StoreError::Deposed) => {
                    self.leadership.lose(term);
                    return failure.map_or(Ok(done), Err);
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
                Interval::WhenDue => done.changed += outcome.rows,
                Interval::EveryMs(_) if outcome.unfinished => done.unfinished = true,
                Interval::EveryMs(_) => timetable.completed(duty, now),
            }
        }
        // Cron entries are last. An entry may forbid that two of its jobs overlap, and the duties above may just have ended
        // the earlier one.
        if let Some(crons) = self.crons.as_ref().filter(|_| due) {
            match crons.run(term, now).await {
                Ok(fired) => done.changed += fired,
                Err(StoreError::Deposed) => self.leadership.lose(term),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(done), Err)
    }
}

/// Waits for this long, or until a short pause after [`Ring::Due`]. Other notifications do not end the wait. When
/// notifications were missed, one of them may have been `Due`, so that ends the wait as well.
async fn wait_or_due(notifications: &mut Receiver<Ring>, wait: Duration) {
    let due = async {
        while !matches!(notifications.recv().await, Ok(Ring::Due) | Err(RecvError::Lagged(_))) {}
        tokio::time::sleep(SHORTEST).await;
    };
    let _ = tokio::time::timeout(wait, due).await;
    // The next query answers every notification up to now.
    *notifications = notifications.resubscribe();
}

/// Logs that the store answers again, if it had failed.
fn log_recovery(recovered: bool) {
    if recovered {
        tracing::info!("the store answers the scheduler again");
    }
}

/// Logs the first failure of several.
fn log_failure(first: bool, error: &StoreError) {
    if first {
        tracing::warn!(%error, "the store failed, so the duties wait; the scheduler tries again until it answers");
    }
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
        assert_eq!(
            requested[6..],
            [
                "bound_waits",
                "find_lost_waits",
                "end_batches",
                "fold_statistics",
                "prune",
                "set_aside_reviews"
            ]
        );
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
        for expected in [
            "next_due",
            "bound_waits",
            "find_lost_waits",
            "end_batches",
            "fold_statistics",
            "prune",
            "set_aside_reviews",
        ] {
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
        assert_eq!(bench.next().await.what, "bound_waits");
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
