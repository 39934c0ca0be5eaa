//! `turnstone scheduler`: the effects of time on a fleet. Any number may run; one leads.

use super::budgets;
use super::probed;
use super::started::Started;
use super::{Farewell, Ground, Renewal, Service, ServicePart, Signals};
use crate::commands::Session;
use crate::config::Config;
use crate::failure::Exit;
use anyhow::Context as _;
use clap::Args;
use std::future::pending;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::{Clock, Ids};
use turnstone_scheduler::{Scheduler, SchedulerOptions, WebhookSender, WebhookSenderOptions};
use turnstone_store::Store;
use turnstone_worker::host_name;

/// `turnstone scheduler`.
#[derive(Clone, Debug, Args)]
pub struct SchedulerArgs {
    /// The address of its probes and its metrics, such as 0.0.0.0:9464 [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_bind: Option<SocketAddr>,
}

impl SchedulerArgs {
    /// Returns the values of the flags, by configuration key.
    #[must_use]
    pub fn overrides(&self) -> Vec<(&'static str, String)> {
        self.metrics_bind.iter().map(|address| ("scheduler.metrics_bind", address.to_string())).collect()
    }
}

/// Returns the scheduler as a part of this process. `options` contain its name; the configuration contains the
/// retention and the webhooks.
///
/// # Errors
/// The HTTP client of webhooks cannot be built.
pub fn part(
    store: &Store,
    (clock, ids): (Arc<dyn Clock>, Arc<dyn Ids>),
    config: &Config,
    options: SchedulerOptions,
) -> anyhow::Result<ServicePart> {
    let options = SchedulerOptions { retention: config.scheduler.retention(), ..options };
    let telling = WebhookSenderOptions {
        allow_private: config.webhooks.allow_private,
        timeout: Duration::from_millis(config.webhooks.timeout_ms),
    };
    let sender = WebhookSender::new(store, Arc::clone(&clock), Arc::clone(&ids), &telling)
        .map_err(anyhow::Error::msg)?;
    let scheduler = Scheduler::new(Arc::clone(&store.upkeep), store.doorbell.clone(), clock, options);
    let scheduler = scheduler.with_crons(store, ids, config.agents.fan_out()).with_webhooks(sender);
    Ok(ServicePart::start("scheduler", |stop| async {
        scheduler.run(stop).await;
        Ok(())
    }))
}

/// Runs until a signal comes, then gives the leadership back if it has it.
///
/// # Errors
/// It could not be started, or failed.
pub async fn run(config: Config, session: &Session) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("signals cannot be listened to")?;
    let Some(service) = signals.or(Box::pin(start(&config, session))).await else {
        return Ok(Exit::Interrupted.into());
    };
    let farewell = Farewell {
        stopping: "stopping: the leadership is given back (again to stop at once)",
        stopped: "stopped; another scheduler takes over, if there is one",
    };
    service?.run(signals, &session.output, farewell, pending()).await
}

async fn start(config: &Config, session: &Session) -> anyhow::Result<Service> {
    Renewal::of(config, false).on_hangup().context("signals cannot be listened to")?;
    let Ground { store, clock, ids } = Ground::join(config).await?;
    budgets::apply(config, &store, clock.now()).await?;
    // A process id repeats on the same machine, and in every container.
    let name = format!("{}-{}-{}", host_name(), std::process::id(), ids.next());
    let probes = probed::listen("scheduler.metrics_bind", config.scheduler.metrics_bind).await?;
    let scheduler = part(&store, (clock, ids), config, SchedulerOptions::new(name.clone()))?;
    let probes = probes.map(|listener| probed::part(listener, store.views.clone(), &scheduler));
    let service = Service::of(std::iter::once(scheduler).chain(probes).collect());
    let line = format!("turnstone scheduler {name} runs; of all that run one leads");
    Started { name: Some(name), ..Started::new("scheduler", line) }.print(&session.output)?;
    Ok(service)
}
