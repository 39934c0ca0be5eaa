//! Agents that work together.

use super::{AgenticComponent, Head};
use crate::agent_spec::property::Property;

/// Agents that call one another, or hand the conversation over.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// Id, name and description.
    pub head: Head,
    /// Its inputs.
    pub inputs: Vec<Property>,
    /// Its outputs.
    pub outputs: Vec<Property>,
    /// The agent that begins.
    pub first_agent: AgenticComponent,
    /// The permitted calls: caller and recipient.
    pub relationships: Vec<(AgenticComponent, AgenticComponent)>,
    /// The use of handoffs.
    pub handoff: Handoff,
}

/// The use of handoffs between the agents of a swarm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handoff {
    /// It calls others and waits for their answer.
    Never,
    /// It may do either.
    Optional,
    /// It hands over, and never waits for an answer.
    Always,
}

/// A manager that assigns work to workers.
#[derive(Clone, Debug)]
pub struct ManagerWorkers {
    /// Id, name and description.
    pub head: Head,
    /// Its inputs.
    pub inputs: Vec<Property>,
    /// Its outputs.
    pub outputs: Vec<Property>,
    /// The manager; only it talks to the user.
    pub group_manager: AgenticComponent,
    /// The workers.
    pub workers: Vec<AgenticComponent>,
}
