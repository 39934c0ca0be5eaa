//! The leases that this worker holds. A background task extends them while turns run, and finds out when a lease was lost
//! or ended, a job was paused, or a more urgent job waits. It then raises the [`Signal`] of the turn.

#[cfg(test)]
mod tests;

use crate::Deps;
use crate::state::signals::{Signal, Signals};
use crate::state::slot::TurnSlot;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::Lease;
use turnstone_store::{Ring, StoreError};

/// The interval at which the leases are compared with the store. If its notification is lost, this worker notices a
/// cancellation by another process after at most this time.
const WATCH: Duration = Duration::from_millis(500);
/// The longest that a drain waits for the store to release the leases.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// A lease of this worker, with the way to its turn.
struct Held {
    lease: Lease,
    priority: i64,
    signals: Signals,
    /// The number of requests to repeat calls of the job that the turn knows of.
    calls_again: i64,
}

/// Extends and watches the leases of one worker, by their fencing tokens.
pub struct LeaseKeeper {
    deps: Arc<Deps>,
    draining: CancellationToken,
    held: Mutex<HashMap<String, Held>>,
    first: Notify,
    watch: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl LeaseKeeper {
    /// Starts the watch as a background task. It sleeps while there are no leases.
    pub fn start(deps: Arc<Deps>, draining: CancellationToken) -> Arc<Self> {
        let keeper = Arc::new(Self {
            deps,
            draining,
            held: Mutex::default(),
            first: Notify::new(),
            watch: Mutex::default(),
        });
        let watch = tokio::spawn(watch(Arc::clone(&keeper)));
        *keeper.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(AbortOnDropHandle::new(watch));
        keeper
    }

    /// Extends and watches a lease until [`Slot::done`]. If the scheduler took the job back and this worker claimed it
    /// again, both leases are in the table, each by its own token.
    pub fn keep(self: &Arc<Self>, lease: Lease, priority: i64, permit: OwnedSemaphorePermit) -> Slot {
        let signals =
            Signals::new(self.draining.child_token(), TurnSlot::of(permit, self.deps.writes.begin()));
        let token = lease.token.clone();
        self.table()
            .insert(token.clone(), Held { lease, priority, signals: signals.clone(), calls_again: 0 });
        self.first.notify_one();
        Slot { keeper: Arc::clone(self), token, signals }
    }

    /// Ends the watch and releases every lease that is still held. Only for the end of a drain.
    pub async fn give_back(&self) {
        let leases: Vec<Lease> = self.table().drain().map(|(_, held)| held.lease).collect();
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if leases.is_empty() {
            return;
        }
        tracing::warn!(
            jobs = leases.len(),
            "these jobs did not reach the end of a phase within the grace time; other workers resume them from their last checkpoints"
        );
        match tokio::time::timeout(GIVE_BACK, self.deps.ledger.release(&leases, self.deps.clock.now())).await
        {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "leases could not be released; their jobs resume when they have expired")
            }
            Err(_) => {
                tracing::warn!(
                    "the store does not answer, so leases were not released; their jobs resume when they have expired"
                )
            }
        }
    }

    /// Returns the number of slots that are taken. It may be lower than the number of leases, because turns that wait for
    /// another server hold no slot.
    pub fn count(&self) -> usize {
        self.table().values().filter(|held| held.signals.slot.is_taken()).count()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> Vec<Lease> {
        self.table().values().map(|held| held.lease.clone()).collect()
    }

    /// Ends the turn of a lease that this worker no longer holds. `late` is true if the lease was not extended in time, so
    /// that it expired. Otherwise it was ended on purpose, such as by a cancellation of the job.
    fn end(&self, token: &str, late: bool) {
        if let Some(held) = self.table().get(token) {
            held.signals.raise(if late { Signal::Lost } else { Signal::Revoked });
        }
    }

    /// Stops the turn of a paused job after its current phase, as if the worker drained.
    fn pause(&self, token: &str) {
        if let Some(held) = self.table().get(token) {
            held.signals.draining.cancel();
        }
    }

    /// Signals to the turn that calls of its job are to be repeated, once per request.
    fn signal_calls_again(&self, token: &str, count: i64) {
        if let Some(held) = self.table().get_mut(token)
            && count > held.calls_again
        {
            held.calls_again = count;
            held.signals.raise(Signal::CallsAgain);
        }
    }

    /// Extends the leases, or reads their state from the store. Ends the turns of those that are lost, and stops those of
    /// paused jobs.
    async fn check(&self, extend: bool, late: bool) -> Result<(), StoreError> {
        let leases = self.leases();
        if leases.is_empty() {
            return Ok(());
        }
        let lost = if extend {
            self.deps.ledger.extend(&leases, self.deps.clock.now(), self.deps.options.lease_ms()).await?
        } else {
            let standing = self.deps.ledger.reads().standing(&leases).await?;
            standing.paused.iter().for_each(|token| self.pause(token));
            standing.calls_again.iter().for_each(|(token, count)| self.signal_calls_again(token, *count));
            standing.lost
        };
        for token in &lost {
            self.end(token, late);
        }
        self.give_way().await
    }

    /// When every slot is taken and a job of a higher priority waits, signals to the turn of the lowest priority to give its
    /// job back before its next turn. It signals to one turn at a time; the next check finds out if that was enough.
    async fn give_way(&self) -> Result<(), StoreError> {
        let least = {
            let table = self.table();
            let one_gives_way = table.values().any(|held| held.signals.is_raised(Signal::GiveWay));
            let with_slot = || table.iter().filter(|(_, held)| held.signals.slot.is_taken());
            if one_gives_way || with_slot().count() < self.deps.options.slots {
                return Ok(());
            }
            let least = with_slot().min_by_key(|(_, held)| held.priority);
            least.map(|(token, held)| (token.clone(), held.priority))
        };
        let Some((token, priority)) = least else { return Ok(()) };
        let waiting = self.deps.ledger.reads().most_urgent(&self.deps.options.queues).await?;
        if waiting.is_some_and(|waiting| waiting > priority)
            && let Some(held) = self.table().get(&token)
        {
            held.signals.raise(Signal::GiveWay);
        }
        Ok(())
    }
}

