//! An agent as the delegate of another one.

use super::{AgentDefinition, Restriction};

impl AgentDefinition {
    /// Returns this agent under the limits of the agent that calls it: the smaller delegation depth applies.
    /// A delegate of a guarded agent counts as guarded itself, and the filters of both apply. A supervisor that its document does not name
    /// is the agent that calls it.
    #[must_use]
    pub fn working_for(mut self, other: &Self) -> Self {
        self.limits.max_delegation_depth =
            self.limits.max_delegation_depth.min(other.limits.max_delegation_depth);
        self.guardrails.for_guarded |= other.guardrails.output.is_some() || other.guardrails.for_guarded;
        self.guardrails.for_restricted |= other.guardrails.for_restricted;
        self.safety.restrict_by(&other.safety);
        if let Some(contact) =
            self.errors.escalation.as_mut().filter(|one| one.supervisor && one.target.is_empty())
        {
            contact.target.clone_from(&other.name);
        }
        self
    }

    /// Returns this agent with its words shown by its caller alone, if the caller may refuse them: by a restriction of
    /// outputs (OAS-35), or by a filter that blocks content (RS-08).
    #[must_use]
    pub fn restricted_by(mut self, other: &Self, output: &Restriction) -> Self {
        self.guardrails.for_restricted |= output.restricts() || other.safety.blocks_content();
        self
    }

    /// Returns this agent for a handoff. Its answer becomes the other agent's answer, in the form that the
    /// other one demands.
    #[must_use]
    pub fn taking_over_from(self, other: &Self) -> Self {
        let mut agent = self.working_for(other);
        if !other.output.is_free() {
            agent.output = other.output.clone();
        }
        agent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::safety::{
        Category, ContentRule, FilterAction, PersonalKind, PersonalRule, Safety, Threshold,
    };

    fn personal(kinds: &[PersonalKind], action: FilterAction) -> Option<PersonalRule> {
        Some(PersonalRule { kinds: kinds.to_vec(), action })
    }

    fn content(category: Category, threshold: Threshold, action: FilterAction) -> Option<ContentRule> {
        Some(ContentRule { categories: vec![category], threshold, action })
    }

    fn with(safety: Safety) -> AgentDefinition {
        AgentDefinition { safety, ..AgentDefinition::default() }
    }

    #[test]
    fn the_filters_of_both_apply_to_a_delegate() {
        use PersonalKind::{Email, Phone};
        let caller = with(Safety {
            content: content(Category::Hate, Threshold::Low, FilterAction::Block),
            personal: personal(&[Email], FilterAction::Redact),
            output: None,
        });
        let plain = AgentDefinition::default().working_for(&caller);
        assert_eq!(plain.safety, caller.safety);
        let own = with(Safety {
            content: content(Category::Violence, Threshold::High, FilterAction::Warn),
            personal: personal(&[Phone, Email], FilterAction::Warn),
            output: personal(&[Phone], FilterAction::Block),
        });
        let both = own.clone().working_for(&caller).safety;
        let found = both.content.unwrap();
        assert_eq!(found.categories, [Category::Violence, Category::Hate]);
        assert_eq!((found.threshold, found.action), (Threshold::Low, FilterAction::Block));
        assert_eq!(both.personal, personal(&[Phone, Email], FilterAction::Redact));
        assert_eq!(both.output, own.safety.output, "the caller has none");
        assert_eq!(caller.working_for(&AgentDefinition::default()).safety.output, None);
    }

    #[test]
    fn a_delegate_that_may_be_refused_is_shown_by_its_caller_alone() {
        let (free, nothing) = (AgentDefinition::default(), Restriction::default());
        let checked = Restriction { assertion: Some("true".to_owned()), ..Restriction::default() };
        let shown = |agent: &AgentDefinition| !agent.guardrails.is_shown_by_its_caller();
        let below = |caller: &AgentDefinition, output: &Restriction| {
            AgentDefinition::default().working_for(caller).restricted_by(caller, output)
        };
        assert!(shown(&below(&free, &nothing)));
        let restricted = below(&free, &checked);
        assert!(
            !shown(&restricted) && restricted.guardrails.hold_back() && !restricted.guardrails.for_guarded
        );
        assert!(!shown(&below(&restricted, &nothing)), "nor is a delegate of it");
        let blocking = content(Category::Hate, Threshold::Low, FilterAction::Block);
        let blocks = with(Safety { content: blocking, ..Safety::default() });
        assert!(!shown(&below(&blocks, &nothing)));
        let warning = content(Category::Hate, Threshold::Low, FilterAction::Warn);
        assert!(shown(&below(&with(Safety { content: warning, ..Safety::default() }), &nothing)));
    }
}
