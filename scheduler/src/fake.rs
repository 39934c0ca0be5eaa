//! For the unit tests: a store in memory that records its calls, and a clock that follows tokio's paused time.

use crate::{Scheduler, SchedulerOptions};
use async_trait::async_trait;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnstone_domain::{Clock, Timestamp};
use turnstone_store::{Doorbell, Duty, Ring, StoreError, Term, Upkeep};

/// When a test begins.
pub(crate) const BEGIN: i64 = 1_000_000_000;

/// The time: [`BEGIN`] plus the tokio time that has passed since then.
struct Virtual(Instant);

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        Timestamp(BEGIN).plus_ms(i64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// A call of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoreCall {
    /// `lead`, `resign`, `next_due`, or the name of a duty.
    pub(crate) what: &'static str,
    /// The scheduler that called; empty where the call does not name it.
    pub(crate) who: String,
    /// The time of the call.
    pub(crate) at: i64,
}

/// The content of the store.
#[derive(Default)]
pub(crate) struct Rows {
    /// Rows that wait for a time: the duty that changes them, and the time.
    pub(crate) waiting: Vec<(&'static str, i64)>,
    /// Calls that fail, each once.
    pub(crate) failing: Vec<&'static str>,
    /// The call before which another scheduler takes over, however long the term is.
    pub(crate) overthrown_before: Option<&'static str>,
    leader: Option<Term>,
    terms: usize,
}

/// A store in memory.
pub(crate) struct Fake {
    rows: Mutex<Rows>,
    clock: Arc<Virtual>,
    asked: mpsc::UnboundedSender<StoreCall>,
}

impl Fake {
    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap()
    }

    fn answer(&self, what: &'static str, who: &str) -> Result<MutexGuard<'_, Rows>, StoreError> {
        let _ = self.asked.send(StoreCall { what, who: who.to_owned(), at: self.clock.now().0 });
        let mut rows = self.rows();
        if let Some(at) = rows.failing.iter().position(|failing| *failing == what) {
            rows.failing.remove(at);
            return Err(StoreError::Database { action: "answer", message: "disk full".to_owned() });
        }
        if rows.overthrown_before == Some(what) {
            rows.overthrown_before = None;
            let expires_at = self.clock.now().plus_ms(5_000);
            rows.leader =
                Some(Term { holder: "rival".to_owned(), token: "rival's term".to_owned(), expires_at });
        }
        Ok(rows)
    }
}

#[async_trait]
impl Upkeep for Fake {
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let rows = self.answer("next_due", "")?;
        let due = rows.waiting.iter().filter(|(duty, _)| !matches!(*duty, "prune" | "fold_statistics"));
        Ok(due.map(|(_, at)| Timestamp(*at)).min())
    }

    async fn lead(&self, holder: &str, lease_ms: i64, now: Timestamp) -> Result<Option<Term>, StoreError> {
        let mut rows = self.answer("lead", holder)?;
        rows.terms += 1;
        let fresh = format!("term {}", rows.terms);
        let token = match &rows.leader {
            Some(leader) if leader.holder == holder => leader.token.clone(),
            Some(leader) if leader.expires_at > now => return Ok(None),
            _ => fresh,
        };
        rows.leader = Some(Term { holder: holder.to_owned(), token, expires_at: now.plus_ms(lease_ms) });
        Ok(rows.leader.clone())
    }

    async fn resign(&self, term: &Term) -> Result<(), StoreError> {
        let mut rows = self.answer("resign", &term.holder)?;
        if rows.leader.as_ref().is_some_and(|leader| leader.token == term.token) {
            rows.leader = None;
        }
        Ok(())
    }

