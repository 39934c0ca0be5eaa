//! Definitions that came with an imported engagement, and the reasons for which they may run here.

use super::AgentDefinition;
use crate::digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The reason why a definition that was imported may run here. The server sets it; whatever a document says is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// A registered agent was equal when work was made of it. It is compared again before further work is made.
    Registered,
    /// It passed the checks of a push by the importer, or a fork gave an admitted one another prompt.
    Checked,
    /// A key that this server knows signed its document.
    Signed,
}

impl AgentDefinition {
    /// Returns true if it came with an import, and nothing admits it: it must not run.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.imported && self.admitted.is_none()
    }

    /// Returns it without the marks of this server and without secrets: equal definitions are equal on all servers.
    #[must_use]
    pub fn portable(&self) -> Self {
        let flow = self.flow.clone().map(|flow| flow.with_values(BTreeMap::new()));
        Self { imported: false, admitted: None, flow, ..self.clone() }
    }

    /// Returns the digest of its portable form, computed from its content.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn portable_digest(&self) -> serde_json::Result<String> {
        serde_json::to_string(&self.portable()).map(|text| digest::of_text(&text))
    }

    /// Returns true if it is `base`, or what a job or a place among delegates may make of `base`. They choose the model and
    /// the form of the answer, and narrow everything else.
    #[must_use]
    pub fn is_narrowed_from(&self, base: &Self) -> bool {
        let (own, mut base) = (self.portable(), base.portable());
        if !own.fits_within(&base) {
            return false;
        }
        base.model.models.clone_from(&own.model.models);
        base.model.provider.clone_from(&own.model.provider);
        (base.model.temperature, base.model.max_tokens) = (own.model.temperature, own.model.max_tokens);
        base.limits.token_budget = own.limits.token_budget;
        base.limits.max_delegation_depth = own.limits.max_delegation_depth;
        base.spending.cost_budget = own.spending.cost_budget;
        base.tool_choice = own.tool_choice;
        base.output.clone_from(&own.output);
        base.guardrails.for_guarded |= own.guardrails.for_guarded;
        base.guardrails.for_restricted |= own.guardrails.for_restricted;
        base.capabilities.clone_from(&own.capabilities);
        base.toolsets.clone_from(&own.toolsets);
        own == base
    }

    /// Returns true if its limits are no higher than those of `base`, and each of its tools is one of `base`.
    fn fits_within(&self, base: &Self) -> bool {
        use super::ToolChoice::{None as Never, Required};
        let is_at_most =
            |own: Option<i64>, most: Option<i64>| most.is_none_or(|most| own.is_some_and(|own| own <= most));
        let is_whole = self.capabilities == base.capabilities && self.toolsets == base.toolsets;
        let is_picked = self.toolsets.is_empty()
            && self.capabilities.iter().all(|own| {
                let mut of_set = base.toolsets.iter().filter(|set| set.covers(&own.name));
                base.capabilities.contains(own) || of_set.any(|set| set.capability(own.name.clone()) == *own)
            });
        let chooses = match base.tool_choice {
            Never => self.tool_choice == Never,
            Required => self.tool_choice == Required || self.tool_choice == Never,
            super::ToolChoice::Auto => true,
        };
        (is_whole || is_picked)
            && chooses
            && is_at_most(self.model.max_tokens, base.model.max_tokens)
            && is_at_most(self.limits.token_budget, base.limits.token_budget)
            && is_at_most(self.spending.cost_budget, base.spending.cost_budget)
            && self.limits.max_delegation_depth <= base.limits.max_delegation_depth
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        AgentFields, AgentFormat, Capability, FlowDocument, Limits, ToolDeclaration, Toolset,
    };
    use super::*;
    use serde_json::json;

    fn base() -> AgentDefinition {
        let mut pay = Capability { static_identity: Some("till".into()), ..Capability::named("pay") };
        pay.input_restriction.require_review = Some("ann".into());
        let like = Capability::named("hub.*");
        AgentDefinition {
            name: "till".into(),
            format: AgentFormat::OpenAgentSpec,
            instructions: "You pay.".into(),
            capabilities: vec![pay, Capability::named("search")],
            toolsets: vec![Toolset { server: "hub".into(), like }],
            limits: Limits { token_budget: Some(1000), ..Limits::default() },
            ..AgentDefinition::default()
        }
    }

    fn imported(agent: AgentDefinition) -> AgentDefinition {
        AgentDefinition { imported: true, ..agent }
    }

    #[test]
    fn the_marks_of_a_server_are_no_part_of_the_portable_digest() {
        let digest = base().portable_digest().unwrap();
        assert_eq!(imported(base()).portable_digest().unwrap(), digest);
        let other = AgentDefinition { instructions: "You steal.".into(), ..base() };
        assert_ne!(other.portable_digest().unwrap(), digest);
    }

    #[test]
    fn a_definition_that_a_job_narrowed_is_known_by_its_base() {
        let tools = ["pay", "hub.read"].map(|name| ToolDeclaration {
            name: name.into(),
            description: None,
            parameters: None,
        });
        let fields = AgentFields {
            model: Some("small".into()),
            token_budget: Some(10),
            tools: Some(tools.into()),
            output_schema: Some(json!({})),
            max_delegation_depth: Some(2),
            ..AgentFields::default()
        };
        let narrowed = base().narrowed_by(fields).unwrap();
        assert!(imported(narrowed).is_narrowed_from(&base()));
        assert!(imported(base()).is_narrowed_from(&base()));
    }

    #[test]
    fn a_definition_that_differs_is_not_narrowed() {
        let changed = |change: fn(&mut AgentDefinition)| {
            let mut agent = imported(base());
            change(&mut agent);
            agent
        };
        for (what, agent) in [
            ("a prompt", changed(|agent| agent.instructions.push('!'))),
            ("no review", changed(|agent| agent.capabilities[0].input_restriction = Default::default())),
            (
                "another identity",
                changed(|agent| agent.capabilities[1].static_identity = Some("till".into())),
            ),
            ("a further tool", changed(|agent| agent.capabilities.push(Capability::named("rm")))),
            ("a higher limit", changed(|agent| agent.limits.token_budget = Some(1001))),
            ("no limit", changed(|agent| agent.limits.token_budget = None)),
            ("another format", changed(|agent| agent.format = AgentFormat::AdHoc)),
            ("a flow", changed(|agent| agent.flow = Some(FlowDocument::default()))),
        ] {
            assert!(!agent.is_narrowed_from(&base()), "{what}");
        }
    }

    #[test]
    fn only_an_admission_lets_an_import_run() {
        assert!(!base().is_foreign() && imported(base()).is_foreign());
        assert!(!AgentDefinition { admitted: Some(Admission::Checked), ..imported(base()) }.is_foreign());
    }
}
