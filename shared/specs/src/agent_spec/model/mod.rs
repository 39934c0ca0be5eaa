//! The components of a document as a runtime uses them: typed, complete, and shared where the document shares them.
//!
//! Every name is the one of the specification. Defaults are filled in, inputs and outputs are those that hold.

mod agent;
mod build;
mod flow;
mod llm;
mod node;
mod remote_agent;
mod retry;
mod store;
mod team;
mod tool;
mod toolbox;
mod transform;
mod transport;

pub use agent::{Agent, AgentSpecializationParameters, AgenticComponent, SpecializedAgent};
pub use flow::{ControlFlowEdge, DataFlow, DataFlowEdge, Flow};
pub use llm::{GeminiAuthConfig, LlmConfig, LlmKind, OciClientConfig};
pub use node::{Node, NodeKind, Reducer};
pub use remote_agent::{A2AAgent, A2AConnectionConfig, OciAgent};
pub use retry::{Jitter, RetryPolicy};
pub use store::{Datastore, DatastoreKind, OracleDatabaseConnectionConfig, PostgresDatabaseConnectionConfig};
pub use team::{Handoff, ManagerWorkers, Swarm};
pub use tool::{Request, Tool, ToolKind};
pub use toolbox::{MCPToolBox, MCPToolSpec, ToolFilter};
pub use transform::{MessageTransform, Summary, TransformKind};
pub use transport::{ClientTransport, MutualTls, OAuthConfig, RemoteTransport, StdioProgram, TransportKind};

pub(super) use build::Builder;

use super::component;
use serde_json::Value;
use std::sync::Arc;

/// The fields of every component.
#[derive(Clone, PartialEq, Debug)]
pub struct Head {
    /// Its id, unique in its document.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Data of its author's tools.
    pub metadata: Value,
}

impl Head {
    fn of(component: &component::Component) -> Self {
        Self {
            id: component.id.clone(),
            name: component.name.clone(),
            description: component.description.clone(),
            metadata: component.metadata.clone(),
        }
    }
}

/// The component that a document is.
#[derive(Clone, Debug)]
pub enum Component {
    /// One that can be talked to: an agent, a flow, a team.
    AgenticComponent(AgenticComponent),
    /// A node of a flow.
    Node(Arc<Node>),
    /// A tool.
    Tool(Arc<Tool>),
    /// A source of tools.
    ToolBox(Arc<MCPToolBox>),
    /// A model.
    LlmConfig(Arc<LlmConfig>),
    /// A way to an MCP server.
    ClientTransport(Arc<ClientTransport>),
    /// A store.
    Datastore(Arc<Datastore>),
    /// A transform of messages.
    MessageTransform(Arc<MessageTransform>),
    /// A component that only has a meaning within others, by the name of its class.
    Part(&'static str),
}
