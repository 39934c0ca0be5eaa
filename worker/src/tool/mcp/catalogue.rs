//! The tools that a server offers, without those that an agent must not see.

use super::config::McpConfig;
use super::listed::ListedTools;
use super::server::McpServer;
use super::tool::{Hints, McpTool, OutputSchema};
use crate::tool::config::is_tool_name;
use rmcp::model::Tool as Listed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use turnstone_domain::agent::{AgentFormat, ToolSpec, capability_name};
use turnstone_domain::digest;
use turnstone_domain::schema::{Allowance, Schema};

/// A tool that is not offered, and the reason.
pub type Withheld = (String, String);

/// The tools of a server, by the server's names.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    tools: BTreeMap<String, Arc<McpTool>>,
    withheld: Vec<Withheld>,
    unread: Vec<Withheld>,
    digest: String,
}

impl Catalogue {
    /// Builds a catalogue from a server's list. Tools outside the allow-list are omitted silently, unusable
    /// ones (RS-13) with a reason.
    pub(super) fn of(server: &Arc<McpServer>, config: &McpConfig, listed: ListedTools) -> Self {
        let is_seen = |(name, _): &Withheld| !is_tool_name(name) || config.allows(name);
        let unread = listed.unread.into_iter().filter(is_seen).collect();
        let mut catalogue = Self { unread, ..Self::default() };
        let mut allowance = Allowance::default();
        for tool in listed.tools.into_iter().filter(|tool| config.allows(&tool.name)) {
            let name = tool.name.to_string();
            match made(server, config, &mut allowance, tool) {
                Ok(_) if catalogue.tools.contains_key(&name) => {
                    catalogue
                        .withheld
                        .push((name, "the server lists it twice; the first is used".to_owned()));
                }
                Ok(made) => drop(catalogue.tools.insert(name, Arc::new(made))),
                Err(why) => catalogue.withheld.push((name, why)),
            }
        }
        catalogue.digest = catalogue.digest_of_all();
        catalogue
    }

    /// Returns the tool of this name.
    #[must_use]
    pub fn get(&self, tool: &str) -> Option<&Arc<McpTool>> {
        self.tools.get(tool)
    }

    /// Returns the tool that an agent of this format means: OpenAgentSpec documents name tools by their
    /// capability names ([`capability_name`]), all others by the server's own.
    ///
    /// # Errors
    /// A sentence with the server's actual offer: nothing, no tool that may be used, or several tools with
    /// this capability name.
    pub fn named(&self, tool: &str, format: AgentFormat) -> Result<&Arc<McpTool>, String> {
        if format != AgentFormat::OpenAgentSpec {
            return self.get(tool).ok_or_else(|| self.missing(tool, |name| name == tool));
        }
        let mut alike = self.tools.iter().filter(|(name, _)| capability_name(name) == tool);
        match (alike.next(), alike.next()) {
            (Some((_, found)), None) => Ok(found),
            (Some((one, _)), Some((other, _))) => Err(format!(
                "it has more than one tool with the capability name `{tool}`, such as `{one}` and `{other}`; leave all \
                 but one out with `tools` of its section"
            )),
            (None, _) => Err(self.missing(tool, |name| capability_name(name) == tool)),
        }
    }

    fn missing(&self, tool: &str, is_it: impl Fn(&str) -> bool) -> String {
        match self.withheld.iter().chain(&self.unread).find(|(name, _)| is_it(name)) {
            Some((name, why)) => format!("it has `{name}`, but {why}"),
            None => format!("it has no tool `{tool}` that agents may see"),
        }
    }

    /// Returns the tools by the server's names.
    pub fn tools(&self) -> impl Iterator<Item = (&str, &Arc<McpTool>)> {
        self.tools.iter().map(|(name, tool)| (name.as_str(), tool))
    }

    /// Returns the tools that are listed and not offered, by the server's names.
    #[must_use]
    pub fn withheld(&self) -> &[Withheld] {
        &self.withheld
    }

    /// Returns the parts of the list that could not be read, each with a reason: entries by their names or numbers, and
    /// `*` for the list itself.
    #[must_use]
    pub fn unread(&self) -> &[Withheld] {
        &self.unread
    }

    /// Returns `sha256:` and the digest of names, descriptions and schemas, which a pin fixes.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Removes a tool from the offer, for this reason.
    pub(super) fn withhold(&mut self, tool: &str, why: String) {
        if self.tools.remove(tool).is_some() {
            self.withheld.push((tool.to_owned(), why));
        }
    }

    fn digest_of_all(&self) -> String {
        let tools: Value = self.tools.iter().map(|(name, tool)| json!([name, tool.digest()])).collect();
        format!("sha256:{}", digest::of_json(&tools))
    }
}

/// Returns the digest of a tool's texts for the model.
#[must_use]
pub(crate) fn digest_of(description: &str, input_schema: &Value) -> String {
    digest::of_json(&json!([description, input_schema]))
}

fn made(
    server: &Arc<McpServer>,
    config: &McpConfig,
    allowance: &mut Allowance,
    listed: Listed,
) -> Result<McpTool, String> {
    let remote = listed.name.to_string();
    let name = format!("{}.{remote}", server.name());
    if !is_tool_name(&remote) || !is_tool_name(&name) {
        return Err(
            "its name is not one of 1 to 253 characters of a-z, A-Z, 0-9, `_`, `.` and `-`".to_owned()
        );
    }
    let input_schema = Value::Object((*listed.input_schema).clone());
    let unusable = |why: String| format!("its inputSchema cannot be used: {why}");
    allowance.take(&input_schema).map_err(unusable)?;
    Schema::compile(&input_schema).map_err(|why| format!("its inputSchema is not a JSON Schema: {why}"))?;
    let promised = listed.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()));
    let compiled =
        promised.map(|schema| allowance.take(&schema).and_then(|()| Schema::compile(&schema))).transpose();
    let output_schema = compiled.map_err(|why| format!("its outputSchema is not a JSON Schema: {why}"))?;
    let description = listed.description.map(|text| text.to_string()).or(listed.title).unwrap_or_default();
    let idempotent = config.idempotent.contains(&remote);
    let spec = ToolSpec { name, description, input_schema, idempotent };
    let hint = |reported: Option<bool>| reported == Some(true);
    let annotations = listed.annotations.unwrap_or_default();
    let hints =
        Hints { read_only: hint(annotations.read_only_hint), idempotent: hint(annotations.idempotent_hint) };
    let weak: Weak<McpServer> = Arc::downgrade(server);
    Ok(McpTool::new(spec, (output_schema.map(OutputSchema), hints), remote, weak, config))
}
