//! Events of a turn.

use super::state::Turn;
use crate::flow;
use crate::phases::init::instance_id;
use serde::Serialize;
use serde_json::{Value, to_value};
use turnstone_domain::feed::OssaEvent;
use turnstone_domain::{EventName, NewEvent, RawJson};

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
    node: Option<String>,
}

impl Turn {
    /// Records an event; it becomes durable with the next barrier.
    pub fn event(&mut self, name: EventName, mut data: Value) {
        self.screen_event(&mut data);
        self.hold_back(&mut data);
        if OssaEvent::ALL.iter().any(|form| form.is_form_of(name))
            && let (Value::Object(data), Ok(Value::Object(named))) = (&mut data, to_value(self.named()))
        {
            data.extend(named);
        }
        let at = self.deps.clock.now();
        let event = NewEvent { name, turn: self.position.turn, data: data.into(), at };
        self.pending().events.push(event);
    }

    /// Returns the fields of events that OSSA defines as well: the turn and the instance.
    pub(super) fn named(&self) -> Named<'_> {
        let handoff_agent = self.position.handoff_agent.as_deref().filter(|name| *name == self.agent.name);
        let (interaction_id, instance_id) = (self.interaction_id.as_str(), instance_id(self));
        Named { interaction_id, instance_id, agent: handoff_agent, node: flow::place(self) }
    }

    /// Returns the facts of an event, without those that its readers may not see.
    pub(super) fn shown<F: Serialize>(&self, facts: &F) -> serde_json::Result<RawJson> {
        if !self.agent.safety.holds_back() && !self.agent.guardrails.hold_back() {
            return RawJson::written(facts);
        }
        let mut facts = to_value(facts)?;
        self.screen_event(&mut facts);
        self.hold_back(&mut facts);
        Ok(RawJson::of(&facts))
    }
}
