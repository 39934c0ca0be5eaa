//! An agent as the delegate of another one.

use super::{AgentDefinition, Restriction};

impl AgentDefinition {
    /// Returns this agent under the limits of the agent that calls it: the smaller delegation depth applies.
    /// A delegate of an agent that has an output guardrail or blocks what leaves counts as guarded: its caller alone shows
    /// its words. What its caller redacts, it redacts. A supervisor that its document does not name is the agent that
    /// calls it.
    #[must_use]
    pub fn working_for(mut self, other: &Self) -> Self {
        self.limits.max_delegation_depth =
            self.limits.max_delegation_depth.min(other.limits.max_delegation_depth);
        self.guardrails.for_guarded |=
            other.guardrails.output.is_some() || other.guardrails.for_guarded || other.safety.blocks();
        self.guardrails.for_restricted |= other.guardrails.for_restricted;
        self.safety.restrict_by(&other.safety.redactions());
        if let Some(contact) =
            self.errors.escalation.as_mut().filter(|one| one.supervisor && one.target.is_empty())
        {
            contact.target.clone_from(&other.name);
        }
        self
    }

    /// Returns this agent with its words shown by its caller alone, if a restriction of the caller may refuse them (OAS-35).
    #[must_use]
    pub fn restricted_by(mut self, output: &Restriction) -> Self {
        self.guardrails.for_restricted |= output.restricts();
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

    fn content(action: FilterAction) -> Option<ContentRule> {
        Some(ContentRule { categories: vec![Category::Hate], threshold: Threshold::Low, action })
    }

    fn with(safety: Safety) -> AgentDefinition {
        AgentDefinition { safety, ..AgentDefinition::default() }
    }

    #[test]
    fn a_delegate_redacts_what_its_caller_redacts() {
        use PersonalKind::{Email, Phone};
        let caller = with(Safety {
            content: content(FilterAction::Block),
            personal: personal(&[Email], FilterAction::Redact),
            output: personal(&[Phone], FilterAction::Block),
        });
        let plain = AgentDefinition::default().working_for(&caller).safety;
        assert_eq!((plain.content, plain.output), (None, None), "the caller itself blocks");
        assert_eq!(plain.personal, personal(&[Email], FilterAction::Redact));
        let own =
            with(Safety { personal: personal(&[Phone, Email], FilterAction::Warn), ..Safety::default() });
        let both = own.working_for(&caller).safety;
        assert_eq!(both.personal, personal(&[Phone, Email], FilterAction::Redact));
    }

    #[test]
    fn the_rules_of_two_agents_are_joined() {
        let mut own = Safety { content: content(FilterAction::Warn), ..Safety::default() };
        let block = ContentRule {
            categories: vec![Category::Violence],
            threshold: Threshold::High,
            action: FilterAction::Block,
        };
        own.restrict_by(&Safety { content: Some(block), ..Safety::default() });
        let found = own.content.unwrap();
        assert_eq!(found.categories, [Category::Hate, Category::Violence]);
        assert_eq!((found.threshold, found.action), (Threshold::Low, FilterAction::Block));
    }

    #[test]
    fn a_delegate_that_may_be_refused_is_shown_by_its_caller_alone() {
        let (free, nothing) = (AgentDefinition::default(), Restriction::default());
        let checked = Restriction { assertion: Some("true".to_owned()), ..Restriction::default() };
        let shown = |agent: &AgentDefinition| !agent.guardrails.is_shown_by_its_caller();
        let below = |caller: &AgentDefinition, output: &Restriction| {
            AgentDefinition::default().working_for(caller).restricted_by(output)
        };
        assert!(shown(&below(&free, &nothing)));
        let restricted = below(&free, &checked);
        assert!(
            !shown(&restricted) && restricted.guardrails.hold_back() && !restricted.guardrails.for_guarded
        );
        assert!(!shown(&below(&restricted, &nothing)), "nor is a delegate of it");
        let blocks = |action| {
            [
                Safety { content: content(action), ..Safety::default() },
                Safety { personal: personal(&[PersonalKind::Email], action), ..Safety::default() },
                Safety { output: personal(&[PersonalKind::Email], action), ..Safety::default() },
            ]
        };
        assert!(blocks(FilterAction::Block).map(with).iter().all(|caller| !shown(&below(caller, &nothing))));
        assert!(blocks(FilterAction::Warn).map(with).iter().all(|caller| shown(&below(caller, &nothing))));
    }
}
