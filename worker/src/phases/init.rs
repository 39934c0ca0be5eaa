//! INIT: ids, trace context, turn number (OSSA §1.1).

use crate::state::{Outbox, Stop, trace};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnstone_domain::{JobId, Phase, Timestamp, trace_context};
use turnstone_telemetry::propagation;

const VERSION: i64 = 3;

/// The result of INIT.
#[derive(Debug, Serialize, Deserialize)]
pub struct InitBody {
    /// New per turn and unique over all turns, in every scope that the manifest may demand (RS-02).
    pub interaction_id: String,
    /// The caller's session, or the engagement (RS-03).
    pub session_id: String,
    /// The worker process that began the turn (RS-04).
    pub instance_id: String,
    /// The id of the caller's request: the job.
    pub request_id: JobId,
    /// W3C `traceparent` and `tracestate` of the submitter, from the job's `meta`.
    pub trace_context: Option<Value>,
    /// W3C baggage of the submitter.
    pub baggage: Option<BTreeMap<String, String>>,
    /// The number of the turn within the engagement, from 1.
    pub turn_number: i64,
    /// The time at which the turn began.
    pub started_at: Timestamp,
    /// W3C `traceparent` of the claim's span, for a worker that resumes it; since version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
}

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
        request_id: outbox.claimed.job.id.clone(),
        trace_context: traceparent
            .map(|traceparent| json!({"traceparent": traceparent, "tracestate": tracestate})),
        baggage,
        turn_number: outbox.position.turn,
        started_at: outbox.claimed.deps.clock.now(),
        span: propagation::traceparent(&outbox.claimed.trace.invoke),
    };
    outbox.interaction_id.clone_from(&body.interaction_id);
    outbox.complete_phase(Phase::Init, VERSION, &body)
}
