//! Rules of the configuration for the calls of tools. They hold for every agent, and for jobs without one, beside what an
//! agent's document demands.

use super::{AgentDefinition, AgentFormat, Restriction, capability_name};
use crate::policy::Expression;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The last part of a section's name that means every tool of an MCP server.
const EVERY_TOOL: &str = ".*";

/// A section `[tool_rules.<name>]`.
///
/// ```toml
/// [tool_rules.pay]
/// tenants = ["acme"]
/// agents = ["buyer"]
/// input_restriction = { assertion = "recent.pay.inputs.amount < 500", require_review = "finance" }
///
/// [tool_rules."github.*"]
/// agents = ["triage"]
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolRules {
    /// The tenants whose jobs may call the tool. Left out, the jobs of all tenants and of none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Vec<String>>,
    /// The registered agents that may call it. Left out, all agents and jobs without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Checked before each call, beside the restriction of the agent.
    pub input_restriction: RuleRestriction,
    /// Checked before the result of a call is used, beside the restriction of the agent.
    pub output_restriction: RuleRestriction,
}

/// A restriction in the configuration, in the words of OpenAgentSpec.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleRestriction {
    /// CEL over the Engagement object, in which the call has the name of the section; anything but `true` refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assertion: Option<String>,
    /// The user or the group who must approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_review: Option<String>,
    /// The time to answer, in milliseconds; by default that of all reviews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
}

/// A restriction that the configuration adds to the one of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddedRestriction {
    /// The name of the section: the key of the call in the Engagement object that the assertion reads.
    pub section: String,
    /// The restriction.
    pub restriction: Restriction,
}

/// The sections `[tool_rules.<name>]`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolRuleBook(BTreeMap<String, ToolRules>);

/// The caller of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolCaller<'a> {
    /// The tenant of the job; empty if it has none.
    pub tenant: &'a str,
    /// The name of the registered agent; `None` for a job without one.
    pub agent: Option<&'a str>,
}

impl AgentDefinition {
    /// Returns the name under which rules know the agent. The definition of a job without an agent has the name of the
    /// job's type, and that of an imported engagement any name: rules know neither.
    #[must_use]
    pub fn known_name(&self) -> Option<&str> {
        (self.format != AgentFormat::AdHoc && !self.imported).then_some(self.name.as_str())
    }
}

impl RuleRestriction {
    fn restricts(&self) -> bool {
        self.assertion.is_some() || self.require_review.is_some()
    }

    fn added(&self, section: &str) -> Option<AddedRestriction> {
        let Self { assertion, require_review, answer_within_ms } = self.clone();
        let restriction = Restriction { assertion, require_review, answer_within_ms, added: Vec::new() };
        self.restricts().then(|| AddedRestriction { section: section.to_owned(), restriction })
    }

