//! Events of a turn.

use super::outbox::Outbox;
use serde_json::{Value, json, to_value};
use turnstone_domain::NewEvent;
use turnstone_domain::event::{EventBody, TurnIdentity};

impl Outbox {
    /// Records an event; it becomes durable with the next barrier.
    pub fn event(&mut self, body: &EventBody) {
        let (name, mut data) = (body.name(), json!(body));
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
    pub(super) fn named(&self) -> TurnIdentity {
        let handoff_agent = self.position.handoff_agent.as_ref();
        TurnIdentity {
            interaction_id: Some(self.interaction_id.clone()),
            instance_id: Some(self.claimed.instance_id()),
            agent: handoff_agent.filter(|name| **name == self.claimed.agent.name).cloned(),
            node: self.place.clone(),
        }
    }
}
