//! Tools that a manifest defines itself, within the limits of `[tool_policy]`.

use super::Tool;
use super::address_guard::{check_form, check_url};
use super::config::{Method, SchemaText, ToolConfig};
use super::header::{HeaderText, SecretHeader};
use super::http::HttpTool;
use super::mcp::{McpConfig, McpServer};
use super::outbound;
use super::policy::ToolPolicy;
use super::program::Programs;
use super::remote::{self, ConversingAgent, OciAgentTool};
use super::url_template::UrlTemplate;
use super::{RemoteCancellation, ToolError};
use crate::cache::Cache;
use crate::flow::RemoteComponent;
use crate::model::declared::{self, ServiceAccount};
use crate::model::{Model, NamedModel};
use crate::oci::OciSigner;
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_blocking::in_place;
use turnstone_domain::agent::{Capability, Endpoint};
use turnstone_domain::{CallId, Clock, digest};
use turnstone_outbound::OwnAddresses;
use turnstone_specs::agent_spec::Secret as Secretive;
use turnstone_specs::agent_spec::model::{
    ClientTransport, GeminiAuthConfig, LlmConfig, LlmKind, OciClientConfig, TransportKind,
};
use turnstone_specs::{AddressCheck, Reach};
use turnstone_telemetry::Secret;
use url::Url;

/// The most tools in the cache; beyond that it is emptied.
const KEPT: usize = 256;

/// The most MCP servers that manifests may add to one worker.
const MOST_SERVERS: usize = 32;

/// The tools and servers that manifests have added so far.
pub struct Declared {
    policy: ToolPolicy,
    client: Client,
    own: OwnAddresses,
    programs: Programs,
    clock: Arc<dyn Clock>,
    tools: Cache<Arc<dyn Tool>>,
    servers: Mutex<BTreeMap<String, Arc<McpServer>>>,
    models: Cache<NamedModel>,
}

impl Declared {
    pub fn new(
        policy: ToolPolicy,
        own: OwnAddresses,
        programs: Programs,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let client =
            if policy.allow_private { outbound::open_client()? } else { outbound::guarded_client()? };
        Ok(Self {
            policy,
            client,
            own,
            programs,
            clock,
            tools: Cache::of(KEPT),
            servers: Mutex::default(),
            models: Cache::of(KEPT),
        })
    }

    /// Returns the programs and addresses that documents may use.
    pub fn reach(self: &Arc<Self>) -> Reach {
        let addresses = Some(Arc::clone(self) as Arc<dyn AddressCheck>);
        Reach {
            addresses,
            commands: self.policy.allowed_commands.clone(),
            private: self.policy.allow_private,
        }
    }

    /// Returns the tool behind the endpoint of a capability.
    pub fn tool(&self, capability: &Capability, endpoint: &Endpoint) -> Result<Arc<dyn Tool>, String> {
        let key = digest::of_json(&json!([
            capability.name,
            capability.description,
            capability.input_schema,
            endpoint
        ]));
        self.tools
            .get_or(key, || Ok(Arc::new(in_place(|| self.made(capability, endpoint))?) as Arc<dyn Tool>))
    }

    /// Returns the remote agent that a document names.
    pub fn agent(&self, agent: &RemoteComponent) -> Result<Arc<dyn Tool>, String> {
        let key = digest::of_json(&match agent {
            RemoteComponent::A2a(agent) => {
                let way = &agent.connection_config;
                let files = [&way.key_file, &way.cert_file, &way.ssl_ca_cert];
                json!([
                    agent.head.name,
                    agent.head.description,
                    agent.agent_url,
                    agent.timeout,
                    agent.poll_interval,
                    agent.max_retries,
                    way.headers,
                    files
                ])
            }
            RemoteComponent::Oci(agent) => {
                json!([
                    agent.head.name,
                    agent.head.description,
                    agent.agent_endpoint_id,
                    oci_access(&agent.client_config)
                ])
            }
        });
        self.tools.get_or(key, || self.made_agent(agent))
    }

    fn made_agent(&self, agent: &RemoteComponent) -> Result<Arc<dyn Tool>, String> {
        match agent {
            RemoteComponent::A2a(agent) => {
                let address = agent_address(&agent.agent_url)?;
                let way = &agent.connection_config;
                let files = [&way.key_file, &way.cert_file, &way.ssl_ca_cert];
                let client = self.client_with(&address, files.map(Option::as_deref))?;
                Ok(Arc::new(ConversingAgent::new(agent, address, client)))
            }
            RemoteComponent::Oci(agent) => {
                let address = Url::parse(&agent.client_config.service_endpoint).map_err(|error| {
                    format!("the `service_endpoint` of {} is no URL: {error}", agent.head.name)
                })?;
                let client = self.client_for(&address)?;
                Ok(Arc::new(OciAgentTool::new(agent, address, client, self.signer(&agent.client_config)?)))
            }
        }
    }

