//! `turnstone dev`: API, scheduler and worker in one process on an SQLite file.

mod banner;
mod data_dir;
pub mod demo;
mod next;
pub mod timeline;
mod turn_lines;
mod wording;

use crate::client::Client;
use crate::commands::Session;
use crate::commands::serve::agents::{self, Document, KnownTools, Registered};
use crate::commands::serve::{
    Equipment, Farewell, Listening, Renewal, Service, ServicePart, Signals, api, budgets, equipment,
    fleet_store, scheduler, worker,
};
use crate::config::{ClientConfig, Config};
use crate::failure::Exit;
use anyhow::Context as _;
use banner::Banner;
use clap::Args;
pub use data_dir::DataDir;
use demo::ExampleTools;
use next::NextCommands;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, Ids, JobState, MachineClock, Timestamp};
use turnstone_scheduler::SchedulerOptions;
use turnstone_store::{SqliteStore, Store, StoreError};
use turnstone_worker::{Deps, Worker};

/// `turnstone dev`.
#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// Register the example agents, run the example research job against the scripted model and show its timeline
    #[arg(long)]
    pub demo: bool,
    /// The data directory [default: ./.turnstone]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<String>,
    /// The most turns in flight at once [default: 64]
    #[arg(long, value_name = "N")]
    pub slots: Option<u32>,
    /// Let `POST /ojs/v1/admin/reset` delete everything: for test suites, and on loopback addresses alone
    #[arg(long)]
    pub enable_reset: bool,
}

impl DevArgs {
    /// Returns the values of the flags, by configuration key. The effective values are then read from the [`Config`].
    #[must_use]
    pub fn overrides(&self) -> Vec<(&'static str, String)> {
        let data = self.data.as_ref().map(|data| ("server.data", data.display().to_string()));
        let bind = self.bind.as_ref().map(|bind| ("server.bind", bind.clone()));
        let slots = self.slots.map(|slots| ("worker.slots", slots.to_string()));
        data.into_iter().chain(bind).chain(slots).collect()
    }
}

/// Runs until Ctrl-C or SIGTERM, then drains; a second one stops at once.
///
/// # Errors
/// Something could not be started, or a part of the service failed.
pub async fn run(args: DevArgs, config: Config, session: &Session) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("signals cannot be listened to")?;
    let dir = DataDir::take(&config.server.data)?;
    let tools = if args.demo { Some(ExampleTools::start().await?) } else { None };
    let starting = signals.or(Box::pin(start(&config, args.enable_reset, &dir, tools.as_ref()))).await;
    let Some(started) = starting else { return Ok(Exit::Interrupted.into()) };
    let Started { service, banner, url, directed } = started?;
    banner.print(&session.output)?;
    let demo = async {
        if args.demo
            && let Err(error) = demo(&config, url, session).await
        {
            // The demo is only a client: its failure is no reason to stop the server.
            crate::failure::report(&error);
        }
        std::future::pending().await
    };
    let meanwhile = async {
        tokio::select! {
            () = demo => {}
            () = directed.cancelled() => {}
        }
    };
    let farewell = Farewell {
        stopping: "\nstopping: turns give their jobs back after the phase they are in (again to stop at once)",
        stopped: "stopped; unfinished jobs resume at the next start",
    };
    Box::pin(service.run(signals, &session.output, farewell, meanwhile)).await
}

/// The running service, and its banner.
struct Started {
    service: Service,
    banner: Banner,
    url: String,
    /// Cancelled when an operator directs the worker to end: then the process ends.
    directed: CancellationToken,
}

/// Opens the store in the data directory.
async fn open(config: &Config, dir: &DataDir, ids: &Arc<dyn Ids>) -> anyhow::Result<Store> {
    let keys = config.encryption.keys()?;
    let store = SqliteStore::open_sealed(&dir.database(), keys.as_ref(), Arc::clone(ids)).await;
    Ok(store.map_err(fleet_store::refused)?)
}

