//! Agents that run elsewhere.

use super::{Head, OciClientConfig, RetryPolicy};
use crate::agent_spec::property::Property;
use std::collections::BTreeMap;

/// An agent that speaks A2A.
#[derive(Clone, Debug)]
pub struct A2AAgent {
    /// Id, name and description.
    pub head: Head,
    /// Its inputs.
    pub inputs: Vec<Property>,
    /// Its outputs.
    pub outputs: Vec<Property>,
    /// Its address.
    pub agent_url: String,
    /// The connection to it.
    pub connection_config: A2AConnectionConfig,
    /// Seconds until its answer is given up.
    pub timeout: f64,
    /// Seconds between two polls of a task.
    pub poll_interval: f64,
    /// The most polls that may fail in a row.
    pub max_retries: u64,
}

/// A connection to an agent that speaks A2A.
#[derive(Clone, Debug)]
pub struct A2AConnectionConfig {
    /// Seconds until a request is given up.
    pub timeout: f64,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Checks the server's certificate.
    pub verify: bool,
    /// The client's key.
    pub key_file: Option<String>,
    /// The client's certificate.
    pub cert_file: Option<String>,
    /// The authority that the server's certificate is of.
    pub ssl_ca_cert: Option<String>,
    /// The retries of requests.
    pub retry_policy: Option<RetryPolicy>,
}

/// An agent of Oracle's cloud.
#[derive(Clone, Debug)]
pub struct OciAgent {
    /// Id, name and description.
    pub head: Head,
    /// Its inputs.
    pub inputs: Vec<Property>,
    /// Its outputs.
    pub outputs: Vec<Property>,
    /// Its endpoint.
    pub agent_endpoint_id: String,
    /// The access to the cloud.
    pub client_config: OciClientConfig,
    /// The retries of requests.
    pub retry_policy: Option<RetryPolicy>,
}
