//! The form of the ids of a turn, and the parts of the caller's context that it inherits (OSSA `spec.identity`).

use crate::ids::IdForm;
use serde::{Deserialize, Serialize};

/// The format in which an agent reads its caller's trace context, and sends it on (OSSA
/// `identity.propagation.trace_context`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// W3C trace context, or the formats that the operator configured.
    #[default]
    W3c,
    /// The headers of B3: `b3` and `x-b3-*`.
    B3,
    /// The header of Jaeger: `uber-trace-id`.
    Jaeger,
}

impl TraceFormat {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The form of ids, and the parts of the caller's context that are inherited. The default applies to an agent without
/// `spec.identity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Of the worker process.
    pub instance_id: IdForm,
    /// Of the engagement.
    pub session_id: IdForm,
    /// Of a turn.
    pub interaction_id: IdForm,
    /// True if the caller's session is inherited.
    pub inherit_session: bool,
    /// True if the caller's trace context is inherited.
    pub trace_context: bool,
    /// The format of the trace context.
    #[serde(skip_serializing_if = "TraceFormat::is_default")]
    pub trace_format: TraceFormat,
    /// True if the caller's baggage is inherited.
    pub baggage: bool,
}

impl Default for Identity {
    fn default() -> Self {
        let form = IdForm::default();
        Self {
            instance_id: form,
            session_id: form,
            interaction_id: form,
            inherit_session: true,
            trace_context: true,
            trace_format: TraceFormat::default(),
            baggage: true,
        }
    }
}
