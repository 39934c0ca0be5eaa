//! Flows, their nodes and edges.

use super::super::version::Version::{V25_4_1, V25_4_2, V26_1_2};
use super::{Class, Default, Family, Field, Io, Kind, TEXT_MAP};
use crate::shape::Shape;

const fn node(name: &'static str, fields: &'static [&'static [Field]]) -> Class {
    Class { name, families: &[Family::Node], since: V25_4_1, io: Io::Node, fields }
}

const fn since(version: super::super::version::Version, class: Class) -> Class {
    Class { since: version, ..class }
}

pub(super) static CLASSES: &[Class] = &[
    Class {
        name: "Flow",
        families: &[Family::AgenticComponent, Family::Flow],
        since: V25_4_1,
        io: Io::Properties,
        fields: &[&[
            Field::new("start_node", Kind::One(Family::Node)),
            Field::new("nodes", Kind::Many(Family::Node)),
            Field::new("control_flow_connections", Kind::Many(Family::ControlFlowEdge)),
            Field::new("data_flow_connections", Kind::Many(Family::DataFlowEdge)).or_null(),
        ]],
    },
    Class {
        name: "ControlFlowEdge",
        families: &[Family::ControlFlowEdge],
        since: V25_4_1,
        io: Io::None,
        fields: &[&[
            Field::new("from_node", Kind::One(Family::Node)),
            Field::plain("from_branch", Shape::Text).or_null(),
            Field::new("to_node", Kind::One(Family::Node)),
        ]],
    },
    Class {
        name: "DataFlowEdge",
        families: &[Family::DataFlowEdge],
        since: V25_4_1,
        io: Io::None,
        fields: &[&[
            Field::new("source_node", Kind::One(Family::Node)),
            Field::plain("source_output", Shape::Text),
            Field::new("destination_node", Kind::One(Family::Node)),
            Field::plain("destination_input", Shape::Text),
        ]],
    },
    node("StartNode", &[]),
    node("EndNode", &[&[Field::plain("branch_name", Shape::Text).or(Default::Text("next"))]]),
    node(
        "LlmNode",
        &[&[
            Field::new("llm_config", Kind::One(Family::LlmConfig)),
            Field::plain("prompt_template", Shape::Text),
        ]],
    ),
    node("ToolNode", &[&[Field::new("tool", Kind::One(Family::Tool))]]),
    node("AgentNode", &[&[Field::new("agent", Kind::One(Family::AgenticComponent))]]),
    node("FlowNode", SUBFLOW),
    node("BranchingNode", &[&[Field::plain("mapping", TEXT_MAP)]]),
    node("MapNode", MAP),
    since(V25_4_2, node("ParallelMapNode", MAP)),
    since(
        V25_4_2,
        node("ParallelFlowNode", &[&[Field::new("subflows", Kind::Many(Family::Flow)).or(Default::List)]]),
    ),
    since(V26_1_2, node("CatchExceptionNode", SUBFLOW)),
    node("ApiNode", &[super::tools::REQUEST]),
    node("InputMessageNode", &[&[Field::plain("message", Shape::Text).or_null()]]),
    node("OutputMessageNode", &[&[Field::plain("message", Shape::Text)]]),
];

const SUBFLOW: &[&[Field]] = &[&[Field::new("subflow", Kind::One(Family::Flow))]];

const MAP: &[&[Field]] = &[&[
    Field::new("subflow", Kind::One(Family::Flow)),
    Field::plain("reducers", Shape::Table(&Shape::OneOf(&["append", "sum", "average", "max", "min"])))
        .or_null(),
]];
