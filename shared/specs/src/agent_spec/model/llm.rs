//! Models and how they are reached.

use super::build::{self, Builder};
use super::{Head, OracleDatabaseConnectionConfig, RetryPolicy};
use crate::agent_spec::component::Component as Read;
use crate::agent_spec::secret::Secret;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A model.
#[derive(Clone, Debug)]
pub struct LlmConfig {
    /// Id, name and description.
    pub head: Head,
    /// The model's id.
    pub model_id: String,
    /// The maker of the model.
    pub provider: Option<String>,
    /// The API that it is reached by, as `chat_completions`.
    pub api_type: Option<String>,
    /// Its address.
    pub url: Option<String>,
    /// Its key.
    pub api_key: Option<Secret>,
    /// The parameters of every call; nulls left out.
    pub default_generation_parameters: Map<String, Value>,
    /// The retries of calls.
    pub retry_policy: Option<RetryPolicy>,
    /// The kind of access.
    pub kind: LlmKind,
}

impl LlmConfig {
    /// Returns the key, wherever the class keeps it.
    #[must_use]
    pub fn key(&self) -> Option<&Secret> {
        match &self.kind {
            LlmKind::GeminiConfig(GeminiAuthConfig::GeminiAIStudioAuthConfig { api_key }) => {
                api_key.as_ref().or(self.api_key.as_ref())
            }
            _ => self.api_key.as_ref(),
        }
    }
}

/// The kind of access.
#[derive(Clone, Debug)]
pub enum LlmKind {
    /// Any.
    LlmConfig {
        /// The provider of the API.
        api_provider: Option<String>,
    },
    /// One that is reached as OpenAI's are.
    OpenAiCompatibleConfig {
        /// The client's key.
        key_file: Option<Secret>,
        /// The client's certificate.
        cert_file: Option<Secret>,
        /// The authority that the server's certificate is of.
        ca_file: Option<Secret>,
        /// `VllmConfig`, `OllamaConfig` or `OpenAiCompatibleConfig`.
        class: &'static str,
    },
    /// One of OpenAI.
    OpenAiConfig,
    /// One of Google.
    GeminiConfig(GeminiAuthConfig),
    /// One of Oracle's cloud.
    OciGenAiConfig {
        /// The compartment.
        compartment_id: String,
        /// `ON_DEMAND` or `DEDICATED`.
        serving_mode: String,
        /// The access to the cloud.
        client_config: Box<OciClientConfig>,
        /// The store of conversations.
        conversation_store_id: Option<String>,
    },
    /// One that an Oracle database calls.
    DbmsVectorChainLlmConfig {
        /// The place of its execution.
        host: Option<String>,
        /// The credential of the database.
        credential_name: Option<String>,
        /// Seconds until a call is given up.
        transfer_timeout: Option<u64>,
        /// The database.
        connection_config: Option<Box<OracleDatabaseConnectionConfig>>,
    },
}

/// The credentials of a client of Google.
#[derive(Clone, Debug)]
pub enum GeminiAuthConfig {
    /// With a key.
    GeminiAIStudioAuthConfig {
        /// The key.
        api_key: Option<Secret>,
    },
    /// With credentials of its cloud.
    GeminiVertexAIAuthConfig {
        /// The project.
        project_id: Option<String>,
        /// The location.
        location: String,
        /// A path, or the credentials.
        credentials: Option<Secret>,
    },
}

/// The access to Oracle's cloud.
#[derive(Clone, Debug)]
pub struct OciClientConfig {
    /// Id, name and description.
    pub head: Head,
    /// Its endpoint.
    pub service_endpoint: String,
    /// `API_KEY`, `SECURITY_TOKEN`, `INSTANCE_PRINCIPAL` or `RESOURCE_PRINCIPAL`.
    pub auth_type: String,
    /// The profile in the file.
    pub auth_profile: Option<String>,
    /// The file.
    pub auth_file_location: Option<Secret>,
}

impl Builder {
    pub(super) fn llm(&mut self, read: &Arc<Read>) -> Option<Arc<LlmConfig>> {
        if let Some(known) = self.llms.get(&read.id) {
            return Some(known.clone());
        }
        let mut parameters = build::map(&read.value("default_generation_parameters"));
        parameters.retain(|_, value| !value.is_null());
        let built = Arc::new(LlmConfig {
            head: Head::of(read),
            model_id: read.text("model_id"),
            provider: read.optional_text("provider"),
            api_type: read.optional_text("api_type"),
            url: read.optional_text("url"),
            api_key: read.secret("api_key").cloned(),
            default_generation_parameters: parameters,
            retry_policy: build::retries(read),
            kind: kind(read)?,
        });
        self.llms.insert(read.id.clone(), built.clone());
        Some(built)
    }
}

fn kind(read: &Read) -> Option<LlmKind> {
    let file = |field: &str| read.secret(field).cloned();
    Some(match read.class.name {
        "LlmConfig" => LlmKind::LlmConfig { api_provider: read.optional_text("api_provider") },
        "OpenAiConfig" => LlmKind::OpenAiConfig,
        "GeminiConfig" => LlmKind::GeminiConfig(gemini(read.one("auth")?)),
        "OciGenAiConfig" => LlmKind::OciGenAiConfig {
            compartment_id: read.text("compartment_id"),
            serving_mode: read.text("serving_mode"),
            client_config: Box::new(oci_client(read.one("client_config")?)?),
            conversation_store_id: read.optional_text("conversation_store_id"),
        },
        "DbmsVectorChainLlmConfig" => LlmKind::DbmsVectorChainLlmConfig {
            host: read.optional_text("host"),
            credential_name: read.optional_text("credential_name"),
            transfer_timeout: read.value("transfer_timeout").as_u64(),
            connection_config: match read.one("connection_config") {
                Some(connection) => Some(Box::new(super::store::oracle(connection)?)),
                None => None,
            },
        },
        class => LlmKind::OpenAiCompatibleConfig {
            key_file: file("key_file"),
            cert_file: file("cert_file"),
            ca_file: file("ca_file"),
            class,
        },
    })
}

fn gemini(read: &Read) -> GeminiAuthConfig {
    match read.class.name {
        "GeminiVertexAIAuthConfig" => GeminiAuthConfig::GeminiVertexAIAuthConfig {
            project_id: read.optional_text("project_id"),
            location: read.text("location"),
            credentials: read.secret("credentials").cloned(),
        },
        _ => GeminiAuthConfig::GeminiAIStudioAuthConfig { api_key: read.secret("api_key").cloned() },
    }
}

/// Reads how Oracle's cloud is reached.
pub(super) fn oci_client(read: &Read) -> Option<OciClientConfig> {
    Some(OciClientConfig {
        head: Head::of(read),
        service_endpoint: read.text("service_endpoint"),
        auth_type: read.text("auth_type"),
        auth_profile: read.optional_text("auth_profile"),
        auth_file_location: read.secret("auth_file_location").cloned(),
    })
}
