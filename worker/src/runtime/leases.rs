//! The leases that this worker holds: extended while turns think, watched for being ended from outside.

use crate::Deps;
use crate::turn::Signals;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::Lease;
use turnstone_store::Ring;

/// How often held leases are checked against the store: the bound of how late a cancellation by another process is
/// seen.
const WATCH: Duration = Duration::from_millis(500);

struct Held {
    lease: Lease,
    revoked: CancellationToken,
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
    pub fn keep(self: &Arc<Self>, lease: Lease, permit: OwnedSemaphorePermit) -> Slot {
        let revoked = CancellationToken::new();
        let token = lease.token.clone();
        self.table().insert(token.clone(), Held { lease, revoked: revoked.clone() });
        self.first.notify_one();
        let signals = Signals { revoked, draining: self.draining.clone() };
        Slot { keeper: Arc::clone(self), token, signals, _permit: permit }
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
        if let Err(error) = self.deps.ledger.release(&leases, self.deps.clock.now()).await {
            tracing::error!(%error, "leases could not be given back; they will run out");
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> Vec<Lease> {
        self.table().values().map(|held| held.lease.clone()).collect()
    }

    fn revoke(&self, token: &str) {
        if let Some(held) = self.table().get(token) {
            held.revoked.cancel();
        }
    }

    async fn check(&self, extend: bool) {
        let leases = self.leases();
        if leases.is_empty() {
            return;
        }
        let lost = if extend {
            self.deps.ledger.extend(&leases, self.deps.clock.now(), self.deps.options.lease_ms()).await
        } else {
            self.deps.ledger.lost(&leases).await
        };
        match lost {
            Ok(lost) => lost.iter().for_each(|token| self.revoke(token)),
            Err(error) => tracing::warn!(%error, "leases cannot be checked; trying again"),
        }
    }
}

async fn watch(keeper: Arc<LeaseKeeper>) {
    let mut bell = keeper.deps.doorbell.listen();
    let every = keeper.deps.options.lease / 3;
    let mut extended = Instant::now();
    let mut next = Instant::now() + WATCH;
    loop {
        if keeper.table().is_empty() {
            keeper.first.notified().await;
            (extended, next) = (Instant::now(), Instant::now() + WATCH);
        }
        tokio::select! {
            ring = bell.recv() => match ring {
                Ok(Ring::Revoked(token)) => keeper.revoke(&token),
                Err(RecvError::Closed) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
            },
            () = tokio::time::sleep_until(next) => {
                let extend = extended.elapsed() >= every;
                keeper.check(extend).await;
                if extend {
                    extended = Instant::now();
                }
                next = Instant::now() + WATCH;
            }
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
    _permit: OwnedSemaphorePermit,
}

impl Slot {
    /// What may end the turn from outside.
    pub fn signals(&self) -> Signals {
        self.signals.clone()
    }

    /// Ends the watch over the lease: the job was settled, or somebody else owns it.
    pub fn done(self) {
        self.keeper.table().remove(&self.token);
    }
}
