//! The worker: the `claimer` claims jobs from the store, and apalis runs them.
//!
//! apalis is the library that supplies the loop, the layers and the graceful stop. It knows nothing of leases, retries and
//! acknowledgements: those are transactions of the store's ledger. So a restart of any part in here loses no job
//! (docs/adr/0001).
//!
//! A job goes this way: `claimer` claims it for a free slot and gives its lease to `leases`. A channel passes both as an
//! `Assignment` to apalis. `assigned` runs its turns and ends the watch over its lease. Beside that, `beats` reports that the
//! worker is alive, and `remote_cancellations` cancels the work of remote agents that is no longer needed.

mod backend;
mod beats;
mod claimer;
mod leases;
mod remote_cancellations;

use crate::Deps;
use apalis::layers::WorkerBuilderExt;
use apalis_core::error::BoxDynError;
use apalis_core::monitor::Monitor;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::ext::parallelize::ParallelizeExt;
use async_recursion::async_recursion as boxed;
use backend::{LedgerBackend, assigned};
use beats::Beats;
pub use beats::host_name;
use leases::LeaseKeeper;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_store::StoreError;

/// A worker that is ready to run. One process may run several; each needs a name of its own.
pub struct Worker {
    deps: Arc<Deps>,
    beats: Beats,
}

impl Worker {
    /// Returns a worker with these parts. It claims nothing before [`Worker::run`].
    #[must_use]
    pub fn new(deps: Deps) -> Self {
        let deps = Arc::new(deps);
        Self { beats: Beats::new(&deps), deps }
    }

    /// Adds the worker to the fleet's list. [`Worker::run`] does it unless it was done before.
    ///
    /// # Errors
    /// [`StoreError::WorkerNameTaken`] when another worker of this name is alive, or the store failed.
    #[boxed]
    pub async fn register(&self) -> Result<(), StoreError> {
        self.beats.register().await
    }

    /// Returns a token that is cancelled when an operator directs this worker to end. The process then has to cancel the
    /// token of [`Worker::run`], as it does at a signal.
    #[must_use]
    pub fn directed(&self) -> CancellationToken {
        self.beats.directed()
    }

    /// Claims and runs jobs until `shutdown`, then drains. No new job is claimed, and turns in progress yield
    /// after their phase. A job that has not ended within the grace time is released with its last
    /// checkpoint.
    ///
    /// The order of a drain: turns give their jobs back after their current phase. After the grace time the turns that still run
    /// are interrupted. The leases that are left are released. The tools' connections are closed, and the worker takes itself
    /// off the fleet's list.
    ///
    /// # Errors
    /// The worker cannot be added to the fleet's list. Another worker took its name while this one did not report. Or
    /// apalis could not run it. Every lease is released before `run` returns the error.
    #[boxed]
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), BoxDynError> {
        self.beats.register().await?;
        let options = self.deps.options.clone();
        let shutdown = shutdown.child_token();
        let draining = shutdown.child_token();
        let keeper = LeaseKeeper::start(Arc::clone(&self.deps), draining.clone());
        let beating = self.beats.start(Arc::clone(&keeper), shutdown.clone());
        let (sender, receiver) = tokio::sync::mpsc::channel(options.slots.max(1));
        let claimer = AbortOnDropHandle::new(tokio::spawn(claimer::run(
            Arc::clone(&self.deps),
            Arc::clone(&keeper),
            sender,
            draining.clone(),
        )));
        let cancelling = AbortOnDropHandle::new(tokio::spawn(remote_cancellations::run(
            Arc::clone(&self.deps),
            draining.clone(),
        )));
        // The loop of apalis may be restarted by its monitor. It continues with the same channel, so that no claimed job is
        // lost in between.
        let assignments = Arc::new(Mutex::new(receiver));
        // Claimed jobs that apalis has not taken when it stops stay in the channel until `give_back` has released their
        // leases.
        let _untaken = Arc::clone(&assignments);
        let name = options.worker_id.clone();
        let monitor = Monitor::new()
            .register(move |_restarts| {
                WorkerBuilder::new(name.as_str())
                    .backend(LedgerBackend::new(Arc::clone(&assignments)))
                    .catch_panic()
                    .parallelize(|run| AbortOnDropHandle::new(tokio::spawn(run)))
                    .build(assigned)
            })
            .should_restart(|_, error| {
                tracing::error!(%error, "the worker loop stopped; it is started again");
                true
            })
            .with_terminator(async move { tokio::time::sleep(options.drain_grace).await });
        let ended = monitor
            .run_with_signal(async move {
                shutdown.cancelled().await;
                Ok(())
            })
            .await;
        draining.cancel();
        let _ = claimer.await;
        let _ = cancelling.await;
        keeper.give_back().await;
        self.deps.toolbox.close().await;
        beating.end().await?;
        ended.map_err(Into::into)
    }
}
