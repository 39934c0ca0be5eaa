//! TLS of the api itself (rustls): certificate and key from files.

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client that has not greeted by then is let go.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Clients that may be greeting at once.
const GREETING: usize = 512;
/// The pause after the listener failed, for example because there are too many open files.
const BREATH: Duration = Duration::from_millis(200);

/// What the api proves itself with. Clones share it: what one of them reads anew, all present.
#[derive(Clone)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    acceptor: Arc<RwLock<TlsAcceptor>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(***)")
    }
}

impl Tls {
    /// Reads a certificate, with those of its authorities below it, and its key; both in PEM.
    ///
    /// # Errors
    /// A sentence that names the file and says what is wrong with it.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        let acceptor = Arc::new(RwLock::new(read(certificate, key)?));
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), acceptor })
    }

    /// Reads the same files again. Connections that are open go on; new ones are greeted with what was read.
    ///
    /// # Errors
    /// As [`Self::load`]; then everything stays as it was.
    pub fn reload(&self) -> Result<(), String> {
        let acceptor = read(&self.certificate, &self.key)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A listener whose connections have greeted: a slow client keeps nobody else waiting.
    pub(crate) fn listen(self, listener: TcpListener) -> io::Result<TlsListener> {
        let address = listener.local_addr()?;
        let (ready, connections) = mpsc::channel(GREETING);
        tokio::spawn(greet(listener, self, ready));
        Ok(TlsListener { connections, address })
    }
}

fn read(certificate: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let wrong = |path: &Path, why: String| format!("{}: {why}", path.display());
    let chain =
        CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(certificate, format!("holds no readable certificate in PEM: {error}")))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "holds no certificate in PEM".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| wrong(key, format!("holds no readable private key in PEM: {error}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_no_client_auth()
        .with_single_cert(chain, private);
    let mut config =
        config.map_err(|error| wrong(key, format!("does not fit {}: {error}", certificate.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn greet(listener: TcpListener, tls: Tls, ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>) {
    let places = Arc::new(Semaphore::new(GREETING));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = ready.closed() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        let (acceptor, ready) = (tls.acceptor(), ready.clone());
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection keeps its delay");
            }
            match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                // Nobody takes it any more when the server ends.
                Ok(Ok(stream)) => drop(ready.send((stream, address)).await),
                Ok(Err(error)) => tracing::debug!(%error, "a client did not speak TLS"),
                Err(_) => tracing::debug!("a client did not greet in time"),
            }
        });
    }
}

/// Connections over TLS.
pub(crate) struct TlsListener {
    connections: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The task that greets ends only after this.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