    async fn perform(
        &self,
        duty: Duty,
        term: &Term,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let (name, until) = match duty {
            Duty::PromoteDue => ("promote_due", now),
            Duty::ReapExpired => ("reap_expired", now),
            Duty::BoundWaits => ("bound_waits", now),
            Duty::ExpireJobs => ("expire_jobs", now),
            Duty::ExpireReviews => ("expire_reviews", now),
            Duty::RemindReviews => ("remind_reviews", now),
            Duty::SetAsideReviews => ("set_aside_reviews", now),
            Duty::TimeOutJobs => ("time_out_jobs", now),
            Duty::FindLostWaits => ("find_lost_waits", now),
            Duty::EndBatches => ("end_batches", now),
            // It is left out of the records: it runs at every look, and no row waits for it.
            Duty::NumberCommits => return Ok(0),
            Duty::Prune { before } => ("prune", before.plus_ms(-1)),
            Duty::FoldStatistics { until } => ("fold_statistics", until.plus_ms(-1)),
        };
        let mut rows = self.answer(name, &term.holder)?;
        if rows.leader.as_ref().is_none_or(|leader| leader.token != term.token) {
            return Err(StoreError::Deposed);
        }
        let before = rows.waiting.len();
        let mut room = limit;
        rows.waiting.retain(|(duty, at)| {
            let taken = *duty == name && *at <= until.0 && room > 0;
            room -= usize::from(taken);
            !taken
        });
        Ok(before - rows.waiting.len())
    }

    async fn release_all(&self, _: Timestamp) -> Result<usize, StoreError> {
        Ok(0)
    }
}

/// A store, a clock and a doorbell for any number of schedulers.
pub(crate) struct Bench {
    pub(crate) store: Arc<Fake>,
    pub(crate) doorbell: Doorbell,
    clock: Arc<Virtual>,
    asked: AsyncMutex<mpsc::UnboundedReceiver<StoreCall>>,
}

/// A scheduler that runs.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Bench {
    pub(crate) fn new(waiting: Vec<(&'static str, i64)>) -> Self {
        let (sender, requested) = mpsc::unbounded_channel();
        let clock = Arc::new(Virtual(Instant::now()));
        let rows = Mutex::new(Rows { waiting, ..Rows::default() });
        Self {
            store: Arc::new(Fake { rows, clock: Arc::clone(&clock), asked: sender }),
            doorbell: Doorbell::default(),
            clock,
            asked: AsyncMutex::new(requested),
        }
    }

    pub(crate) fn scheduler(&self, holder: &str) -> Scheduler {
        self.scheduler_with(SchedulerOptions::new(holder))
    }

    pub(crate) fn scheduler_with(&self, options: SchedulerOptions) -> Scheduler {
        let upkeep = Arc::clone(&self.store) as Arc<dyn Upkeep>;
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        Scheduler::new(upkeep, self.doorbell.clone(), clock, options)
    }

    pub(crate) fn start(&self, holder: &str) -> Running {
        let stop = CancellationToken::new();
        let task = tokio::spawn(self.scheduler(holder).run(stop.clone()));
        Running { stop, task }
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now().0
    }

    pub(crate) fn ring(&self, ring: Ring) {
        self.doorbell.ring(ring);
    }

    /// Returns the next call that does not concern the leadership.
    pub(crate) async fn next(&self) -> StoreCall {
        self.next_that(|requested| requested.what != "lead").await
    }

    /// Returns the next call that matches.
    pub(crate) async fn next_that(&self, wanted: impl Fn(&StoreCall) -> bool) -> StoreCall {
        let mut requested = self.asked.lock().await;
        loop {
            let next = tokio::time::timeout(Duration::from_secs(600), requested.recv()).await;
            let next = next.expect("the store is asked within ten minutes of the test's time").unwrap();
            if wanted(&next) {
                return next;
            }
        }
    }

    /// Lets this many seconds pass while calls arrive, and returns the calls.
    pub(crate) async fn watch(&self, seconds: i64) -> Vec<StoreCall> {
        let until = self.now() + seconds * 1_000;
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last: &StoreCall| last.at < until) {
            seen.push(self.next_that(|_| true).await);
        }
        seen
    }

    /// Returns all calls so far that were not returned yet, except those of the leadership.
    pub(crate) async fn rest(&self) -> Vec<StoreCall> {
        let mut requested = self.asked.lock().await;
        std::iter::from_fn(|| requested.try_recv().ok())
            .filter(|requested| requested.what != "lead")
            .collect()
    }

    /// [`Bench::rest`] without callers and times.
    pub(crate) async fn rest_in_words(&self) -> Vec<&'static str> {
        self.rest().await.into_iter().map(|requested| requested.what).collect()
    }
}

impl Running {
    /// Ends it as SIGTERM does.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Ends it as SIGKILL does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}