    fn check(&self, section: &str, reviewers: Option<&[String]>) -> Result<(), String> {
        if let Some(source) = &self.assertion {
            Expression::compile(source, &[section]).map_err(|error| format!("assertion: {error}"))?;
        }
        match &self.require_review {
            Some(name) if name.contains("://") => Err(format!(
                "require_review: `{name}` is an agent; the reviewer of a rule is a user or a group"
            )),
            Some(name) if name.is_empty() || name.contains(char::is_whitespace) => {
                Err("require_review: a reviewer is the id or the address of a user, without spaces"
                    .to_owned())
            }
            Some(name) if reviewers.is_some_and(|known| !known.contains(name)) => {
                Err(format!("require_review: there is no user or group `{name}` in [reviews]"))
            }
            None if self.answer_within_ms.is_some() => {
                Err("answer_within_ms: there is no require_review to be answered".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl ToolRules {
    fn admits(&self, caller: ToolCaller<'_>) -> bool {
        let is_among = |allowed: &Option<Vec<String>>, name: Option<&str>| {
            allowed.as_ref().is_none_or(|all| name.is_some_and(|name| all.iter().any(|one| one == name)))
        };
        is_among(&self.tenants, Some(caller.tenant).filter(|tenant| !tenant.is_empty()))
            && is_among(&self.agents, caller.agent)
    }

    fn restricts(&self) -> bool {
        self.input_restriction.restricts() || self.output_restriction.restricts()
    }
}

impl ToolRuleBook {
    /// Returns true if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if rules restrict the calls of any tool.
    #[must_use]
    pub fn restricts_any(&self) -> bool {
        self.0.values().any(ToolRules::restricts)
    }

    /// Returns the rules for a tool: `NAME` for one of the registry, `SERVER.NAME` for one of an MCP server.
    fn of<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = (&'a str, &'a ToolRules)> {
        let fits = move |section: &str| match section.strip_suffix(EVERY_TOOL) {
            Some(server) => tool.split_once('.').is_some_and(|(of, _)| alike(of, server)),
            None => section == tool || (section.contains('.') && alike(section, tool)),
        };
        self.0
            .iter()
            .map(|(section, rules)| (section.as_str(), rules))
            .filter(move |(section, _)| fits(section))
    }

    /// Returns true if this caller may call the tool.
    #[must_use]
    pub fn admits(&self, tool: &str, caller: ToolCaller<'_>) -> bool {
        self.of(tool).all(|(_, rules)| rules.admits(caller))
    }

    /// Returns true if this agent may call the tool for some tenant.
    #[must_use]
    pub fn admits_agent(&self, tool: &str, agent: &str) -> bool {
        let is_admitted =
            |rules: &ToolRules| rules.agents.as_ref().is_none_or(|all| all.iter().any(|one| one == agent));
        self.of(tool).all(|(_, rules)| is_admitted(rules))
    }

    /// Returns true if this agent may call any tool of an MCP server for some tenant.
    #[must_use]
    pub fn admits_agent_to_server(&self, server: &str, agent: &str) -> bool {
        self.0
            .get(&format!("{server}{EVERY_TOOL}"))
            .is_none_or(|rules| rules.agents.as_ref().is_none_or(|all| all.iter().any(|one| one == agent)))
    }

    /// Returns those of these tools and MCP servers that an agent may call for some tenant; all for an unknown agent.
    #[must_use]
    pub fn visible_to<'a>(
        &self,
        agent: Option<&str>,
        tools: &'a [String],
        servers: &'a [String],
    ) -> (Vec<&'a str>, Vec<&'a str>) {
        let tools = tools.iter().map(String::as_str);
        let servers = servers.iter().map(String::as_str);
        let Some(agent) = agent else { return (tools.collect(), servers.collect()) };
        (
            tools.filter(|tool| self.admits_agent(tool, agent)).collect(),
            servers.filter(|server| self.admits_agent_to_server(server, agent)).collect(),
        )
    }

    /// Returns true if rules restrict the calls of this tool.
    #[must_use]
    pub fn restricts(&self, tool: &str) -> bool {
        self.of(tool).any(|(_, rules)| rules.restricts())
    }

    /// Returns true if rules name agents. Then the tools of a document depend on its agent's name.
    #[must_use]
    pub fn names_agents(&self) -> bool {
        self.0.values().any(|rules| rules.agents.is_some())
    }

    /// Adds the restrictions of a tool to those of an agent: input, output.
    pub fn add_to(&self, tool: &str, input: &mut Restriction, output: &mut Restriction) {
        for (section, rules) in self.of(tool) {
            input.added.extend(rules.input_restriction.added(section));
            output.added.extend(rules.output_restriction.added(section));
        }
    }

    /// Checks the rules. `has_tool` and `has_server` know the tools and the MCP servers; `reviewers` are the names that may
    /// review, `None` for all.
    ///
    /// # Errors
    /// A sentence that names the section.
    pub fn check(
        &self,
        has_tool: impl Fn(&str) -> bool,
        has_server: impl Fn(&str) -> bool,
        reviewers: Option<&[String]>,
    ) -> Result<(), String> {
        for (section, rules) in &self.0 {
            let of_server =
                section.split_once('.').is_some_and(|(server, tool)| has_server(server) && !tool.is_empty());
            if !has_tool(section) && !of_server {
                return Err(format!(
                    "[tool_rules.\"{section}\"] there is no such tool; write the name of one of [tools] or a built-in one, \
                     `SERVER.TOOL` or `SERVER.*` for [mcp.SERVER]"
                ));
            }
            for (key, restriction) in [
                ("input_restriction", &rules.input_restriction),
                ("output_restriction", &rules.output_restriction),
            ] {
                restriction
                    .check(section, reviewers)
                    .map_err(|problem| format!("[tool_rules.\"{section}\"] {key}.{problem}"))?;
            }
        }
        Ok(())
    }
}

/// Returns true if two names are the same in the form of capability names.
fn alike(one: &str, other: &str) -> bool {
    capability_name(one) == capability_name(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn book(rules: serde_json::Value) -> ToolRuleBook {
        serde_json::from_value(rules).unwrap()
    }

    fn caller<'a>(tenant: &'a str, agent: Option<&'a str>) -> ToolCaller<'a> {
        ToolCaller { tenant, agent }
    }

    #[test]
    fn rules_name_tenants_and_agents() {
        let book = book(
            json!({"pay": {"tenants": ["acme"]}, "hub.*": {"agents": ["triage"]}, "hub.read_all": {"tenants": ["acme"]}}),
        );
        for (tool, tenant, agent, admitted) in [
            ("pay", "acme", None, true),
            ("pay", "beta", Some("triage"), false),
            ("pay", "", None, false),
            ("search", "beta", None, true),
            ("hub.write", "", Some("triage"), true),
            ("hub.write", "acme", None, false),
            ("hub.write", "acme", Some("other"), false),
            ("hub.read-all", "acme", Some("triage"), true),
            ("hub.read-all", "beta", Some("triage"), false),
            ("hubs.read", "beta", None, true),
        ] {
            assert_eq!(book.admits(tool, caller(tenant, agent)), admitted, "{tool} {tenant} {agent:?}");
        }
        assert!(book.admits_agent("pay", "x") && !book.admits_agent("hub.write", "x"));
        assert!(!book.admits_agent_to_server("hub", "x") && book.admits_agent_to_server("hub", "triage"));
    }

    #[test]
    fn a_definition_without_a_registered_agent_has_no_name_for_rules() {
        let ad_hoc = AgentDefinition { name: "triage".to_owned(), ..AgentDefinition::default() };
        assert_eq!(ad_hoc.known_name(), None);
        let registered = AgentDefinition { format: AgentFormat::OpenAgentSpec, ..ad_hoc };
        assert_eq!(registered.known_name(), Some("triage"));
        assert_eq!(AgentDefinition { imported: true, ..registered }.known_name(), None);
    }

    #[test]
    fn wrong_rules_are_named() {
        let known = ["ann".to_owned()];
        let check = |rules: serde_json::Value| {
            book(rules).check(|tool| tool == "pay", |server| server == "hub", Some(&known))
        };
        assert_eq!(
            check(json!({"pay": {"input_restriction": {"assertion": "recent.pay.inputs.x < 5"}}})),
            Ok(())
        );
        assert_eq!(
            check(json!({"hub.*": {}, "hub.read": {"output_restriction": {"require_review": "ann"}}})),
            Ok(())
        );
        for (rules, words) in [
            (json!({"pya": {}}), ["tool_rules.\"pya\"", "no such tool"]),
            (json!({"bub.*": {}}), ["bub.*", "no such tool"]),
            (
                json!({"pay": {"input_restriction": {"assertion": "1 +"}}}),
                ["input_restriction.assertion", "CEL"],
            ),
            (json!({"pay": {"input_restriction": {"require_review": "ben"}}}), ["require_review", "ben"]),
            (
                json!({"pay": {"input_restriction": {"require_review": "oagent://a"}}}),
                ["is an agent", "oagent://a"],
            ),
            (
                json!({"pay": {"input_restriction": {"answer_within_ms": 5}}}),
                ["answer_within_ms", "require_review"],
            ),
        ] {
            let problem = check(rules).unwrap_err();
            assert!(words.iter().all(|word| problem.contains(word)), "{problem}");
        }
        assert!(serde_json::from_value::<ToolRuleBook>(json!({"pay": {"tenant": ["a"]}})).is_err());
    }
}
