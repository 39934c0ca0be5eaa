//! Separate duties: the principal that submitted a job does not answer its reviews.

/// The agents whose jobs have separate duties.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SeparateDuties {
    /// True for every agent.
    pub of_all: bool,
    /// The names of agents.
    pub of: Vec<String>,
}

impl SeparateDuties {
    /// Returns true if no agent has them.
    #[must_use]
    pub fn are_none(&self) -> bool {
        !self.of_all && self.of.is_empty()
    }

    /// Returns true if the jobs of this agent have them.
    #[must_use]
    pub fn apply_to(&self, agent: &str) -> bool {
        self.of_all || self.of.iter().any(|one| one == agent)
    }
}
