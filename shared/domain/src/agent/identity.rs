//! The form of the ids of a turn, and what of the caller's context it takes over (OSSA `spec.identity`).

use crate::ids::IdForm;
use serde::{Deserialize, Serialize};

/// The form of ids and what is taken over of the caller's context. The default is that of an agent that says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Of the worker process.
    pub instance_id: IdForm,
    /// Of the engagement.
    pub session_id: IdForm,
    /// Of a turn.
    pub interaction_id: IdForm,
    /// Whether the session that the caller names is taken over.
    pub inherit_session: bool,
    /// Whether the caller's trace context is taken over.
    pub trace_context: bool,
    /// Whether the caller's baggage is taken over.
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
            baggage: true,
        }
    }
}