/// The state of the watch over the leases.
struct Watch {
    keeper: Arc<LeaseKeeper>,
    /// The time at which the leases were extended last.
    extended: Instant,
    /// True if the store answered the last check, so that only a change is logged.
    answers: bool,
}

/// Checks the leases at each interval, and at once after a notification about one of them.
async fn watch(keeper: Arc<LeaseKeeper>) {
    let mut notifications = keeper.deps.doorbell.listen_for_work();
    let mut watch = Watch { keeper: Arc::clone(&keeper), extended: Instant::now(), answers: true };
    let mut next = Instant::now() + WATCH;
    loop {
        if keeper.table().is_empty() {
            keeper.first.notified().await;
            (watch.extended, next) = (Instant::now(), Instant::now() + WATCH);
        }
        tokio::select! {
            ring = notifications.recv() => match ring {
                Ok(Ring::Revoked(token)) => keeper.end(&token, watch.is_late()),
                Ok(Ring::Asked(token)) if keeper.table().contains_key(&token) => watch.check().await,
                Err(RecvError::Closed) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
            },
            () = tokio::time::sleep_until(next) => {
                watch.check().await;
                next = Instant::now() + WATCH;
            }
        }
    }
}

impl Watch {
    /// Returns true if the leases were not extended for so long that they may have expired: this process or the store did
    /// not run for a while.
    fn is_late(&self) -> bool {
        self.extended.elapsed() >= self.keeper.deps.options.lease * 2 / 3
    }

    /// Checks the leases, and extends them when a third of their time is over. After a failure the next check tries again.
    async fn check(&mut self) {
        let lease = self.keeper.deps.options.lease;
        let began = Instant::now();
        let extend = began - self.extended >= lease / 3;
        let checked = self.keeper.check(extend, self.is_late()).await;
        match (&checked, self.answers) {
            (Err(error), true) => {
                tracing::warn!(%error, "leases cannot be checked; the worker tries again until the store answers")
            }
            (Ok(()), false) => tracing::info!("the store answers again; the leases are checked"),
            _ => {}
        }
        self.answers = checked.is_ok();
        if extend && checked.is_ok() {
            self.extended = began;
        }
    }
}

/// A slot of the worker, with the lease of the job that runs in it.
///
/// Dropping it frees only the slot, and the lease stays in the keeper's table. So [`LeaseKeeper::give_back`] finds the lease
/// of a turn that the end of a drain interrupted.
pub struct Slot {
    keeper: Arc<LeaseKeeper>,
    token: String,
    signals: Signals,
}

impl Slot {
    /// Returns the signals between the turn and its worker.
    pub fn signals(&self) -> Signals {
        self.signals.clone()
    }

    /// Returns the parts that all turns of the worker share.
    pub fn deps(&self) -> Arc<Deps> {
        Arc::clone(&self.keeper.deps)
    }

    /// Frees the slot for the next job; the lease is still watched.
    pub fn free(&self) {
        self.signals.slot.release();
    }

    /// Ends the watch over the lease, so that it is no longer extended: the job was settled, or another worker holds it.
    pub fn done(self) {
        self.keeper.table().remove(&self.token);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.free();
    }
}
