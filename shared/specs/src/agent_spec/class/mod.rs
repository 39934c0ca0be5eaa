//! The classes of components: their fields, defaults, and the version that brought them.

mod agents;
mod llms;
mod nodes;
mod stores;
mod tools;

use super::version::Version;
use crate::shape::Shape;
use serde_json::{Value, json};

/// A class that documents name in `component_type`.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    pub(crate) families: &'static [Family],
    pub(crate) since: Version,
    /// Its inputs and outputs, if any.
    pub(crate) io: Io,
    pub(crate) fields: &'static [&'static [Field]],
}

/// The inputs, outputs and branches of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Io {
    None,
    Properties,
    /// A node of a flow has branches as well.
    Node,
}

/// A kind of components that a field accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Any,
    AgenticComponent,
    Agent,
    AgentSpecializationParameters,
    Flow,
    Node,
    ControlFlowEdge,
    DataFlowEdge,
    LlmConfig,
    Tool,
    ToolBox,
    MCPToolSpec,
    ClientTransport,
    AuthConfig,
    OAuthClientConfig,
    MessageTransform,
    Datastore,
    OracleDatabaseConnectionConfig,
    PostgresDatabaseConnectionConfig,
    OciClientConfig,
    GeminiAuthConfig,
    A2AConnectionConfig,
}

/// A field of a class beyond those that every component has.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) since: Version,
    pub(crate) required: bool,
    pub(crate) nullable: bool,
    pub(crate) default: Default,
    /// `true` when an export writes it.
    pub(crate) exported: bool,
}

/// The values that a field accepts.
pub(crate) enum Kind {
    Plain(Shape),
    /// A plain value that exports never show.
    Secret(Shape),
    One(Family),
    Many(Family),
    /// A list of pairs.
    Pairs(Family),
    /// A list of names and `MCPToolSpec`.
    ToolFilter,
    /// A map from names of collections to the schemas of their entities.
    Entities,
}

/// The value of a field that a document leaves out.
#[derive(Clone, Copy)]
pub(crate) enum Default {
    Null,
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(&'static str),
    List,
    Map,
}

impl Default {
    pub(crate) fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Flag(flag) => json!(flag),
            Self::Integer(number) => json!(number),
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
            Self::List => json!([]),
            Self::Map => json!({}),
        }
    }
}

impl Field {
    pub(super) const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            since: Version::V25_4_1,
            required: true,
            nullable: false,
            default: Default::Null,
            exported: true,
        }
    }

    pub(super) const fn plain(name: &'static str, shape: Shape) -> Self {
        Self::new(name, Kind::Plain(shape))
    }

    pub(super) const fn since(mut self, version: Version) -> Self {
        self.since = version;
        self
    }

    /// The value when the field is left out.
    pub(super) const fn or(mut self, default: Default) -> Self {
        self.required = false;
        self.default = default;
        self
    }

    /// Null is a value of it, and the one when it is left out.
    pub(super) const fn or_null(mut self) -> Self {
        self.required = false;
        self.nullable = true;
        self
    }

    pub(super) const fn unexported(mut self) -> Self {
        self.exported = false;
        self
    }
}

impl Class {
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        ALL.iter().copied().flatten().find(|class| class.name == name)
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().copied().flatten().map(|class| class.name)
    }

    pub(crate) fn is(&self, family: Family) -> bool {
        family == Family::Any || self.families.contains(&family)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.fields.iter().copied().flatten()
    }
}

static ALL: [&[Class]; 5] = [agents::CLASSES, nodes::CLASSES, llms::CLASSES, tools::CLASSES, stores::CLASSES];

/// Classes that have no components themselves.
pub(crate) const ABSTRACT: [&str; 14] = [
    "AgenticComponent",
    "AuthConfig",
    "ClientTransport",
    "Component",
    "ComponentWithIO",
    "Datastore",
    "GeminiAuthConfig",
    "MessageTransform",
    "Node",
    "OciClientConfig",
    "RemoteAgent",
    "RemoteTransport",
    "Tool",
    "ToolBox",
];

const TEXTS: Shape = Shape::List(&Shape::Text);
const TEXT_MAP: Shape = Shape::Table(&Shape::Text);
const ANY_MAP: Shape = Shape::Table(&Shape::Any);
const COUNT: Shape = Shape::Integer(0, i64::MAX);
const SECONDS: Shape = Shape::Number(0.0, 3_155_760_000.0);
