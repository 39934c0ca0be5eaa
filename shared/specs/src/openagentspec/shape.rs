//! The shape of an OpenAgentSpec document (OAS-15). Every map is closed.

use crate::shape::{Field, Object, Others, Shape};

const RULE: &str = "OAS-15";

const fn closed(fields: &'static [Field]) -> Object {
    Object { rule: RULE, others: Others::Refused, fields }
}

pub(super) static AGENT: Object = closed(&[
    Field::new("kind", Shape::OneOf(&["openagentspec:v1/agent"])).required().rule("OAS-16"),
    Field::new("name", Shape::Text).required().rule("OAS-17"),
    Field::new("description", Shape::Filled).required().rule("OAS-18"),
    Field::new("intent", Shape::Filled).required().rule("OAS-19"),
    Field::new("owner", Shape::Filled).required().rule("OAS-20"),
    // The capabilities are checked one by one: their keys are references.
    Field::new("capabilities", Shape::Table(&Shape::Any)).or_null(),
    Field::new("guardrails", Shape::Object(&GUARDRAILS)).or_null(),
    Field::new("exposes", Shape::Table(&Shape::Filled)).or_null().rule("OAS-48"),
    Field::new("lifespan", Shape::Object(&LIFESPAN)).or_null(),
]);

pub(super) static CAPABILITY: Object = closed(&[
    Field::new("collect_results", Shape::Flag),
    Field::new("user_identity", Shape::Flag),
    Field::new("static_identity", Shape::Filled).or_null(),
    Field::new("input_restriction", Shape::Object(&RESTRICTION)).or_null(),
    Field::new("output_restriction", Shape::Object(&RESTRICTION)).or_null(),
]);

static RESTRICTION: Object = closed(&[
    Field::new("require_review", Shape::Filled).or_null().rule("OAS-30"),
    Field::new("assertion", Shape::Filled).or_null().rule("OAS-33"),
]);

static GUARDRAILS: Object = closed(&[
    Field::new("input", Shape::Object(&GUARDRAIL)).or_null(),
    Field::new("output", Shape::Object(&GUARDRAIL)).or_null(),
]);

static GUARDRAIL: Object = closed(&[
    Field::new("tool_name", Shape::Filled).required().rule("OAS-38"),
    Field::new("assertion", Shape::Filled).required().rule("OAS-38"),
]);

static LIFESPAN: Object = closed(&[
    Field::new("retain_memory", Shape::Flag),
    Field::new("short_circuit", Shape::Integer(1, u32::MAX as i64)).rule("OAS-52"),
]);
