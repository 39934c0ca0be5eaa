//! `turnstone worker`: claims agent jobs and runs their turns. Any number may run, on any machines.

use super::equipment;
use super::fleet_store::refused;
use super::open_files;
use super::probed;
use super::started::Started;
use super::{Equipment, Farewell, Ground, Renewal, Service, ServicePart, Signals};
use crate::commands::Session;
use crate::config::{Config, suggestion};
use crate::failure::{Exit, Failure};
use anyhow::Context as _;
use clap::Args;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use turnstone_domain::artifact::ArtifactLimits;
use turnstone_domain::duration::Span;
use turnstone_store::Views;
use turnstone_worker::{Deps, Worker, WorkerOptions, host_name};

/// `turnstone worker` without a subcommand.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The most turns in flight at once [default: 64]
    #[arg(long, value_name = "N")]
    pub slots: Option<u32>,
    /// The queues it serves, separated by commas [default: every queue]
    #[arg(long, value_name = "NAMES")]
    pub queues: Option<String>,
    /// How long a worker that stops responding keeps its jobs, such as 15s [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub lease: Option<u64>,
    /// Its name, unique in the fleet [default: the name of the machine, the process id and four random characters]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How long a stopping worker lets turns reach their next checkpoint, such as 10s [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub drain_grace: Option<u64>,
    /// The address of its metrics and its probes, such as 0.0.0.0:9464 [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_bind: Option<SocketAddr>,
}

impl RunArgs {
    /// Returns the values of the flags, by configuration key.
    #[must_use]
    pub fn overrides(&self) -> Vec<(&'static str, String)> {
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        [
            ("worker.slots", text(self.slots.map(u64::from))),
            ("worker.queues", self.queues.clone()),
            ("worker.lease_ms", text(self.lease)),
            ("worker.name", self.name.clone()),
            ("worker.drain_grace_ms", text(self.drain_grace)),
            ("worker.metrics_bind", self.metrics_bind.map(|address| address.to_string())),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
    }
}

/// Reads a duration such as `15s`, `500ms` or `2m` into milliseconds.
fn milliseconds(text: &str) -> Result<u64, String> {
    Span::parse_short(text).map(|span| span.ms().unsigned_abs())
}

/// Returns the configured options of a worker of this name.
#[must_use]
pub fn options(config: &Config, worker_id: String) -> WorkerOptions {
    let (worker, models) = (&config.worker, &config.models);
    WorkerOptions {
        worker_id,
        queues: worker.queues.clone(),
        slots: usize::try_from(worker.slots).unwrap_or(usize::MAX),
        lease: Duration::from_millis(worker.lease_ms),
        drain_grace: Duration::from_millis(worker.drain_grace_ms),
        model_timeout: Duration::from_millis(models.timeout_ms),
        max_tokens: models.max_tokens.into(),
        on_context_overflow: models.on_context_overflow,
        on_exceed: config.budgets.of_engagements().unwrap_or_default(),
        raise_wait: config.budgets.raise_wait(),
        review_deadline: worker.review_deadline_ms.map(Duration::from_millis),
        fan_out: config.agents.fan_out(),
        artifacts: ArtifactLimits { each: worker.artifact_max_bytes, engagement: worker.artifacts_max_bytes },
    }
}

/// Returns the worker as a part of this process.
#[must_use]
pub fn part(worker: Worker) -> ServicePart {
    ServicePart::start("worker", |stop| async { worker.run(stop).await.map_err(anyhow::Error::from_boxed) })
}

/// Runs until a signal comes, then drains.
///
/// # Errors
/// It could not be started, another worker has its name, or it failed.
pub async fn run(config: Config, session: &Session) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("signals cannot be listened to")?;
    let Some(service) = signals.or(Box::pin(start(&config, session))).await else {
        return Ok(Exit::Interrupted.into());
    };
    let farewell = Farewell {
        stopping: "stopping: turns give their jobs back after the phase they are in (again to stop at once)",
        stopped: "stopped; other workers resume unfinished jobs",
    };
    let (service, directed) = service?;
    service.run(signals, &session.output, farewell, directed.cancelled_owned()).await
}

