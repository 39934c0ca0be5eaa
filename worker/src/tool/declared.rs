//! Tools that a manifest defines itself, within the limits of `[tool_policy]`.

use super::Tool;
use super::address_guard::check_url;
use super::config::{Method, SchemaText, ToolConfig};
use super::header::{HeaderText, SecretHeader};
use super::http::HttpTool;
use super::mcp::{McpConfig, McpServer};
use super::outbound;
use super::policy::ToolPolicy;
use crate::model::{Model, NamedModel, declared};
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_blocking::in_place;
use turnstone_domain::agent::{Capability, Endpoint};
use turnstone_domain::{Clock, digest};
use turnstone_specs::agent_spec::model::{ClientTransport, LlmConfig, TransportKind};
use turnstone_telemetry::{Secret, SecretRef};
use url::Url;

/// The most tools in the cache; beyond that it is emptied.
const KEPT: usize = 256;

/// The most MCP servers that manifests may add to one worker.
const MOST_SERVERS: usize = 32;

/// The tools and servers that manifests have added so far.
pub(super) struct Declared {
    policy: ToolPolicy,
    client: Client,
    clock: Arc<dyn Clock>,
    tools: Mutex<HashMap<String, Arc<dyn Tool>>>,
    servers: Mutex<BTreeMap<String, Arc<McpServer>>>,
    models: Mutex<HashMap<String, NamedModel>>,
}

impl Declared {
    pub(super) fn new(policy: ToolPolicy, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let client =
            if policy.allow_private { outbound::open_client()? } else { outbound::guarded_client()? };
        Ok(Self {
            policy,
            client,
            clock,
            tools: Mutex::default(),
            servers: Mutex::default(),
            models: Mutex::default(),
        })
    }

    /// Returns the tool behind the endpoint of a capability.
    pub(super) fn tool(&self, capability: &Capability, endpoint: &Endpoint) -> Result<Arc<dyn Tool>, String> {
        let key = digest::of_json(&json!([
            capability.name,
            capability.description,
            capability.input_schema,
            endpoint
        ]));
        if let Some(known) = self.tools.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let tool: Arc<dyn Tool> = Arc::new(in_place(|| self.made(capability, endpoint))?);
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if tools.len() >= KEPT {
            tools.clear();
        }
        tools.insert(key, Arc::clone(&tool));
        Ok(tool)
    }

    fn made(&self, capability: &Capability, endpoint: &Endpoint) -> Result<HttpTool, String> {
        self.admit(&endpoint.url)?;
        let mut headers = BTreeMap::new();
        if let Some(auth) = &endpoint.auth {
            let secret = self.policy.secret(&auth.secret)?.clone();
            let header = SecretHeader { secret, prefix: auth.prefix.clone() };
            headers.insert(auth.header.clone(), HeaderText::Secret(header));
        }
        let config = ToolConfig {
            description: capability.description.clone().unwrap_or_default(),
            input_schema: capability.input_schema.clone().map_or_else(SchemaText::default, SchemaText::Table),
            method: method(endpoint.method.as_deref())?,
            headers,
            allow_private: self.policy.allow_private,
            ..ToolConfig::at(endpoint.url.clone())
        };
        HttpTool::new(&capability.name, config, self.client.clone())
    }

    /// Returns the MCP server at a URL.
    pub(super) fn server(&self, url: &str) -> Result<Arc<McpServer>, String> {
        self.admit(url)?;
        let config = McpConfig::of_url(url.to_owned(), self.policy.allow_private);
        // The manifest names the server's tools, so this name appears only in logs.
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        self.server_of(url.to_owned(), &host.unwrap_or_default(), config)
    }

    /// Returns the server that is known by this key, or makes it.
    fn server_of(&self, key: String, name: &str, config: McpConfig) -> Result<Arc<McpServer>, String> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = servers.get(&key) {
            return Ok(Arc::clone(known));
        }
        if servers.len() >= MOST_SERVERS {
            return Err(format!(
                "documents named more than {MOST_SERVERS} MCP servers; configure this one as [mcp.<name>]"
            ));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(64).collect();
        let name = name.trim_start_matches(['-', '_']);
        let name = if name.is_empty() { "server" } else { name };
        let server = McpServer::new(name, config, self.client.clone(), Arc::clone(&self.clock))?;
        servers.insert(key, Arc::clone(&server));
        Ok(server)
    }

