//! `spec.identity`: the form of ids, and the parts of the caller's context that the agent adopts (RS-01 …
//! RS-05).

use crate::tree::Node;
use turnstone_domain::agent::{Identity, TraceFormat};
use turnstone_domain::ids::IdForm;

/// Reads the section. The scope of an id does not change it: in every scope an interaction is a turn and an
/// instance is a process (RS-A8).
pub(super) fn read(section: &Node) -> Identity {
    let form = |id: &str| match section.at_path(&[id, "generation"]).and_then(Node::text) {
        Some("ulid") => IdForm::Ulid,
        // Custom forms are not supported (RS-A13).
        _ if section.get(id).is_some() => IdForm::UuidV4,
        _ => IdForm::default(),
    };
    let flag = |key: &str| section.at_path(&["propagation", key]).and_then(Node::flag).unwrap_or(true);
    let context = section.at_path(&["propagation", "trace_context"]);
    let format = match context.and_then(Node::text) {
        Some("b3") => TraceFormat::B3,
        Some("jaeger") => TraceFormat::Jaeger,
        _ => TraceFormat::W3c,
    };
    Identity {
        instance_id: form("instance_id"),
        session_id: form("session_id"),
        interaction_id: form("interaction_id"),
        inherit_session: flag("inherit_session"),
        trace_context: context.is_none_or(|node| node.text() != Some("none")),
        trace_format: format,
        baggage: flag("baggage"),
    }
}
