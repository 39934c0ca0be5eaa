//! The three parts of a Turnstone in one process: api, scheduler, worker. They meet in the store and nowhere else.

use crate::config::Config;
use anyhow::Context as _;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use turnstone_api::{Api, ApiOptions};
use turnstone_domain::{Clock, Ids};
use turnstone_scheduler::Scheduler;
use turnstone_store::Store;
use turnstone_telemetry::Secret;
use turnstone_worker::model::Providers;
use turnstone_worker::tool::Toolbox;
use turnstone_worker::{Deps, Worker, WorkerOptions};

/// What the parts are made of.
pub struct Materials {
    /// Where they meet.
    pub store: Store,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn Ids>,
    /// Models.
    pub providers: Providers,
    /// Tools.
    pub toolbox: Toolbox,
    /// Keys that open the api.
    pub api_keys: Vec<Secret>,
    /// The worker's name.
    pub worker_id: String,
}

/// The running parts.
#[derive(Debug)]
pub struct Service {
    worker: Part,
    scheduler: Part,
    api: Part,
}

#[derive(Debug)]
struct Part {
    name: &'static str,
    stop: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Service {
    /// Starts the parts; the api answers on `listener`.
    #[must_use]
    pub fn start(config: &Config, listener: TcpListener, materials: Materials) -> Self {
        let Materials { store, clock, ids, providers, toolbox, api_keys, worker_id } = materials;
        let bind = listener.local_addr().unwrap_or(config.server.bind);
        let tools = toolbox.specs();
        let scheduler = Scheduler {
            upkeep: Arc::clone(&store.upkeep),
            doorbell: store.doorbell.clone(),
            clock: Arc::clone(&clock),
        };
        let deps = Deps::new(
            (Arc::clone(&store.ledger), store.doorbell.clone()),
            Arc::clone(&clock),
            Arc::clone(&ids),
            providers,
            toolbox,
            options(config, worker_id),
        );
        let api = move |shutdown: CancellationToken| {
            let options = ApiOptions { bind, api_keys, ..ApiOptions::default() };
            let backend = "sqlite".to_owned();
            let api = Api { store, clock, ids, tools, backend, options, shutdown: shutdown.clone() };
            turnstone_api::serve(listener, api.router(), shutdown)
        };
        Self {
            api: Part::start("api", |stop| {
                let serving = api(stop);
                async { serving.await.context("the listener failed") }
            }),
            scheduler: Part::start("scheduler", |stop| async {
                scheduler.run(stop).await;
                Ok(())
            }),
            worker: Part::start("worker", |stop| async {
                Worker::new(deps).run(stop).await.map_err(anyhow::Error::from_boxed)
            }),
        }
    }

    /// Waits until a part ends that nobody told to: something is badly wrong.
    pub async fn broken(&mut self) -> anyhow::Error {
        let (name, ended) = tokio::select! {
            ended = &mut self.worker.running => (self.worker.name, ended),
            ended = &mut self.scheduler.running => (self.scheduler.name, ended),
            ended = &mut self.api.running => (self.api.name, ended),
        };
        match ended {
            Ok(Ok(())) => anyhow::anyhow!("the {name} ended although nobody told it to"),
            Ok(Err(error)) => error.context(format!("the {name} failed")),
            Err(error) => anyhow::Error::new(error).context(format!("the {name} failed")),
        }
    }

    /// Stops the worker first, so that its turns can give their jobs back; then the scheduler; and the api last, so
    /// that clients see it happen.
    ///
    /// # Errors
    /// What a part said when it ended. The others are stopped nevertheless.
    pub async fn drain(self) -> anyhow::Result<()> {
        let worker = self.worker.end().await;
        let scheduler = self.scheduler.end().await;
        let api = self.api.end().await;
        worker.and(scheduler).and(api)
    }
}

impl Part {
    fn start<F>(name: &'static str, run: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        Self { name, running: tokio::spawn(run(stop.clone())), stop }
    }

    async fn end(self) -> anyhow::Result<()> {
        self.stop.cancel();
        if self.running.is_finished() {
            // [`Service::broken`] has told how.
            return Ok(());
        }
        let name = self.name;
        self.running
            .await
            .context("it panicked")
            .flatten()
            .with_context(|| format!("the {name} did not end well"))
    }
}

fn options(config: &Config, worker_id: String) -> WorkerOptions {
    let (worker, models) = (&config.worker, &config.models);
    WorkerOptions {
        worker_id,
        queues: worker.queues.clone(),
        slots: usize::try_from(worker.slots).unwrap_or(usize::MAX),
        lease: Duration::from_millis(worker.lease_ms),
        drain_grace: Duration::from_millis(worker.drain_grace_ms),
        model_timeout: Duration::from_millis(models.timeout_ms),
        max_tokens: models.max_tokens.into(),
    }
}
