//! What an agent is when it works for another one.

use super::AgentDefinition;

impl AgentDefinition {
    /// This agent under the rules of the one that asks it: it may go no deeper, and what the other one may not show it may not
    /// show either.
    #[must_use]
    pub fn working_for(mut self, other: &Self) -> Self {
        self.limits.max_delegation_depth =
            self.limits.max_delegation_depth.min(other.limits.max_delegation_depth);
        self.guardrails.for_guarded |= other.guardrails.hold_back();
        self
    }

    /// The same, when the answer of this agent is the answer of the other one: in its form.
    #[must_use]
    pub fn taking_over_from(self, other: &Self) -> Self {
        let mut agent = self.working_for(other);
        if !other.output.is_free() {
            agent.output = other.output.clone();
        }
        agent
    }
}
