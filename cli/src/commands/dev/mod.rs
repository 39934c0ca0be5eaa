//! `turnstone dev`: API, scheduler and worker in one process on an SQLite file.

mod agents;
mod banner;
mod data_dir;
mod demo;
mod equipment;
mod next;
mod service;
mod signals;
pub mod timeline;
mod wording;

use crate::client::Client;
use crate::commands::Session;
use crate::config::{ClientConfig, Config};
use crate::failure::{Exit, Failure};
use crate::output::text;
use agents::Registered;
use anyhow::Context as _;
use banner::Banner;
use clap::Args;
use data_dir::DataDir;
use demo::ExampleTools;
use equipment::Equipment;
use next::NextCommands;
use service::{Materials, Service};
use signals::Signals;
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, Ids, JobState, SystemClock};
use turnstone_store::{SqliteStore, Store};
use turnstone_telemetry::Secret;

/// `turnstone dev`.
#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// Register the example agents, run the example research job against the scripted model and show its timeline
    #[arg(long)]
    pub demo: bool,
    /// Where the data is kept [default: ./.turnstone]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<String>,
    /// The most turns in flight at once [default: 64]
    #[arg(long, value_name = "N")]
    pub slots: Option<u32>,
}

impl DevArgs {
    /// What the flags say, by configuration key. The effective values are then read from the [`Config`].
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
    if dir.is_open_to_others() {
        let path = dir.path().display();
        session
            .output
            .remark(&format!("warning: other users of this machine can read {path}: chmod 700 {path}"));
    }
    let tools = if args.demo { Some(ExampleTools::start().await?) } else { None };
    let mut started = Box::pin(start(&config, &dir, tools.as_ref())).await?;
    started.banner.print(&session.output)?;
    let demo = async {
        if args.demo
            && let Err(error) = demo(&config, started.url.clone(), session).await
        {
            // The demo is only a client: what it cannot do is no reason to stop the server.
            crate::failure::report(&error, &mut io::stderr().lock());
        }
        std::future::pending().await
    };
    let broken = tokio::select! {
        () = demo => None,
        () = signals.next() => None,
        error = started.service.broken() => Some(error),
    };
    session
        .output
        .remark("\nstopping: turns give their jobs back after the phase they are in (again to stop at once)");
    let drained = tokio::select! {
        drained = started.service.drain() => drained,
        () = signals.next() => return Ok(Exit::Interrupted.into()),
    };
    if let Some(error) = broken {
        return Err(error);
    }
    drained?;
    session.output.remark("stopped; what is unfinished goes on at the next start");
    Ok(ExitCode::SUCCESS)
}

/// What runs, and what is told about it.
struct Started {
    service: Service,
    banner: Banner,
    url: String,
}

