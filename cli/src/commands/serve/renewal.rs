//! New certificates and keys without a restart: SIGHUP has the files of the configuration read again.

use super::listening::{Listening, keys, peers};
use crate::commands::config::from_worker;
use crate::config::Config;
use std::io;
use tokio::signal::unix::{SignalKind, signal};
use turnstone_api::{ConfiguredKeys, Tls};

/// The parts of a process that SIGHUP renews.
pub struct Renewal {
    config: Config,
    tls: Option<Tls>,
    keys: Option<ConfiguredKeys>,
    calls: bool,
}

impl Renewal {
    /// Returns the renewal of a process without an API. `calls` says whether it calls models and tools.
    #[must_use]
    pub fn of(config: &Config, calls: bool) -> Self {
        Self { config: config.clone(), tls: None, keys: None, calls }
    }

    /// The same, with the certificate and the keys of an API.
    #[must_use]
    pub fn with_api(self, listening: &Listening) -> Self {
        Self { tls: listening.tls.clone(), keys: Some(listening.keys.clone()), ..self }
    }

    /// Renews at every signal, until the process ends. What cannot be used is logged, and the process keeps what it has.
    ///
    /// # Errors
    /// The operating system does not allow to listen to the signal.
    pub fn on_hangup(self) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                self.renew();
            }
        });
        Ok(())
    }

    fn renew(&self) {
        if let Some(tls) = &self.tls {
            reload(tls);
        }
        if let Some(keys) = &self.keys {
            read_keys(keys, &self.config);
        }
        if self.calls {
            check_calls(&self.config);
        }
    }
}

fn reload(tls: &Tls) {
    match tls.reload() {
        Ok(()) => tracing::info!("the certificate was read again; new connections are greeted with it"),
        Err(problem) => {
            tracing::error!(%problem, "[server.tls]: the new certificate cannot be used; the api keeps its current one");
        }
    }
}

fn read_keys(of_api: &ConfiguredKeys, config: &Config) {
    match keys(config).and_then(|clients| Ok((clients, peers(config)?))) {
        Ok((clients, peers)) => {
            of_api.renew(&clients, &peers);
            tracing::info!("the configured keys of clients were read again; other keys are refused");
        }
        Err(failure) => {
            let problem = failure.message;
            tracing::error!(
                problem,
                "the new keys of clients cannot be used; the api keeps its current ones"
            );
        }
    }
}

/// Each call reads its secrets itself; this names those that cannot be used.
fn check_calls(config: &Config) {
    let problems = from_worker(config);
    for problem in &problems {
        tracing::error!(problem, "a secret cannot be used; calls that need it fail");
    }
    if problems.is_empty() {
        tracing::info!("the secrets of models and tools were read again");
    }
}
