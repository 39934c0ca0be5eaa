//! Events of a turn.

use super::outbox::Outbox;
use serde::Serialize;
use serde_json::{Value, to_value};
use turnstone_domain::{EventName, NewEvent};

/// The identity of a turn and its worker.
#[derive(Serialize)]
pub(super) struct Named<'a> {
    interaction_id: &'a str,
    instance_id: String,
    /// The agent that took over, when it speaks instead of the engagement's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    /// The node of a flow, with the nodes around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
}

impl Outbox {
    /// Records an event; it becomes durable with the next barrier.
    pub fn event(&mut self, name: EventName, mut data: Value) {
        self.claimed.screen_event(&mut data);
        self.claimed.hold_back(&mut data);
        if name.names_turn()
            && let (Value::Object(data), Ok(Value::Object(named))) = (&mut data, to_value(self.named()))
        {
            data.extend(named);
        }
        let at = self.claimed.deps.clock.now();
        let event = NewEvent { name, turn: self.position.turn, data: data.into(), at };
        self.pending.events.push(event);
    }

    /// Returns the fields of events that name their turn: the turn and the instance.
    pub(super) fn named(&self) -> Named<'_> {
        let handoff_agent =
            self.position.handoff_agent.as_deref().filter(|name| *name == self.claimed.agent.name);
        Named {
            interaction_id: &self.interaction_id,
            instance_id: self.claimed.instance_id(),
            agent: handoff_agent,
            node: self.place.as_deref(),
        }
    }
}