async fn start(config: &Config, dir: &DataDir, tools: Option<&ExampleTools>) -> anyhow::Result<Started> {
    let api_keys = config.server.api_keys.iter().map(|key| {
        key.resolve().map_err(|problem| Failure::new(Exit::Usage, format!("`server.api_keys`: {problem}")))
    });
    let api_keys: Vec<Secret> = api_keys.collect::<Result<_, _>>()?;
    let bind = config.server.bind;
    turnstone_api::check_exposure(bind, &api_keys).map_err(|error| Failure::usage(error.to_string()))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ids: Arc<dyn Ids> = Arc::new(SystemIds);
    let Equipment { providers, toolbox, scripted } = Equipment::of(config, tools, Arc::clone(&clock))?;
    let documents = config.agents.dir.as_deref().map(agents::documents).transpose()?.unwrap_or_default();
    let listener = TcpListener::bind(bind).await.map_err(|error| cannot_listen(bind, &error))?;
    let url = url_of(listener.local_addr().context("the listener has no address")?);

    let store = SqliteStore::open(&dir.database(), Arc::clone(&ids)).await?;
    // Nobody else can have this directory, so whoever held a lease in it is dead: its jobs go on at once.
    store.upkeep.release_all(clock.now()).await?;
    let unfinished = unfinished(&store).await?;
    let tool_names: Vec<String> = toolbox.specs().into_iter().map(|tool| tool.name).collect();
    let mut agents = Registered::default();
    for (documents, keep) in
        [(demo::agents(tools.is_some()), true), (documents, false)].into_iter().filter(|(d, _)| !d.is_empty())
    {
        let more = agents::register(&store, documents, tool_names.clone(), keep, clock.now()).await?;
        agents.names.extend(more.names);
        agents.problems.extend(more.problems);
    }
    tell_problems(&agents);
    let worker_id = worker_id(ids.as_ref());
    let banner = Banner {
        url: url.clone(),
        data: std::path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned()),
        needs_key: !api_keys.is_empty(),
        worker_id: worker_id.clone(),
        slots: config.worker.slots,
        queues: config.worker.named_queues().map(<[String]>::to_vec),
        providers: providers.names().map(str::to_owned).collect(),
        scripted,
        agents: store.views.agents().await?.into_iter().map(|record| record.definition.name).collect(),
        tools: tool_names,
        example_tools: tools.map(ExampleTools::url),
        unfinished,
    };
    let service = Service::start(
        config,
        listener,
        Materials { store, clock, ids, providers, toolbox, api_keys, worker_id },
    );
    Ok(Started { service, banner, url })
}

async fn demo(config: &Config, url: String, session: &Session) -> anyhow::Result<()> {
    let api_key = config.server.api_keys.first().cloned();
    let next = NextCommands::of_process(&session.global, config, &url, api_key.as_ref());
    let client = Client::new(&ClientConfig { url, api_key }, session.output)?;
    demo::show(&client, session, &next).await
}

/// How many jobs are neither ended nor waiting for a time or a person.
async fn unfinished(store: &Store) -> anyhow::Result<u64> {
    let goes_on =
        |state: &JobState| matches!(state, JobState::Available | JobState::Active | JobState::Retryable);
    let counts = store.views.counts(None).await?;
    Ok(counts.iter().filter(|(state, _)| goes_on(state)).map(|(_, count)| count).sum())
}

fn tell_problems(agents: &Registered) {
    let mut stderr = io::stderr().lock();
    for problem in &agents.problems {
        // Nobody is left to tell when standard error cannot be written.
        let _ = writeln!(stderr, "{}", text::line(&problem.to_string()));
    }
}

/// Unique among the workers that ever were: process ids come again.
fn worker_id(ids: &dyn Ids) -> String {
    let id = ids.next();
    let random = id.get(id.len().saturating_sub(6)..).unwrap_or(&id);
    format!("dev-{}-{random}", std::process::id())
}

/// The address under which clients on this machine reach the listener.
fn url_of(mut address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{address}")
}

fn cannot_listen(bind: SocketAddr, error: &io::Error) -> Failure {
    let failure = Failure::failed(format!("{bind} cannot be listened on: {error}"));
    match error.kind() {
        ErrorKind::AddrInUse => failure.hint(
            "another server is there; stop it, or take another port with --bind 127.0.0.1:8081 (0 takes a free one)",
        ),
        _ => failure.hint("name an address of this machine with --bind ADDR:PORT"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_sent_to_an_address_that_can_be_reached() {
        for (bound, url) in [
            ("127.0.0.1:81", "http://127.0.0.1:81"),
            ("0.0.0.0:81", "http://127.0.0.1:81"),
            ("[::]:81", "http://[::1]:81"),
            ("192.168.1.9:81", "http://192.168.1.9:81"),
        ] {
            assert_eq!(url_of(bound.parse().unwrap()), url);
        }
    }

    #[test]
    fn two_workers_of_one_process_have_different_names() {
        let (a, b) = (worker_id(&SystemIds), worker_id(&SystemIds));
        assert!(a.starts_with(&format!("dev-{}-", std::process::id())) && a != b, "{a} {b}");
    }
}
