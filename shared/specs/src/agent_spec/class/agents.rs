//! Agentic components.

use super::super::version::Version::{V25_4_1, V25_4_2, V26_1_2};
use super::{COUNT, Class, Default, Family, Field, Io, Kind, SECONDS, TEXT_MAP};
use crate::shape::{Object, Others, Shape};

pub(super) static CLASSES: &[Class] = &[
    Class {
        name: "Agent",
        families: &[Family::AgenticComponent, Family::Agent],
        since: V25_4_1,
        io: Io::Properties,
        fields: &[&[
            Field::new("llm_config", Kind::One(Family::LlmConfig)),
            Field::plain("system_prompt", Shape::Text),
            Field::new("tools", Kind::Many(Family::Tool)).or(Default::List),
            Field::new("toolboxes", Kind::Many(Family::ToolBox)).or(Default::List).since(V25_4_2),
            Field::plain("human_in_the_loop", Shape::Flag).or(Default::Flag(true)).since(V25_4_2),
            Field::new("transforms", Kind::Many(Family::MessageTransform)).or(Default::List).since(V26_1_2),
        ]],
    },
    Class {
        name: "AgentSpecializationParameters",
        families: &[Family::AgentSpecializationParameters],
        since: V25_4_2,
        io: Io::Properties,
        fields: &[&[
            Field::plain("additional_instructions", Shape::Text).or_null(),
            Field::new("additional_tools", Kind::Many(Family::Tool)).or_null(),
            Field::plain("human_in_the_loop", Shape::Flag).or_null(),
        ]],
    },
    Class {
        name: "SpecializedAgent",
        families: &[Family::AgenticComponent],
        since: V25_4_2,
        io: Io::Properties,
        fields: &[&[
            Field::new("agent", Kind::One(Family::Agent)),
            Field::new("agent_specialization_parameters", Kind::One(Family::AgentSpecializationParameters)),
        ]],
    },
    Class {
        name: "Swarm",
        families: &[Family::AgenticComponent],
        since: V25_4_2,
        io: Io::Properties,
        fields: &[&[
            Field::new("first_agent", Kind::One(Family::AgenticComponent)),
            Field::new("relationships", Kind::Pairs(Family::AgenticComponent)),
            Field::plain("handoff", Shape::Any).or(Default::Text("optional")),
        ]],
    },
    Class {
        name: "ManagerWorkers",
        families: &[Family::AgenticComponent],
        since: V25_4_2,
        io: Io::Properties,
        fields: &[&[
            Field::new("group_manager", Kind::One(Family::AgenticComponent)),
            Field::new("workers", Kind::Many(Family::AgenticComponent)),
        ]],
    },
    Class {
        name: "A2AAgent",
        families: &[Family::AgenticComponent],
        since: V25_4_2,
        io: Io::Properties,
        fields: &[&[
            Field::plain("agent_url", Shape::Text),
            Field::new("connection_config", Kind::One(Family::A2AConnectionConfig)),
            Field::plain("session_parameters", Shape::Object(&A2A_SESSION)).or(Default::Map),
        ]],
    },
    Class {
        name: "A2AConnectionConfig",
        families: &[Family::A2AConnectionConfig],
        since: V25_4_2,
        io: Io::None,
        fields: &[&[
            Field::plain("timeout", SECONDS).or(Default::Number(600.0)),
            Field::plain("headers", TEXT_MAP).or_null(),
            Field::plain("verify", Shape::Flag).or(Default::Flag(true)),
            Field::plain("key_file", Shape::Text).or_null(),
            Field::plain("cert_file", Shape::Text).or_null(),
            Field::plain("ssl_ca_cert", Shape::Text).or_null(),
            super::llms::retry_policy(),
        ]],
    },
    Class {
        name: "OciAgent",
        families: &[Family::AgenticComponent],
        since: V25_4_1,
        io: Io::Properties,
        fields: &[&[
            Field::plain("agent_endpoint_id", Shape::Text),
            Field::new("client_config", Kind::One(Family::OciClientConfig)),
            super::llms::retry_policy(),
        ]],
    },
];

static A2A_SESSION: Object = Object {
    rule: "AS-06",
    others: Others::Warned,
    fields: &[
        crate::shape::Field::new("timeout", SECONDS),
        crate::shape::Field::new("poll_interval", SECONDS),
        crate::shape::Field::new("max_retries", COUNT),
    ],
};