    /// Cancels the work of a remote agent that a document names, without the headers of the document.
    pub async fn cancel(
        &self,
        place: &str,
        call: &CallId,
        handle: Option<&Value>,
    ) -> Result<RemoteCancellation, ToolError> {
        let address = agent_address(place).map_err(ToolError::Refused)?;
        let client = self.client_for(&address).map_err(ToolError::Refused)?;
        remote::cancel(address, client, call, handle).await
    }

    fn made(&self, capability: &Capability, endpoint: &Endpoint) -> Result<HttpTool, String> {
        let url = UrlTemplate::parse(&endpoint.url)
            .map_err(|error| format!("its manifest names no usable URL: {error}"))?;
        let client = self.client_for(url.base())?;
        let mut headers = BTreeMap::new();
        if let Some(auth) = &endpoint.auth {
            let secret = self.policy.secret(&auth.secret, url.base())?.clone();
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
        HttpTool::new(&capability.name, config, client)
    }

    /// Returns the MCP server at a URL.
    pub fn server(&self, url: &str) -> Result<Arc<McpServer>, String> {
        let (address, client) = self.admitted(url)?;
        let config = McpConfig::of_url(url.to_owned(), self.policy.allow_private);
        // The manifest names the server's tools, so this name appears only in logs.
        self.server_of(url.to_owned(), address.host_str().unwrap_or_default(), config, client)
    }

    /// Returns a URL of a document with the client for it.
    fn admitted(&self, url: &str) -> Result<(Url, Client), String> {
        let address =
            Url::parse(url).map_err(|error| format!("its manifest names no usable URL: {error}"))?;
        let client = self.client_for(&address)?;
        Ok((address, client))
    }

    /// Returns the server that is known by this key, or makes it.
    fn server_of(
        &self,
        key: String,
        name: &str,
        config: McpConfig,
        client: Client,
    ) -> Result<Arc<McpServer>, String> {
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
        let server = McpServer::new(name, config, client, self.programs.clone(), Arc::clone(&self.clock))?;
        servers.insert(key, Arc::clone(&server));
        Ok(server)
    }

    /// Returns the MCP server behind a transport of Agent Spec.
    pub fn transport(&self, transport: &ClientTransport) -> Result<Arc<McpServer>, String> {
        let mut client = self.client.clone();
        let (config, parts) = match &transport.kind {
            // The configuration may allow less than it did when the document was registered.
            TransportKind::StdioTransport(asked) => {
                let admitted = self.policy.allowed_commands.admit(asked).map_err(|refused| {
                    let why: Vec<String> = refused.into_iter().map(|refusal| refusal.why).collect();
                    format!("the transport `{}` {}", transport.head.name, why.join("; it "))
                })?;
                let parts = json!([admitted.program, admitted.args, admitted.env]);
                (McpConfig::of_document(admitted), parts)
            }
            TransportKind::SSETransport(remote) | TransportKind::StreamableHTTPTransport(remote) => {
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
                let tls = remote.tls.as_ref();
                let files =
                    tls.map_or([None; 3], |tls| [&tls.key_file, &tls.cert_file, &tls.ca_file].map(file_of));
                let parts = json!([remote.url, sse, remote.headers, hidden, files]);
                let url = Url::parse(&remote.url)
                    .map_err(|error| format!("its document names no usable URL: {error}"))?;
                client = self.client_with(&url, files)?;
                (McpConfig { sse, headers, ..config }, parts)
            }
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds, bounded")]
        let timeout_ms = (transport.read_timeout_seconds * 1000.0).clamp(1.0, 3_600_000.0) as u64;
        let name = transport.head.name.clone();
        let key = digest::of_json(&json!([name, parts, timeout_ms]));
        self.server_of(key, &name, McpConfig { timeout_ms, ..config }, client)
    }

    /// The model that a document names by its address, with the name of its provider: the host.
    pub fn model(&self, config: &LlmConfig) -> Result<NamedModel, String> {
        let address = declared::address(config)?;
        let key = config.key().and_then(|key| key.reveal());
        let of = json!([
            address.as_str(),
            key,
            config.api_type,
            config.default_generation_parameters,
            access(config)
        ]);
        self.models.get_or(digest::of_json(&of), || self.made_model(config, &address))
    }

    fn made_model(&self, config: &LlmConfig, address: &Url) -> Result<NamedModel, String> {
        let files = match &config.kind {
            LlmKind::OpenAiCompatibleConfig { key_file, cert_file, ca_file, .. } => {
                [key_file, cert_file, ca_file].map(|file| file.as_ref().and_then(file_of))
            }
            _ => [None; 3],
        };
        let client = self.client_with(address, files)?;
        let port = address.port().map(|port| format!(":{port}")).unwrap_or_default();
        let name = format!("{}{port}", address.host_str().unwrap_or_default());
        let model: Arc<dyn Model> = match &config.kind {
            LlmKind::OciGenAiConfig { client_config, .. } => {
                declared::oci_model(&name, config, self.signer(client_config)?, client)?
            }
            LlmKind::GeminiConfig(GeminiAuthConfig::GeminiVertexAIAuthConfig { credentials, .. }) => {
                let account = self.account(credentials.as_ref())?;
                self.client_for(&account.token_uri)?;
                declared::vertex_model(&name, config, (address, client), account, Arc::clone(&self.clock))?
            }
            _ => in_place(|| declared::model(&name, config, address, client))?,
        };
        Ok((name, model))
    }

    /// The key of a profile of Oracle's cloud.
    fn signer(&self, config: &OciClientConfig) -> Result<Arc<OciSigner>, String> {
        let file = config.auth_file_location.as_ref().and_then(file_of).unwrap_or_default();
        let file = self.policy.admits_file(file)?;
        let profile = config.auth_profile.as_deref().unwrap_or("DEFAULT");
        let by_token = config.auth_type == "SECURITY_TOKEN";
        in_place(|| OciSigner::read(&file, profile, by_token, Arc::clone(&self.clock))).map(Arc::new)
    }

    /// The service account of credentials, which are given or in a file.
    fn account(&self, credentials: Option<&Secretive>) -> Result<ServiceAccount, String> {
        match credentials.and_then(Secretive::reveal) {
            Some(Value::String(text)) if !text.trim_start().starts_with('{') => {
                let path = self.policy.admits_file(text)?;
                let text = in_place(|| std::fs::read_to_string(&path));
                let text = text.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
                ServiceAccount::read(&serde_json::from_str(&text).unwrap_or_default())
            }
            Some(Value::String(text)) => {
                ServiceAccount::read(&serde_json::from_str(text).unwrap_or_default())
            }
            Some(credentials) => ServiceAccount::read(credentials),
            None => Err("the model of Vertex AI has no `credentials`".to_owned()),
        }
    }

    /// The client for a URL, which proves itself by these files: a key, a certificate, and an authority.
    fn client_with(&self, url: &Url, files: [Option<&str>; 3]) -> Result<Client, String> {
        let client = self.client_for(url)?;
        if files == [None; 3] {
            return Ok(client);
        }
        let read = |path: Option<&str>| match path {
            None => Ok(None),
            Some(path) => {
                let path = self.policy.admits_file(path)?;
                let read = std::fs::read(&path).map(Some);
                read.map_err(|error| format!("{} cannot be read: {error}", path.display()))
            }
        };
        in_place(|| {
            let [key, certificate, authority] = files;
            let (Some(key), Some(certificate)) = (read(key)?, read(certificate)?) else {
                return Err("the document names no key and certificate; both are needed".to_owned());
            };
            let proof = [certificate, b"\n".to_vec(), key].concat();
            let to = (&self.own, url, self.policy.allow_private);
            outbound::proving_client(&proof, read(authority)?.as_deref(), to)
        })
    }

    /// The client for a URL that a document names.
    ///
    /// # Errors
    /// A sentence that says what to add to the configuration.
    pub fn client_for(&self, url: &Url) -> Result<Client, String> {
        self.policy.admits(url)?;
        let look = if self.policy.allow_private { check_form } else { check_url };
        look(url)?;
        outbound::client_avoiding(&self.own, url, self.policy.allow_private, &self.client)
    }

    /// Returns the policy.
    pub fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    /// Returns the servers that manifests have added.
    pub fn servers(&self) -> Vec<Arc<McpServer>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl AddressCheck for Declared {
    fn check_tool(&self, capability: &Capability, endpoint: &Endpoint) -> Result<(), String> {
        self.made(capability, endpoint).map(drop)
    }

    fn check_address(&self, address: &str) -> Result<(), String> {
        self.admitted(address).map(drop)
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// The file that a field names.
fn file_of(secret: &Secretive) -> Option<&str> {
    secret.reveal().and_then(Value::as_str)
}

/// Everything that a client of Oracle's cloud depends on.
fn oci_access(config: &OciClientConfig) -> Value {
    let file = config.auth_file_location.as_ref().and_then(file_of);
    json!([config.service_endpoint, config.auth_type, config.auth_profile, file])
}

/// Everything that the access to a model depends on, besides its address and key.
fn access(config: &LlmConfig) -> Value {
    match &config.kind {
        LlmKind::OpenAiCompatibleConfig { key_file, cert_file, ca_file, .. } => {
            let files = [key_file, cert_file, ca_file].map(|file| file.as_ref().and_then(file_of));
            json!(files)
        }
        LlmKind::OciGenAiConfig { compartment_id, serving_mode, client_config, .. } => {
            json!([compartment_id, serving_mode, config.provider, config.model_id, oci_access(client_config)])
        }
        LlmKind::GeminiConfig(GeminiAuthConfig::GeminiVertexAIAuthConfig {
            project_id, credentials, ..
        }) => {
            json!([project_id, credentials.as_ref().and_then(|given| given.reveal())])
        }
        _ => Value::Null,
    }
}

/// Reads the address of a remote agent; without a scheme it is that of a server without TLS.
fn agent_address(text: &str) -> Result<Url, String> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    Url::parse(&with_scheme).map_err(|error| format!("the `agent_url` {text} is no URL: {error}"))
}

fn method(name: Option<&str>) -> Result<Method, String> {
    match name {
        None => Ok(Method::default()),
        Some(name) => {
            serde_json::from_value(name.into()).map_err(|_| format!("`{name}` is no method of a tool"))
        }
    }
}
