//! The loop: sleep until something is due, run the duties, look again.

use crate::duties::{self, DUTIES};
use crate::rhythm::{FALLBACK, SHORTEST, Setback, pause};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use turnstone_domain::{Clock, Timestamp};
use turnstone_store::{Doorbell, Ring, StoreError, Upkeep};

/// Runs the duties when they are due.
///
/// Two schedulers on one store are harmless: every duty is one guarded transaction, and the later one finds nothing
/// to change.
pub struct Scheduler {
    /// What time does.
    pub upkeep: Arc<dyn Upkeep>,
    /// Hears [`Ring::Due`], rings [`Ring::Available`].
    pub doorbell: Doorbell,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Scheduler {
    /// Runs every duty once, as of the clock's now, and returns how many rows they changed in total.
    ///
    /// # Errors
    /// The first failure of a duty. The other duties have run nevertheless, and a later tick makes up for the failed
    /// one.
    pub async fn tick(&self) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let mut total = 0;
        let mut failure = None;
        for duty in DUTIES {
            match duties::run(*duty, self.upkeep.as_ref(), &self.doorbell, now).await {
                Ok(changed) => total += changed,
                Err(error) => {
                    tracing::debug!(duty = duty.name(), %error, "a duty failed");
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(total), Err)
    }

    /// Runs until `shutdown`. While nothing is due it asks the store once every two seconds when the next thing will
    /// be; [`Ring::Due`] makes it ask at once. A failing store never ends it: the first failure is logged, then it
    /// tries again with growing pauses of at most two seconds.
    pub async fn run(self, shutdown: CancellationToken) {
        // Dropping the loop anywhere is safe: a duty's batch is one transaction, committed or not.
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.keep_time() => {}
        }
    }

    async fn keep_time(&self) {
        let mut setback = Setback::none();
        // Register before the first query, so that nothing that becomes due after it is missed.
        let mut ear = self.doorbell.listen();
        loop {
            match self.turn_of_the_clock().await {
                Ok(wait) => {
                    if setback.recovered() {
                        tracing::info!("the store answers the scheduler again");
                    }
                    wait_or_ring(&mut ear, wait).await;
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

    /// Asks when something is due, runs the duties if it is, and returns how long to wait before asking again.
    async fn turn_of_the_clock(&self) -> Result<Duration, StoreError> {
        let due: Option<Timestamp> = self.upkeep.next_due().await?;
        let wait = pause(due, self.clock.now());
        if !wait.is_zero() {
            return Ok(wait);
        }
        let changed = self.tick().await?;
        // Something is due that no duty can change: look again later instead of spinning.
        Ok(if changed == 0 { FALLBACK } else { SHORTEST })
    }
}

/// Waits, at most until [`Ring::Due`]. Rings for others do not end the wait; having missed rings does.
async fn wait_or_ring(ear: &mut Receiver<Ring>, wait: Duration) {
    let due = async {
        while !matches!(ear.recv().await, Ok(Ring::Due) | Err(RecvError::Lagged(_))) {}
        tokio::time::sleep(SHORTEST).await;
    };
    let _ = tokio::time::timeout(wait, due).await;
    // One look at the store answers every ring up to now.
    *ear = ear.resubscribe();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duties::BATCH;
    use async_trait::async_trait;
    use std::sync::Mutex;
    use tokio::sync::{Mutex as AsyncMutex, mpsc};

    /// A clock that is moved by hand.
    struct Hand(Mutex<i64>);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp(*self.0.lock().unwrap())
        }
    }

    /// Rows that wait for a time, one list per duty; tells what it is asked, in order.
    struct Rows {
        waiting: Mutex<Vec<(&'static str, i64)>>,
        failing: Mutex<usize>,
        asked: mpsc::UnboundedSender<&'static str>,
    }

    impl Rows {
        fn take(&self, duty: &'static str, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
            self.answer(duty)?;
            let mut waiting = self.waiting.lock().unwrap();
            let before = waiting.len();
            let mut room = limit;
            waiting.retain(|(name, at)| {
                let taken = *name == duty && *at <= now.0 && room > 0;
                room -= usize::from(taken);
                !taken
            });
            Ok(before - waiting.len())
        }

        fn answer(&self, what: &'static str) -> Result<(), StoreError> {
            let _ = self.asked.send(what);
            let mut failing = self.failing.lock().unwrap();
            if *failing > 0 {
                *failing -= 1;
                return Err(StoreError::Database { action: "answer", message: "disk full".to_owned() });
            }
            Ok(())
        }
    }

    #[async_trait]
    impl Upkeep for Rows {
        async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
            self.answer("next_due")?;
            Ok(self.waiting.lock().unwrap().iter().map(|(_, at)| Timestamp(*at)).min())
        }
        async fn promote_due(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
            self.take("promote_due", now, limit)
        }
        async fn reap_expired(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
            self.take("reap_expired", now, limit)
        }
        async fn expire_jobs(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
            self.take("expire_jobs", now, limit)
        }
        async fn expire_reviews(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
            self.take("expire_reviews", now, limit)
        }
        async fn release_all(&self, _: Timestamp) -> Result<usize, StoreError> {
            Ok(0)
        }
    }

    struct Bench {
        rows: Arc<Rows>,
        clock: Arc<Hand>,
        doorbell: Doorbell,
        asked: AsyncMutex<mpsc::UnboundedReceiver<&'static str>>,
    }

    impl Bench {
        fn new(waiting: Vec<(&'static str, i64)>) -> Self {
            let (sender, asked) = mpsc::unbounded_channel();
            Self {
                rows: Arc::new(Rows { waiting: Mutex::new(waiting), failing: Mutex::new(0), asked: sender }),
                clock: Arc::new(Hand(Mutex::new(1000))),
                doorbell: Doorbell::default(),
                asked: AsyncMutex::new(asked),
            }
        }

        fn scheduler(&self) -> Scheduler {
            Scheduler {
                upkeep: Arc::clone(&self.rows) as Arc<dyn Upkeep>,
                doorbell: self.doorbell.clone(),
                clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            }
        }

        fn move_clock_to(&self, ms: i64) {
            *self.clock.0.lock().unwrap() = ms;
        }

        /// What the store was asked next; a test that waits longer than this has failed.
        async fn next(&self) -> &'static str {
            let mut asked = self.asked.lock().await;
            tokio::time::timeout(Duration::from_secs(20), asked.recv()).await.unwrap().unwrap()
        }

        async fn all_asked(&self) -> Vec<&'static str> {
            let mut asked = self.asked.lock().await;
            std::iter::from_fn(|| asked.try_recv().ok()).collect()
        }
    }

    fn rings(ear: &mut Receiver<Ring>) -> usize {
        std::iter::from_fn(|| ear.try_recv().ok()).filter(|ring| *ring == Ring::Available).count()
    }

    #[tokio::test]
    async fn a_tick_does_what_is_due_and_leaves_the_rest() {
        let bench = Bench::new(vec![
            ("promote_due", 900),
            ("reap_expired", 1000),
            ("expire_jobs", 1000),
            ("expire_reviews", 2000),
            ("promote_due", 3000),
        ]);
        let mut ear = bench.doorbell.listen();
        assert_eq!(bench.scheduler().tick().await.unwrap(), 3);
        assert_eq!(
            rings(&mut ear),
            2,
            "the promoted and the reaped job wake workers, the discarded one does not"
        );
        assert_eq!(bench.scheduler().tick().await.unwrap(), 0);
        assert_eq!(rings(&mut ear), 0);
        bench.move_clock_to(3000);
        assert_eq!(bench.scheduler().tick().await.unwrap(), 2);
        assert!(bench.rows.waiting.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn ends_come_before_anything_is_made_available() {
        let bench = Bench::new(Vec::new());
        bench.scheduler().tick().await.unwrap();
        assert_eq!(bench.all_asked().await, ["expire_jobs", "expire_reviews", "reap_expired", "promote_due"]);
    }

    #[tokio::test]
    async fn a_backlog_is_worked_off_in_bounded_batches() {
        let bench = Bench::new(vec![("promote_due", 5); 2 * BATCH + 1]);
        let mut ear = bench.doorbell.listen();
        assert_eq!(bench.scheduler().tick().await.unwrap(), 2 * BATCH + 1);
        assert_eq!(bench.all_asked().await.iter().filter(|duty| **duty == "promote_due").count(), 3);
        assert_eq!(rings(&mut ear), 3);
    }

    #[tokio::test]
    async fn one_failing_duty_does_not_stop_the_others() {
        let bench = Bench::new(vec![("expire_jobs", 5), ("promote_due", 5)]);
        *bench.rows.failing.lock().unwrap() = 1;
        assert!(bench.scheduler().tick().await.is_err());
        assert_eq!(*bench.rows.waiting.lock().unwrap(), [("expire_jobs", 5)]);
        assert_eq!(bench.scheduler().tick().await.unwrap(), 1);
    }

    #[tokio::test]
    async fn the_loop_sleeps_through_rings_for_others_and_wakes_for_its_own() {
        let bench = Bench::new(vec![("promote_due", 60_000)]);
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(bench.scheduler().run(shutdown.clone()));
        assert_eq!(bench.next().await, "next_due");
        bench.move_clock_to(60_000);
        for _ in 0..100 {
            bench.doorbell.ring(Ring::Available);
        }
        bench.doorbell.ring(Ring::Due);
        for expected in
            ["next_due", "expire_jobs", "expire_reviews", "reap_expired", "promote_due", "next_due"]
        {
            assert_eq!(bench.next().await, expected);
        }
        shutdown.cancel();
        running.await.unwrap();
        assert_eq!(bench.all_asked().await, Vec::<&str>::new(), "nothing is due, so nothing is asked");
    }

    #[tokio::test]
    async fn a_failing_store_does_not_end_the_loop() {
        let bench = Bench::new(vec![("reap_expired", 1000)]);
        *bench.rows.failing.lock().unwrap() = 2;
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(bench.scheduler().run(shutdown.clone()));
        for _ in 0..3 {
            assert_eq!(bench.next().await, "next_due");
        }
        for expected in ["expire_jobs", "expire_reviews", "reap_expired", "promote_due"] {
            assert_eq!(bench.next().await, expected);
        }
        assert!(bench.rows.waiting.lock().unwrap().is_empty());
        shutdown.cancel();
        running.await.unwrap();
    }
}
