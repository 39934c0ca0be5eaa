//! The probes and the metrics of a process without an API.

use super::ServicePart;
use super::listening::cannot_listen;
use anyhow::Context as _;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use turnstone_api::Probed;
use turnstone_store::Views;

/// Listens on the address of this key of the configuration; `None` when it names none.
///
/// # Errors
/// The address cannot be listened on.
pub async fn listen(key: &'static str, address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await.map_err(|error| cannot_listen(key, address, &error))?;
    let at = listener.local_addr().context("the listener has no address")?;
    tracing::info!("metrics are read at http://{at}/metrics and probes at http://{at}/livez and /readyz");
    Ok(Some(listener))
}

/// Serves the probes of a part, until after that part has drained.
#[must_use]
pub fn part(listener: TcpListener, views: Views, about: &ServicePart) -> ServicePart {
    let probed = Probed { views, draining: about.stopping() };
    ServicePart::start("probes", |stop| async {
        turnstone_api::serve_probes(listener, probed, stop).await.map_err(anyhow::Error::new)
    })
}