    /// Returns the MCP server behind a transport of Agent Spec.
    pub(super) fn transport(&self, transport: &ClientTransport) -> Result<Arc<McpServer>, String> {
        let (config, parts) = match &transport.kind {
            TransportKind::StdioTransport { command, args, env, cwd } => {
                self.policy.admits_command(command)?;
                if cwd.is_some() {
                    return Err(format!(
                        "the transport `{}` names a folder, which is not supported",
                        transport.head.name
                    ));
                }
                let command: Vec<String> = std::iter::once(command).chain(args).cloned().collect();
                let parts = json!([command, env]);
                let env =
                    env.iter().map(|(name, value)| (name.clone(), HeaderText::of_document(name, value)));
                (McpConfig { env: env.collect(), ..McpConfig::of_command(command) }, parts)
            }
            TransportKind::SSETransport(remote) | TransportKind::StreamableHTTPTransport(remote) => {
                self.admit(&remote.url)?;
                let plain = remote.headers.iter();
                let plain = plain.map(|(name, value)| (name.clone(), HeaderText::of_document(name, value)));
                let mut headers: BTreeMap<String, HeaderText> = plain.collect();
                let hidden = remote.sensitive_headers.as_ref().and_then(|secret| secret.reveal());
                for (name, value) in hidden.and_then(Value::as_object).into_iter().flatten() {
                    let value = Secret::given(value.as_str().unwrap_or_default());
                    headers.insert(name.clone(), HeaderText::Given(value));
                }
                let config = McpConfig::of_url(remote.url.clone(), self.policy.allow_private);
                let sse = matches!(transport.kind, TransportKind::SSETransport(_));
                let parts = json!([remote.url, sse, remote.headers, hidden]);
                (McpConfig { sse, headers, ..config }, parts)
            }
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds, bounded")]
        let timeout_ms = (transport.read_timeout_seconds * 1000.0).clamp(1.0, 3_600_000.0) as u64;
        let name = transport.head.name.clone();
        let key = digest::of_json(&json!([name, parts, timeout_ms]));
        self.server_of(key, &name, McpConfig { timeout_ms, ..config })
    }

    /// The model that a document names by its address, with the name of its provider: the host.
    pub(super) fn model(&self, config: &LlmConfig) -> Result<NamedModel, String> {
        let address = declared::address(config)?;
        let key = config.key().and_then(|key| key.reveal());
        let of = json!([address.as_str(), key, config.api_type, config.default_generation_parameters]);
        let known_by = digest::of_json(&of);
        if let Some(known) = self.models.lock().unwrap_or_else(PoisonError::into_inner).get(&known_by) {
            return Ok(known.clone());
        }
        let client = self.client_for(&address)?;
        let port = address.port().map(|port| format!(":{port}")).unwrap_or_default();
        let name = format!("{}{port}", address.host_str().unwrap_or_default());
        let model: Arc<dyn Model> = in_place(|| declared::model(&name, config, &address, client))?;
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() >= KEPT {
            models.clear();
        }
        models.insert(known_by, (name.clone(), Arc::clone(&model)));
        Ok((name, model))
    }

    /// The client for a URL that a document names.
    ///
    /// # Errors
    /// A sentence that says what to add to the configuration.
    pub(super) fn client_for(&self, url: &Url) -> Result<Client, String> {
        self.policy.admits(url)?;
        if !self.policy.allow_private {
            check_url(url)?;
        }
        Ok(self.client.clone())
    }

    /// Returns the reference of a secret of the policy.
    pub(super) fn secret(&self, name: &str) -> Option<SecretRef> {
        self.policy.secrets.get(name).cloned()
    }

    /// Returns the servers that manifests have added.
    pub(super) fn servers(&self) -> Vec<Arc<McpServer>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn admit(&self, url: &str) -> Result<(), String> {
        let url = Url::parse(url).map_err(|error| format!("its manifest names no usable URL: {error}"))?;
        self.policy.admits(&url)
    }
}

fn method(name: Option<&str>) -> Result<Method, String> {
    match name {
        None => Ok(Method::default()),
        Some(name) => {
            serde_json::from_value(name.into()).map_err(|_| format!("`{name}` is no method of a tool"))
        }
    }
}
