//! INIT: ids, trace context, turn number (OSSA §1.1).

use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnstone_domain::{EngagementId, Phase, Timestamp};

const VERSION: i64 = 1;

/// What INIT leaves.
#[derive(Debug, Serialize, Deserialize)]
pub struct InitBody {
    /// New per turn and unique over all turns.
    pub interaction_id: String,
    /// The engagement.
    pub session_id: EngagementId,
    /// The worker process.
    pub instance_id: String,
    /// W3C `traceparent` and `tracestate` of the submitter, from the job's `meta`.
    pub trace_context: Option<Value>,
    /// W3C baggage of the submitter.
    pub baggage: Option<Value>,
    /// 1-based within the engagement.
    pub turn_number: i64,
    /// When the turn began.
    pub started_at: Timestamp,
}

/// Runs INIT.
///
/// # Errors
/// None that a test could provoke; the signature is that of every phase.
pub fn run(turn: &mut Turn) -> Result<(), Stop> {
    let sent = |name: &str| turn.job.meta.get(name).and_then(|value| value.parse::<Value>().ok());
    let trace_context = sent("traceparent")
        .map(|traceparent| json!({"traceparent": traceparent, "tracestate": sent("tracestate")}));
    let body = InitBody {
        interaction_id: turn.deps.ids.next(),
        session_id: turn.engagement.id.clone(),
        instance_id: turn.deps.options.worker_id.clone(),
        trace_context,
        baggage: sent("baggage"),
        turn_number: turn.position.turn,
        started_at: turn.deps.clock.now(),
    };
    turn.complete_phase(Phase::Init, VERSION, &body, (0, 0), Value::Null)
}
