//! The leases that this worker holds: extended while turns run, and watched for being ended from outside.

#[cfg(test)]
mod tests;

use crate::Deps;
use crate::turn::place::TurnSlot;
use crate::turn::signals::{Signal, Signals};
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

/// The interval at which held leases are checked against the store: the longest delay until a cancellation by
/// another process is noticed.
const WATCH: Duration = Duration::from_millis(500);
/// The longest that a silent store may delay the end of a drain.
const GIVE_BACK: Duration = Duration::from_secs(5);

struct Held {
    lease: Lease,
    priority: i64,
    signals: Signals,
    /// The number of requests to repeat calls of the job, as of the last check.
    calls_again: i64,
}

/// Extends and watches the leases of one worker.
pub struct LeaseKeeper {
    deps: Arc<Deps>,
    draining: CancellationToken,
    held: Mutex<HashMap<String, Held>>,
    first: Notify,
    watch: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl LeaseKeeper {
    /// Starts the watch.
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

    /// Keeps a lease until the returned slot is done. A job that was reaped and claimed again by this worker
    /// is kept twice, once per token.
    pub fn keep(self: &Arc<Self>, lease: Lease, priority: i64, permit: OwnedSemaphorePermit) -> Slot {
        let signals = Signals::new(self.draining.child_token(), TurnSlot::of(permit));
        let token = lease.token.clone();
        self.table()
            .insert(token.clone(), Held { lease, priority, signals: signals.clone(), calls_again: 0 });
        self.first.notify_one();
        Slot { keeper: Arc::clone(self), token, signals }
    }

    /// Releases every lease that is still held, at the end of a drain.
    pub async fn give_back(&self) {
        let leases: Vec<Lease> = self.table().drain().map(|(_, held)| held.lease).collect();
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if leases.is_empty() {
            return;
        }
        tracing::warn!(
            jobs = leases.len(),
            "these jobs were not finished in time and go back with their last checkpoint"
        );
        match tokio::time::timeout(GIVE_BACK, self.deps.ledger.release(&leases, self.deps.clock.now())).await
        {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "leases could not be given back; they will run out"),
            Err(_) => {
                tracing::warn!("the store does not answer, so leases were not given back; they will run out")
            }
        }
    }

    /// Returns the number of slots that are taken. Turns that wait for another server hold a lease and no
    /// slot.
    pub fn count(&self) -> usize {
        self.table().values().filter(|held| held.signals.place.is_taken()).count()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> Vec<Lease> {
        self.table().values().map(|held| held.lease.clone()).collect()
    }

    /// Ends the turn of a lease that this worker no longer holds. `overslept` means that the lease expired
    /// because it was not extended in time. Otherwise it was ended on purpose, by cancelling the job.
    fn end(&self, token: &str, overslept: bool) {
        if let Some(held) = self.table().get(token) {
            held.signals.raise(if overslept { Signal::Lost } else { Signal::Revoked });
        }
    }

    /// Stops the turn of a paused job after its phase, as if the worker drained.
    fn pause(&self, token: &str) {
        if let Some(held) = self.table().get(token) {
            held.signals.draining.cancel();
        }
    }

    /// Lets the turn look for calls to repeat, once per request.
    fn ask_again(&self, token: &str, count: i64) {
        if let Some(held) = self.table().get_mut(token)
            && count > held.calls_again
        {
            held.calls_again = count;
            held.signals.raise(Signal::CallsAgain);
        }
    }

    /// Reads the state of the leases from the store, ends the turns of those that are lost, and stops those
    /// that are paused.
    async fn check(&self, extend: bool, overslept: bool) -> Result<(), StoreError> {
        let leases = self.leases();
        if leases.is_empty() {
            return Ok(());
        }
        let lost = if extend {
            self.deps.ledger.extend(&leases, self.deps.clock.now(), self.deps.options.lease_ms()).await?
        } else {
            let standing = self.deps.ledger.reads().standing(&leases).await?;
            standing.paused.iter().for_each(|token| self.pause(token));
            standing.calls_again.iter().for_each(|(token, count)| self.ask_again(token, *count));
            standing.lost
        };
        for token in &lost {
            self.end(token, overslept);
        }
        self.make_way().await
    }

    /// Asks the least urgent turn to release its slot before its next turn, when every slot is taken and a
    /// more urgent job waits. It asks one turn at a time: the next check finds out if that was enough.
    async fn make_way(&self) -> Result<(), StoreError> {
        let least = {
            let table = self.table();
            let going = table.values().any(|held| held.signals.is_raised(Signal::GiveWay));
            let placed = || table.iter().filter(|(_, held)| held.signals.place.is_taken());
            if going || placed().count() < self.deps.options.slots {
                return Ok(());
            }
            let least = placed().min_by_key(|(_, held)| held.priority);
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

/// The periodic check of the held leases.
struct Watch {
    keeper: Arc<LeaseKeeper>,
    /// The time of the last extension.
    extended: Instant,
    /// True if the store answered the last time.
    answers: bool,
}

async fn watch(keeper: Arc<LeaseKeeper>) {
    let mut bell = keeper.deps.doorbell.listen_for_work();
    let mut watch = Watch { keeper: Arc::clone(&keeper), extended: Instant::now(), answers: true };
    let mut next = Instant::now() + WATCH;
    loop {
        if keeper.table().is_empty() {
            keeper.first.notified().await;
            (watch.extended, next) = (Instant::now(), Instant::now() + WATCH);
        }
        tokio::select! {
            ring = bell.recv() => match ring {
                Ok(Ring::Revoked(token)) => keeper.end(&token, watch.overslept()),
                Ok(Ring::Asked(token)) if keeper.table().contains_key(&token) => watch.look().await,
                Err(RecvError::Closed) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
            },
            () = tokio::time::sleep_until(next) => {
                watch.look().await;
                next = Instant::now() + WATCH;
            }
        }
    }
}

impl Watch {
    /// Returns true if the leases should have been extended long ago.
    fn overslept(&self) -> bool {
        self.extended.elapsed() >= self.keeper.deps.options.lease * 2 / 3
    }

    /// Extends the leases when a third of their time is over; a failure is retried at the next check.
    async fn look(&mut self) {
        let lease = self.keeper.deps.options.lease;
        let began = Instant::now();
        let extend = began - self.extended >= lease / 3;
        let checked = self.keeper.check(extend, self.overslept()).await;
        match (&checked, self.answers) {
            (Err(error), true) => {
                tracing::warn!(%error, "leases cannot be extended; trying until the store answers")
            }
            (Ok(()), false) => tracing::info!("the store answers about leases again"),
            _ => {}
        }
        self.answers = checked.is_ok();
        if extend && checked.is_ok() {
            self.extended = began;
        }
    }
}

/// A slot of the worker with the lease of the job that runs in it.
///
/// Dropping it frees only the slot. A turn that the end of a drain interrupts still holds its lease, and
/// [`LeaseKeeper::give_back`] has to find it.
pub struct Slot {
    keeper: Arc<LeaseKeeper>,
    token: String,
    signals: Signals,
}

impl Slot {
    /// Returns the signals that may end the turn from outside.
    pub fn signals(&self) -> Signals {
        self.signals.clone()
    }

    /// Returns the parts that all turns of the worker share.
    pub fn deps(&self) -> Arc<Deps> {
        Arc::clone(&self.keeper.deps)
    }

    /// Frees the slot for the next job although the lease is still watched.
    pub fn free(&self) {
        self.signals.place.leave();
    }

    /// Ends the watch over the lease: the job was settled, or another worker holds it.
    pub fn done(self) {
        self.keeper.table().remove(&self.token);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.free();
    }
}
