//! The services that run in this process: the API, the scheduler, the worker, or all of them in `turnstone dev`. A part that ends
//! by itself ends the process. On a signal the parts are stopped one after the other, each after it has drained.

use super::Signals;
use crate::failure::Exit;
use crate::output::Output;
use anyhow::Context as _;
use futures::future::select_all;
use std::future::Future;
use std::process::ExitCode;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

/// The running parts of the process, in the order in which they are stopped.
#[derive(Debug)]
pub struct Service {
    parts: Vec<ServicePart>,
}

/// A part that runs until it is stopped, and then drains.
#[derive(Debug)]
pub struct ServicePart {
    name: &'static str,
    stop: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

/// The remarks that the end of a service prints.
#[derive(Clone, Copy, Debug)]
pub struct Farewell {
    /// Printed when the parts begin to stop.
    pub stopping: &'static str,
    /// Printed when all parts have ended.
    pub stopped: &'static str,
}

impl ServicePart {
    /// Starts a part with this name for messages. `run` gets a token; the part drains and ends when the token is cancelled.
    pub fn start<F>(name: &'static str, run: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        Self { name, running: tokio::spawn(run(stop.clone())), stop }
    }

    /// Returns the token that stops the part when it is cancelled.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Stops the part and waits until it has ended.
    async fn end(self) -> anyhow::Result<()> {
        self.stop.cancel();
        if self.running.is_finished() {
            // It ended by itself, and [`Service::run`] reports that.
            return Ok(());
        }
        let name = self.name;
        self.running
            .await
            .context("it panicked")
            .flatten()
            .with_context(|| format!("the {name} failed while it stopped"))
    }
}

impl Service {
    /// Returns a service of these parts; the first one is stopped first.
    #[must_use]
    pub fn of(parts: Vec<ServicePart>) -> Self {
        Self { parts }
    }

    /// Waits until a part ends without being stopped, which is an error.
    async fn broken(&mut self) -> anyhow::Error {
        let (ended, at, _) = select_all(self.parts.iter_mut().map(|part| &mut part.running)).await;
        why_ended(self.parts[at].name, ended)
    }

    /// Stops one part after the other.
    async fn drain(self) -> anyhow::Result<()> {
        let mut first = Ok(());
        for part in self.parts {
            let ended = part.end().await;
            first = first.and(ended);
        }
        first
    }

    /// Runs until a signal comes, the future `meanwhile` ends or a part fails; then drains. A second signal ends it at
    /// once.
    ///
    /// # Errors
    /// The error of the part that ended by itself, or that failed while it stopped.
    pub async fn run(
        mut self,
        mut signals: Signals,
        output: &Output,
        farewell: Farewell,
        meanwhile: impl Future<Output = ()>,
    ) -> anyhow::Result<ExitCode> {
        let broken = tokio::select! {
            biased;
            () = meanwhile => None,
            () = signals.next() => None,
            error = self.broken() => Some(error),
        };
        output.remark(farewell.stopping);
        let drained = tokio::select! {
            drained = self.drain() => drained,
            () = signals.next() => return Ok(Exit::Interrupted.into()),
        };
        if let Some(error) = broken {
            return Err(error);
        }
        drained?;
        output.remark(farewell.stopped);
        Ok(ExitCode::SUCCESS)
    }
}

fn why_ended(name: &str, ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Error {
    match ended {
        Ok(Ok(())) => anyhow::anyhow!("the {name} ended unexpectedly"),
        Ok(Err(error)) => error.context(format!("the {name} failed")),
        Err(error) => anyhow::Error::new(error).context(format!("the {name} failed")),
    }
}
