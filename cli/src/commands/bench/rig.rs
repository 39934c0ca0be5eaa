//! A real worker on a store, with the measuring parts around it.

use super::ledgers::{CountedLedger, Tally};
use super::place::Ground;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_benches::jobs::{PROVIDER, QUEUE};
use turnstone_benches::naive::Naive;
use turnstone_domain::Ids;
use turnstone_domain::agent::FanOutRules;
use turnstone_domain::ids::SystemIds;
use turnstone_store::Ledger;
use turnstone_worker::model::{Model, Providers};
use turnstone_worker::options::OnContextOverflow;
use turnstone_worker::tool::Toolbox;
use turnstone_worker::{Deps, Worker, WorkerOptions};

/// The parts of a worker.
pub struct Rig {
    /// Turns in flight at once.
    pub slots: usize,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The tools.
    pub toolbox: Toolbox,
    /// The source of the worker's ids.
    pub ids: Arc<dyn Ids>,
    /// True if the work is done naively: a commit for each phase, one after another.
    pub naive: bool,
}

impl Rig {
    /// Returns a worker of the product as it is.
    pub fn new(slots: usize, model: impl Model) -> Self {
        let (model, ids) = (Arc::new(model), Arc::new(SystemIds));
        Self { slots, model, toolbox: Toolbox::default(), ids, naive: false }
    }

    /// Starts it.
    #[must_use]
    pub fn start(self, ground: &Ground) -> Running {
        let tally = Arc::new(Tally::default());
        // Counted where the commits are: below the ledger that splits writes.
        let counted = CountedLedger::new(Arc::clone(&ground.store.ledger), Arc::clone(&tally));
        let mut ledger: Arc<dyn Ledger> = Arc::new(counted);
        if self.naive {
            ledger = Arc::new(Naive::new(ledger));
        }
        let mut providers = Providers::default();
        providers.insert(PROVIDER, self.model);
        let options = WorkerOptions {
            worker_id: format!("bench-{}", SystemIds.next()),
            queues: vec![QUEUE.to_owned()],
            slots: self.slots,
            lease: Duration::from_secs(60),
            drain_grace: Duration::from_secs(5),
            model_timeout: Duration::from_secs(600),
            max_tokens: 1024,
            on_context_overflow: OnContextOverflow::default(),
            on_exceed: turnstone_domain::budget::OnExceed::Retry,
            raise_wait: None,
            review_deadline: None,
            fan_out: FanOutRules::default(),
            artifacts: turnstone_domain::artifact::ArtifactLimits::default(),
        };
        let store = (ledger, ground.store.doorbell.clone());
        let deps = Deps::new(store, Arc::clone(&ground.clock), self.ids, providers, self.toolbox, options);
        let stop = CancellationToken::new();
        let token = stop.clone();
        let worker = AbortOnDropHandle::new(tokio::spawn(async move {
            if let Err(error) = Worker::new(deps).run(token).await {
                tracing::error!(%error, "the worker of the measurement ended");
            }
        }));
        Running { tally, stop, worker }
    }
}

/// A worker that runs; dropping it ends it on the spot.
pub struct Running {
    /// Its calls of the store.
    pub tally: Arc<Tally>,
    stop: CancellationToken,
    worker: AbortOnDropHandle<()>,
}

impl Running {
    /// Drains and ends it.
    pub async fn end(self) {
        self.stop.cancel();
        let _ = self.worker.await;
    }
}
