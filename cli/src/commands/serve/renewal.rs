//! A new certificate without a restart: SIGHUP has the files of `[server.tls]` read again.

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use turnstone_api::Tls;

/// Reads the files again at every signal, until the process ends. Files that cannot be used are logged, and the API
/// keeps its certificate.
///
/// # Errors
/// The operating system does not allow to listen to the signal.
pub fn on_hangup(tls: Tls) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match tls.reload() {
                Ok(()) => {
                    tracing::info!("the certificate was read again; new connections are greeted with it")
                }
                Err(problem) => {
                    tracing::error!(%problem, "[server.tls]: the new certificate cannot be used; the api keeps its current one");
                }
            }
        }
    });
    Ok(())
}
