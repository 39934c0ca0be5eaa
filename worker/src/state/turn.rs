//! A turn in progress, in four parts.

use super::bodies::Bodies;
use super::outbox::Outbox;
use super::past::TurnHistory;
use crate::flow::run::FlowRun;
use turnstone_domain::turn_write::Position;

/// A turn in progress, and the turns that follow it under the same lease.
pub struct Turn {
    /// The messages, calls and reviews so far.
    pub past: TurnHistory,
    /// The results of the phases of this turn.
    pub bodies: Bodies,
    /// The claim, its lease, and the writes that are not durable yet.
    pub outbox: Outbox,
    /// The run of the flow, when the agent is one.
    pub flow: Option<Box<FlowRun>>,
}

impl Turn {
    /// Begins the next turn under the same lease: forgets the phases, calls and reviews of the turn before.
    pub fn advance(&mut self, position: Position) {
        self.past.end_turn();
        self.bodies = Bodies::new(position.turn);
        self.outbox.advance(position);
    }
}
