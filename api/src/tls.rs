//! TLS of the API itself (rustls): certificate and key from files.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The certificate of the API. Clones share it: after one of them reloads, all present the new one.
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
    /// A sentence with the file and the problem.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        let acceptor = Arc::new(RwLock::new(read(certificate, key)?));
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), acceptor })
    }

    /// Reads the same files again. Open connections continue; new ones get the new certificate.
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

    /// Does the handshake with a client.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor().accept(stream).await
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
