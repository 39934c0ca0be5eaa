//! Agents on other servers.
//!
//! `oagent://host/path/name` (OAS-11, OAS-14): the definition is read by GET. An engagement begins by POST
//! and is polled at the address in the answer, all on the same host. `[remote.agents.<name>]`: a tool of that
//! name, called by the Agent Protocol or by A2A.
//!
//! With every protocol, a remote agent is one kind of tool. The journal records the handle of its work before
//! the wait, so a worker that takes over waits for the same work.

mod a2a;
mod agent;
mod agent_protocol;
mod book;
pub mod config;
mod conversing;
mod engaging;
mod named;
mod oci_agent;
mod wire;

pub use agent::{RemoteAgent, RemoteCancellation};
pub use book::RemoteBook;
pub use config::RemoteConfig;
pub(super) use conversing::{ConversingAgent, cancel};
pub(super) use oci_agent::OciAgentTool;

use serde_json::json;
use turnstone_domain::agent::ToolSpec;
use turnstone_specs::agent_spec::model::Head;

/// Returns the tool for an agent that a document of Agent Spec names. Its arguments are the worker's own: message,
/// context and task. Its server may begin another task for the same message.
fn spec_of_document(head: &Head) -> ToolSpec {
    ToolSpec {
        name: head.name.clone(),
        description: head.description.clone().unwrap_or_default(),
        input_schema: json!({"type": "object"}),
        idempotent: false,
    }
}
