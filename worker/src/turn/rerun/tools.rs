//! The tools of a recorded turn: their recorded descriptions, without anything to call.

use crate::state::Claimed;
use crate::state::tools::{Bindings, ResolBody, ResolvedTool};
use crate::tool::uncalled::Uncalled;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::Checkpoint;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::record::EngagementRecord;

/// Returns the result of RESOL in a recorded turn; `None` when its checkpoint cannot be read.
pub(super) fn found(
    claimed: &Claimed,
    record: &EngagementRecord,
    recorded: &Checkpoint,
) -> Option<(ResolBody, Bindings)> {
    let body = recorded.read::<ResolBody>()?;
    let mut bindings = Bindings::default();
    for resolved in body.resolved.iter().filter(|tool| claimed.delegate(&tool.name).is_none()) {
        bindings.insert_recorded(&claimed.agent, resolved.clone(), Arc::new(tool(record, resolved)));
    }
    Some((body, bindings))
}

/// Returns a tool that exists only in the record.
fn tool(record: &EngagementRecord, resolved: &ResolvedTool) -> Uncalled {
    let known = record.tools.iter().find(|spec| spec.name == resolved.name).cloned();
    let spec = known.unwrap_or_else(|| ToolSpec {
        name: resolved.name.clone(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        idempotent: false,
    });
    Uncalled {
        spec,
        timeout: Duration::from_millis(resolved.timeout_ms),
        transport: resolved.transport,
        asks_user: false,
        refusal: "nothing is called when a record is run again",
    }
}
