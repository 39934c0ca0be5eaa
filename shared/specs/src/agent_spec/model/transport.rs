//! Ways to MCP servers.

use super::build::{self, Builder};
use super::{Head, RetryPolicy};
use crate::agent_spec::component::Component as Read;
use crate::agent_spec::secret::Secret;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A way to an MCP server.
#[derive(Clone, Debug)]
pub struct ClientTransport {
    /// Id, name and description.
    pub head: Head,
    /// Seconds until an answer is given up.
    pub read_timeout_seconds: f64,
    /// The transport.
    pub kind: TransportKind,
}

/// A transport to a server.
#[derive(Clone, Debug)]
pub enum TransportKind {
    /// A process that is started.
    StdioTransport(StdioProgram),
    /// HTTP with server-sent events.
    SSETransport(Box<RemoteTransport>),
    /// Streamable HTTP.
    StreamableHTTPTransport(Box<RemoteTransport>),
}

/// A program as a document asks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StdioProgram {
    /// Its name in the configuration.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Its folder.
    pub cwd: Option<String>,
}

impl StdioProgram {
    /// Reads a `StdioTransport`.
    pub(in crate::agent_spec) fn of(read: &Read) -> Self {
        Self {
            command: read.text("command"),
            args: build::list(&read.value("args")),
            env: build::texts(&read.value("env")),
            cwd: read.optional_text("cwd"),
        }
    }
}

/// A server behind HTTP.
#[derive(Clone, Debug)]
pub struct RemoteTransport {
    /// Its address.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// More headers.
    pub sensitive_headers: Option<Secret>,
    /// The way to obtain tokens.
    pub auth: Option<OAuthConfig>,
    /// The certificates of a connection that proves both sides.
    pub tls: Option<MutualTls>,
    /// The retries of requests.
    pub retry_policy: Option<RetryPolicy>,
}

/// The files of a connection that proves both sides.
#[derive(Clone, Debug)]
pub struct MutualTls {
    /// The client's key.
    pub key_file: Secret,
    /// The client's certificate.
    pub cert_file: Secret,
    /// The authority that the server's certificate is of.
    pub ca_file: Secret,
}

/// The way to obtain tokens by OAuth.
#[derive(Clone, Debug)]
pub struct OAuthConfig {
    /// Id, name and description.
    pub head: Head,
    /// The issuer.
    pub issuer: Option<String>,
    /// The endpoints, when they are not discovered.
    pub endpoints: Option<Value>,
    /// `pre_registered`, `client_id_metadata_document` or `dynamic_registration`.
    pub client_type: String,
    /// The client's id.
    pub client_id: Option<Secret>,
    /// The client's secret.
    pub client_secret: Option<Secret>,
    /// The address of a document about the client.
    pub client_id_metadata_url: Option<Secret>,
    /// The authentication of the client at the token endpoint.
    pub token_endpoint_auth_method: Option<String>,
    /// The endpoint at which clients register.
    pub registration_endpoint: Option<String>,
    /// The address to which the user returns.
    pub redirect_uri: String,
    /// The scopes that are asked for.
    pub scopes: Vec<String>,
    /// `use_challenge_or_supported` or `fixed`.
    pub scope_policy: Option<String>,
    /// The proof key, as the document has it.
    pub pkce: Option<Value>,
    /// The resource that tokens are for.
    pub resource: Option<String>,
}

impl Builder {
    pub(super) fn transport(&mut self, read: &Arc<Read>) -> Option<Arc<ClientTransport>> {
        if let Some(known) = self.transports.get(&read.id) {
            return Some(known.clone());
        }
        let kind = match read.class.name {
            "StdioTransport" => TransportKind::StdioTransport(StdioProgram::of(read)),
            "SSETransport" | "SSEmTLSTransport" => TransportKind::SSETransport(Box::new(remote(read))),
            _ => TransportKind::StreamableHTTPTransport(Box::new(remote(read))),
        };
        let session = read.value("session_parameters");
        let seconds = session.get("read_timeout_seconds").and_then(Value::as_f64);
        let built = Arc::new(ClientTransport {
            head: Head::of(read),
            read_timeout_seconds: seconds.unwrap_or(60.0),
            kind,
        });
        self.transports.insert(read.id.clone(), built.clone());
        Some(built)
    }
}

fn remote(read: &Read) -> RemoteTransport {
    let file = |field: &str| read.secret(field).cloned();
    let tls = match (file("key_file"), file("cert_file"), file("ca_file")) {
        (Some(key_file), Some(cert_file), Some(ca_file)) => Some(MutualTls { key_file, cert_file, ca_file }),
        _ => None,
    };
    RemoteTransport {
        url: read.text("url"),
        headers: build::texts(&read.value("headers")),
        sensitive_headers: file("sensitive_headers"),
        auth: read.one("auth").and_then(|auth| oauth(auth)),
        tls,
        retry_policy: build::retries(read),
    }
}

fn oauth(read: &Read) -> Option<OAuthConfig> {
    let client = read.one("client")?;
    let given = |field: &str| Some(read.value(field)).filter(|value| !value.is_null());
    Some(OAuthConfig {
        head: Head::of(read),
        issuer: read.optional_text("issuer"),
        endpoints: given("endpoints"),
        client_type: client.text("type"),
        client_id: client.secret("client_id").cloned(),
        client_secret: client.secret("client_secret").cloned(),
        client_id_metadata_url: client.secret("client_id_metadata_url").cloned(),
        token_endpoint_auth_method: client.optional_text("token_endpoint_auth_method"),
        registration_endpoint: client.optional_text("registration_endpoint"),
        redirect_uri: read.text("redirect_uri"),
        scopes: build::list(&read.value("scopes")),
        scope_policy: read.optional_text("scope_policy"),
        pkce: given("pkce"),
        resource: read.optional_text("resource"),
    })
}
