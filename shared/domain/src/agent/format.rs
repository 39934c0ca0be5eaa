//! The formats of agent documents.

use serde::{Deserialize, Serialize};

/// The format an agent was written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentFormat {
    /// No document: the job's own `ext_agent_*` fields.
    #[default]
    AdHoc,
    /// `kind: openagentspec:v1/agent`.
    OpenAgentSpec,
    /// An OSSA manifest, `apiVersion: ossa/v0.2.x`.
    Ossa,
    /// A document of Agent Spec.
    AgentSpec,
}
