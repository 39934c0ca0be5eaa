//! INIT: ids, trace context, turn number (OSSA §1.1).

use crate::state::{Outbox, Stop, trace};
use serde_json::{Value, json};
use turnstone_domain::checkpoint::InitBody;
use turnstone_domain::trace_context;
use turnstone_telemetry::propagation;

/// Runs INIT.
///
/// # Errors
/// None that a test could provoke; the signature is that of every phase.
pub fn run(outbox: &mut Outbox) -> Result<(), Stop> {
    let identity = &outbox.claimed.agent.identity;
    let sent = |name: &str| {
        outbox.claimed.job.meta.get(name).and_then(|value| value.parse::<Value>().ok()).unwrap_or_default()
    };
    let context = trace::sent(&outbox.claimed);
    let traceparent = trace::submitted(&outbox.claimed, &context);
    let tracestate = context.get("tracestate").cloned().filter(|_| traceparent.is_some());
    let baggage = sent("baggage").as_str().filter(|_| identity.baggage).and_then(trace_context::baggage);
    let session_id = outbox.claimed.session_id();
    let body = InitBody {
        interaction_id: identity.interaction_id.next(&*outbox.claimed.deps.ids),
        session_id,
        instance_id: outbox.claimed.instance_id(),
        request_id: Some(outbox.claimed.job.id.clone()),
        trace_context: traceparent
            .map(|traceparent| json!({"traceparent": traceparent, "tracestate": tracestate})),
        baggage,
        turn_number: outbox.position.turn,
        started_at: outbox.claimed.deps.clock.now(),
        span: propagation::traceparent(&outbox.claimed.trace.invoke),
    };
    outbox.interaction_id.clone_from(&body.interaction_id);
    outbox.complete_phase(&body)
}