/// Returns the service, and the token that is cancelled when an operator directs the worker to end.
async fn start(config: &Config, session: &Session) -> anyhow::Result<(Service, CancellationToken)> {
    open_files::allow(config.worker.slots, 0);
    Renewal::of(config, true).on_hangup().context("signals cannot be listened to")?;
    let Ground { store, clock, ids } = Ground::join(config).await?;
    known_queues(config, &store.views).await?;
    let own = equipment::own_addresses(config, None)?;
    let equipment = Equipment::of(config, None, own, Arc::clone(&clock))?;
    let limits = equipment.limits(config, Arc::clone(&store.limits))?;
    let prices = config.prices()?;
    let Equipment { providers, toolbox, .. } = equipment;
    let name = config.worker.name.clone().unwrap_or_else(|| given_name(&ids.next()));
    let options = options(config, name.clone());
    let (breakers, credentials) = (Arc::clone(&store.breakers), store.credentials.clone());
    let (remote_calls, freezes) = (store.remote_calls.clone(), store.freezes.clone());
    let views = store.views.clone();
    let store = (Arc::clone(&store.ledger), store.doorbell.clone());
    let deps = Deps::new(store, clock, ids, providers, toolbox, options);
    let deps =
        deps.with_limits(limits).with_breakers(breakers).with_credentials(credentials).with_prices(prices);
    let deps = deps
        .with_reviews(config.reviews.clone())
        .with_remote_calls(remote_calls)
        .with_freezes(freezes)
        .with_estimates(config.models.estimates());
    let worker = Worker::new(deps);
    let probes = probed::listen("worker.metrics_bind", config.worker.metrics_bind).await?;
    worker.register().await.map_err(refused)?;
    let slots = config.worker.slots;
    let queues = config.worker.named_queues().map_or("every queue".to_owned(), |queues| queues.join(", "));
    let line = format!("turnstone worker {name} runs with {slots} slots for {queues}");
    Started { name: Some(name), ..Started::new("worker", line) }.print(&session.output)?;
    let directed = worker.directed();
    let worker = part(worker);
    let probes = probes.map(|listener| probed::part(listener, views, &worker));
    Ok((Service::of(std::iter::once(worker).chain(probes).collect()), directed))
}

/// Returns a name that no other worker has. In a container, the name of the machine and the process id are the same at every
/// start, and the fleet may still list the worker of the start before. So the name ends with random characters.
fn given_name(id: &str) -> String {
    let tail = id.get(id.len().saturating_sub(4)..).unwrap_or_default();
    format!("{}-{}-{tail}", host_name(), std::process::id())
}

/// Checks that the queues exist: a worker for a misspelt one would wait for ever.
async fn known_queues(config: &Config, views: &Views) -> anyhow::Result<()> {
    let Some(wanted) = config.worker.named_queues() else { return Ok(()) };
    let known = views.queues().await.map_err(refused)?;
    match wanted.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(unknown_queue(name, &known).into()),
    }
}

/// Returns the failure for an unknown queue: no job was pushed to it, and `turnstone migrate` did not create it.
#[must_use]
pub fn unknown_queue(name: &str, known: &[String]) -> Failure {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let failure = Failure::usage(format!(
        "queue `{name}` is unknown to this fleet; known are {}; enqueue a job to it first, or put it into worker.queues \
         of the configuration and run `turnstone migrate`",
        known.join(", ")
    ));
    match suggestion(name, &known) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_their_unit() {
        assert_eq!(milliseconds("15s"), Ok(15_000));
        assert_eq!(milliseconds("500ms"), Ok(500));
        assert_eq!(milliseconds("2m"), Ok(120_000));
        assert_eq!((milliseconds("1.5s"), milliseconds("PT1M30S")), (Ok(1_500), Ok(90_000)));
        for bad in ["15", "s", "-1s", "1M", "", "99999999999999999999s", "18446744073709551615m"] {
            assert!(milliseconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_misspelt_queue_gets_a_suggestion() {
        let known = ["ai-agents".to_owned(), "default".to_owned()];
        let failure = unknown_queue("ai-agnets", &known);
        assert!(
            failure.message.contains("`ai-agnets` is unknown to this fleet; known are ai-agents, default")
        );
        assert_eq!(failure.hint.as_deref(), Some("did you mean `ai-agents`?"));
        assert_eq!(unknown_queue("xyzzy", &known).hint, None);
    }
}
