//! The leases that this worker holds: extended while turns think, watched for being ended from outside.

#[cfg(test)]
mod tests;

use crate::Deps;
use crate::turn::Signals;
use crate::turn::place::Place;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::Lease;
use turnstone_store::{Ring, StoreError};

/// How often held leases are checked against the store: the bound of how late a cancellation by another process is
/// seen.
const WATCH: Duration = Duration::from_millis(500);
/// How long a store that does not answer may hold up the end of a drain.
const GIVE_BACK: Duration = Duration::from_secs(5);

struct Held {
    lease: Lease,
    priority: i64,
    signals: Signals,
    /// How often calls of the job had been asked to be made again when that was looked at last.
    calls_again: i64,
}

/// Keeps the leases of one worker.
pub struct LeaseKeeper {
    deps: Arc<Deps>,
    draining: CancellationToken,
    held: Mutex<HashMap<String, Held>>,
    first: Notify,
    watch: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl LeaseKeeper {
    /// Starts watching.
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

    /// Keeps a lease until the returned slot is done. A job that was reaped and claimed again here is kept twice,
    /// once per token.
    pub fn keep(self: &Arc<Self>, lease: Lease, priority: i64, permit: OwnedSemaphorePermit) -> Slot {
        let (revoked, lost) = (CancellationToken::new(), CancellationToken::new());
        let signals = Signals {
            revoked,
            lost,
            draining: self.draining.child_token(),
            settling: CancellationToken::new(),
            give_way: CancellationToken::new(),
            place: Place::of(permit),
            calls_again: Arc::default(),
        };
        let token = lease.token.clone();
        self.table()
            .insert(token.clone(), Held { lease, priority, signals: signals.clone(), calls_again: 0 });
        self.first.notify_one();
        Slot { keeper: Arc::clone(self), token, signals }
    }

    /// Gives every lease back that is still held, at the end of a drain.
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
            Ok(Err(error)) => tracing::error!(%error, "leases could not be given back; they will run out"),
            Err(_) => {
                tracing::error!("the store does not answer, so leases were not given back; they will run out")
            }
        }
    }

    /// How many slots are taken. Turns that wait for another server hold a lease and none.
    pub fn count(&self) -> usize {
        self.table().values().filter(|held| held.signals.place.is_taken()).count()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> Vec<Lease> {
        self.table().values().map(|held| held.lease.clone()).collect()
    }

    /// Ends the turn of a lease that is no longer ours. `overslept` says that none was extended for so long that it has
    /// run out; else somebody ended it on purpose, by cancelling the job.
    fn end(&self, token: &str, overslept: bool) {
        if let Some(held) = self.table().get(token) {
            let signal = if overslept { &held.signals.lost } else { &held.signals.revoked };
            signal.cancel();
        }
    }

    /// Lets the turn of a paused job stop after its phase, as if the worker drained.
    fn pause(&self, token: &str) {
        if let Some(held) = self.table().get(token) {
            held.signals.draining.cancel();
        }
    }

    /// Lets the turn look for calls that are to be made again, once per request.
    fn ask_again(&self, token: &str, count: i64) {
        if let Some(held) = self.table().get_mut(token)
            && count > held.calls_again
        {
            held.calls_again = count;
            held.signals.calls_again.store(true, Ordering::Release);
        }
    }

    /// Asks the store about the leases, ends the turns of those that are lost, and stops those that are paused.
    async fn check(&self, extend: bool, overslept: bool) -> Result<(), StoreError> {
        let leases = self.leases();
        if leases.is_empty() {
            return Ok(());
        }
        let lost = if extend {
            self.deps.ledger.extend(&leases, self.deps.clock.now(), self.deps.options.lease_ms()).await?
        } else {
            let standing = self.deps.ledger.standing(&leases).await?;
            standing.paused.iter().for_each(|token| self.pause(token));
            standing.calls_again.iter().for_each(|(token, count)| self.ask_again(token, *count));
            standing.lost
        };
        for token in &lost {
            self.end(token, overslept);
        }
        self.make_way().await
    }

    /// When every slot is taken and something more urgent waits, the least urgent turn gives its slot up before the next
    /// one. One at a time: the next look sees whether that was enough.
    async fn make_way(&self) -> Result<(), StoreError> {
        let least = {
            let table = self.table();
            let going = table.values().any(|held| held.signals.give_way.is_cancelled());
            let placed = || table.iter().filter(|(_, held)| held.signals.place.is_taken());
            if going || placed().count() < self.deps.options.slots {
                return Ok(());
            }
            let least = placed().min_by_key(|(_, held)| held.priority);
            least.map(|(token, held)| (token.clone(), held.priority))
        };
        let Some((token, priority)) = least else { return Ok(()) };
        let waiting = self.deps.ledger.most_urgent(&self.deps.options.queues).await?;
        if waiting.is_some_and(|waiting| waiting > priority)
            && let Some(held) = self.table().get(&token)
        {
            held.signals.give_way.cancel();
        }
        Ok(())
    }
}

/// Looks at the held leases every now and then.
struct Watch {
    keeper: Arc<LeaseKeeper>,
    /// When the leases were extended last.
    extended: Instant,
    /// Whether the store answered the last time.
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
    /// Whether the leases ought to have been extended long ago.
    fn overslept(&self) -> bool {
        self.extended.elapsed() >= self.keeper.deps.options.lease * 2 / 3
    }

    /// Extends the leases when a third of their time is over; what failed is tried again at the next look.
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
/// Dropping it frees the slot only: a turn that is torn down in its middle, at the end of a drain, still holds its
/// lease, and [`LeaseKeeper::give_back`] has to find it.
pub struct Slot {
    keeper: Arc<LeaseKeeper>,
    token: String,
    signals: Signals,
}

impl Slot {
    /// What may end the turn from outside.
    pub fn signals(&self) -> Signals {
        self.signals.clone()
    }

    /// Makes room for the next job although the lease is still watched.
    pub fn free(&self) {
        self.signals.place.leave();
    }

    /// Ends the watch over the lease: the job was settled, or somebody else owns it.
    pub fn done(self) {
        self.keeper.table().remove(&self.token);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.free();
    }
}
