//! OpenAgentSpec for its clients and other servers: documents, the server, identities, and remote agents.

mod documents;
mod identity;
mod remote;
mod server;
mod tls;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reqwest::{Certificate, Client, redirect};
use std::path::Path;

/// A certificate authority of the tests, and a certificate of it for this machine.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    /// Writes `cert.pem`, `key.pem` and `ca.pem`.
    pub fn equip(&self, folder: &Path) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(folder.join("cert.pem"), certificate.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(folder.join("ca.pem"), self.issuer.pem()).unwrap();
    }

    /// Returns a client that trusts this authority and follows no redirect.
    fn client(&self) -> Client {
        let trusted = Certificate::from_pem(self.issuer.pem().as_bytes()).unwrap();
        let builder = turnstone_tests::http::client_builder().redirect(redirect::Policy::none());
        builder.tls_certs_only([trusted]).build().unwrap()
    }
}

/// A client that follows no redirect.
fn client() -> Client {
    turnstone_tests::fleet::install_crypto();
    turnstone_tests::http::client_builder().redirect(redirect::Policy::none()).build().unwrap()
}