async fn start(
    config: &Config,
    enable_reset: bool,
    dir: &DataDir,
    tools: Option<&ExampleTools>,
) -> anyhow::Result<Started> {
    let listening = Listening::start(config, enable_reset, config.worker.slots).await?;
    Renewal::of(config, true).with_api(&listening).on_hangup()?;
    let clock: Arc<dyn Clock> = Arc::new(MachineClock::default());
    let ids: Arc<dyn Ids> = Arc::new(SystemIds);
    let beneath = tools.map(ExampleTools::beneath).transpose()?;
    let own = equipment::own_addresses(config, Some(listening.address))?;
    let equipment = Equipment::of(config, beneath, own, Arc::clone(&clock))?;
    let documents = config.agents.dir.as_deref().map(agents::documents).transpose()?.unwrap_or_default();
    let url = listening.url();

    let store = open(config, dir, &ids).await?;
    let limits = equipment.limits(config, Arc::clone(&store.limits))?;
    let Equipment { providers, toolbox, scripted } = equipment;
    let writable = take_over(&store, clock.now()).await?;
    if writable {
        budgets::apply(config, &store, clock.now()).await?;
    }
    let known = KnownTools::of(&toolbox, &config.remote.host_names(), config.reviews.names());
    if writable {
        let documents = [(demo::agents(tools.is_some()), true), (documents, false)];
        register(&store, documents, &known, clock.now()).await?;
    }
    let worker_id = worker_id(ids.as_ref());
    let banner = Banner {
        url: url.clone(),
        data: std::path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned()),
        needs_key: !listening.keys.is_empty() || !listening.issuers.is_empty(),
        worker_id: worker_id.clone(),
        slots: config.worker.slots,
        queues: config.worker.named_queues().map(<[String]>::to_vec),
        providers: providers.names().map(str::to_owned).collect(),
        scripted,
        agents: store.views.agents(None).await?.into_iter().map(|record| record.definition.name).collect(),
        tools: known.shown(),
        example_tools: tools.map(ExampleTools::url),
        unfinished: unfinished(&store).await?,
    };
    let times = (Arc::clone(&clock), Arc::clone(&ids));
    let scheduler = scheduler::part(&store, times, config, SchedulerOptions::alone())?;
    let specs = toolbox.specs();
    let file = closed_at_the_end(&store);
    let deps = Deps::new(
        (Arc::clone(&store.ledger), store.doorbell.clone()),
        Arc::clone(&clock),
        Arc::clone(&ids),
        providers,
        toolbox,
        worker::options(config, worker_id),
    )
    .with_limits(limits)
    .with_breakers(Arc::clone(&store.breakers))
    .with_credentials(store.credentials.clone())
    .with_remote_calls(store.remote_calls.clone())
    .with_freezes(store.freezes.clone())
    .with_prices(config.prices()?)
    .with_estimates(config.models.estimates())
    .with_reviews(config.reviews.clone());
    let api = api::part(
        listening,
        api::Materials {
            store,
            clock,
            ids,
            tools: specs,
            mcp_servers: known.servers,
            keyless_tools: known.keyless,
            tool_rules: known.rules,
            reach: known.reach,
            backend: "sqlite",
        },
    );
    // The worker is stopped first, so that its turns can give their jobs back; the api last, so that clients see it.
    let worker = Worker::new(deps);
    let directed = worker.directed();
    let service = Service::of(vec![worker::part(worker), scheduler, api, file]);
    Ok(Started { service, banner, url, directed })
}

/// Registers documents of agents, and prints what is wrong with them. Each list says whether registered agents of its names are kept.
async fn register(
    store: &Store,
    lists: [(Vec<Document>, bool); 2],
    known: &KnownTools,
    now: Timestamp,
) -> anyhow::Result<()> {
    let mut agents = Registered::default();
    for (documents, keep) in lists.into_iter().filter(|(documents, _)| !documents.is_empty()) {
        let more = agents::register(store, documents, known.clone(), keep, now).await?;
        agents.names.extend(more.names);
        agents.problems.extend(more.problems);
    }
    agents.print_problems();
    Ok(())
}

/// Returns the part that closes the store: the last one, because the others write while they stop.
fn closed_at_the_end(store: &Store) -> ServicePart {
    let store = store.clone();
    ServicePart::start("store", |stop| async move {
        stop.cancelled().await;
        store.close().await;
        Ok(())
    })
}

/// Ends the leases of the process before this one, and returns true when the store can be written to. No other process can
/// use this directory, so the holder of any lease in it is dead: its jobs continue at once.
///
/// # Errors
/// The error of the store. A full disk is only logged.
async fn take_over(store: &Store, now: Timestamp) -> Result<bool, StoreError> {
    match store.upkeep.release_all(now).await {
        Ok(_) => Ok(true),
        Err(error @ StoreError::Unavailable { .. }) => {
            tracing::error!(%error, "nothing can be written; what is stored is served, and agents are not registered");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

async fn demo(config: &Config, url: String, session: &Session) -> anyhow::Result<()> {
    let api_key = config.server.api_keys.first().cloned();
    let next = NextCommands::of_process(&session.global, config, &url, api_key.as_ref());
    let client = Client::new(&ClientConfig { url, api_key }, session.output)?;
    demo::show(&client, session, &next).await
}

/// Returns the number of jobs that have neither ended nor wait for a time or a person.
async fn unfinished(store: &Store) -> anyhow::Result<u64> {
    let continues =
        |state: &JobState| matches!(state, JobState::Available | JobState::Active | JobState::Retryable);
    let counts = store.views.counts(None).await?;
    Ok(counts.iter().filter(|(state, _)| continues(state)).map(|(_, count)| count).sum())
}

/// Returns a name that no worker had before; a process id alone may repeat.
fn worker_id(ids: &dyn Ids) -> String {
    let id = ids.next();
    let random = id.get(id.len().saturating_sub(6)..).unwrap_or(&id);
    format!("dev-{}-{random}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workers_of_one_process_have_different_names() {
        let (a, b) = (worker_id(&SystemIds), worker_id(&SystemIds));
        assert!(a.starts_with(&format!("dev-{}-", std::process::id())) && a != b, "{a} {b}");
    }
}
