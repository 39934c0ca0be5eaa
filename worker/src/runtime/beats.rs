//! The heartbeats of a worker: the fleet knows it by name from its first beat until it leaves.

use super::leases::LeaseKeeper;
use crate::Deps;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::Timestamp;
use turnstone_store::{Directive, StoreError, WorkerBeat, WorkerKind, WorkerState};

/// The time from one beat to the next.
const EVERY: Duration = Duration::from_millis(WorkerBeat::EVERY_MS.unsigned_abs());
/// The longest that a silent store may delay the end of a worker.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// One run of a worker, as in the fleet's list.
pub struct Beats {
    deps: Arc<Deps>,
    instance: String,
    started_at: Timestamp,
    registered: AtomicBool,
    directed: CancellationToken,
}

impl Beats {
    /// Returns a run that begins now, without a beat yet.
    pub fn new(deps: &Arc<Deps>) -> Self {
        Self {
            instance: deps.ids.next(),
            started_at: deps.clock.now(),
            deps: Arc::clone(deps),
            registered: AtomicBool::new(false),
            directed: CancellationToken::new(),
        }
    }

    /// Returns a token that is cancelled when an operator directs this worker to end.
    pub fn directed(&self) -> CancellationToken {
        self.directed.clone()
    }

    /// Sends the first beat, once.
    pub async fn register(&self) -> Result<(), StoreError> {
        if !self.registered.load(Ordering::Relaxed) {
            self.beat(0, WorkerState::Running).await?;
            self.registered.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Beats until [`Beating::end`]; `shutdown` marks the beginning of the drain.
    pub fn start(self, keeper: Arc<LeaseKeeper>, shutdown: CancellationToken) -> Beating {
        let ended = CancellationToken::new();
        let running = tokio::spawn(beating(self, keeper, shutdown, ended.clone()));
        Beating { ended, running: AbortOnDropHandle::new(running) }
    }

    async fn beat(&self, busy: usize, state: WorkerState) -> Result<(), StoreError> {
        let options = &self.deps.options;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let beat = WorkerBeat {
            name: options.worker_id.clone(),
            instance: self.instance.clone(),
            host: host_name(),
            pid: std::process::id().into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            queues: options.queues.clone(),
            slots: number(options.slots),
            busy: number(busy),
            state,
            started_at: self.started_at,
            seen_at: self.deps.clock.now(),
            kind: WorkerKind::Own,
            directive: None,
        };
        let directive = self.deps.ledger.beat(beat, WorkerBeat::SILENT_MS).await?;
        if directive == Some(Directive::Terminate) && !self.directed.is_cancelled() {
            tracing::info!("an operator directed this worker to drain and end");
            self.directed.cancel();
        }
        Ok(())
    }
}

/// A worker's running heartbeats.
pub struct Beating {
    ended: CancellationToken,
    running: AbortOnDropHandle<Result<(), StoreError>>,
}

impl Beating {
    /// Takes the worker off the list.
    ///
    /// # Errors
    /// [`StoreError::WorkerNameTaken`] when another worker took the name while this one was silent.
    pub async fn end(self) -> Result<(), StoreError> {
        self.ended.cancel();
        self.running.await.unwrap_or(Ok(()))
    }
}

/// Beats until `ended`, then leaves. A store that fails ends nothing: the next beat tries again.
async fn beating(
    beats: Beats,
    keeper: Arc<LeaseKeeper>,
    shutdown: CancellationToken,
    ended: CancellationToken,
) -> Result<(), StoreError> {
    if let Err(error) = beat_on(&beats, &keeper, &shutdown, &ended).await {
        tracing::error!(%error, "this worker was silent for too long and lost its name; it stops");
        shutdown.cancel();
        ended.cancelled().await;
        return Err(error);
    }
    leave(&beats).await;
    Ok(())
}

/// Beats until `ended`; an error means that another worker has the name.
async fn beat_on(
    beats: &Beats,
    keeper: &LeaseKeeper,
    shutdown: &CancellationToken,
    ended: &CancellationToken,
) -> Result<(), StoreError> {
    let mut reported = false;
    let mut state = WorkerState::Running;
    loop {
        state = tokio::select! {
            biased;
            () = ended.cancelled() => return Ok(()),
            state = next_beat(state, shutdown) => state,
        };
        // A beat in progress is awaited: the store may still write it, and it must not follow the leave.
        let beaten = tokio::select! {
            beaten = beats.beat(keeper.count(), state) => beaten,
            () = async { ended.cancelled().await; tokio::time::sleep(LEAVE_TIMEOUT).await } => return Ok(()),
        };
        match beaten {
            Ok(()) => reported = false,
            Err(error @ StoreError::WorkerNameTaken { .. }) => return Err(error),
            Err(error) if !reported => {
                tracing::warn!(%error, "the heartbeat of this worker cannot be written; trying again");
                reported = true;
            }
            Err(_) => {}
        }
    }
}

/// Waits until a beat is due; the beginning of the drain sends one at once.
async fn next_beat(state: WorkerState, shutdown: &CancellationToken) -> WorkerState {
    tokio::select! {
        () = shutdown.cancelled(), if state == WorkerState::Running => WorkerState::Draining,
        () = tokio::time::sleep(EVERY) => state,
    }
}

async fn leave(beats: &Beats) {
    let leaving = beats.deps.ledger.leave(&beats.deps.options.worker_id, &beats.instance);
    if !matches!(tokio::time::timeout(LEAVE_TIMEOUT, leaving).await, Ok(Ok(()))) {
        tracing::info!("the store did not take this worker off the list; it shows as silent there");
    }
}

/// Returns the name of this machine, from its operating system.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
