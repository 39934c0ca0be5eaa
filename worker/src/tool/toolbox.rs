//! The tools that this worker can call: those of the configuration, the built-in ones, and those of MCP
//! servers.

use super::config::is_tool_name;
use crate::tool::builtin::{ClockTool, HttpGetTool, SAVE_ARTIFACT, SaveArtifactTool};
use crate::tool::config::ToolConfig;
use crate::tool::declared::Declared;
use crate::tool::http::HttpTool;
use crate::tool::mcp::config::is_server_name;
use crate::tool::mcp::{McpConfig, McpServer};
use crate::tool::policy::{BIND, ToolPolicy};
use crate::tool::program::Programs;
use crate::tool::remote::{RemoteAgent, RemoteBook, RemoteConfig};
use crate::tool::uncalled::Uncalled;
use crate::tool::url_template::UrlTemplate;
use crate::tool::{RemoteCancellation, Tool, ToolError, outbound};
use async_recursion::async_recursion as boxed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use turnstone_domain::agent::credential::{ANY_TOOL, Credential};
use turnstone_domain::agent::{ToolRuleBook, ToolSpec, capability_name};
use turnstone_domain::question;
use turnstone_domain::{CallId, Clock};
use turnstone_outbound::OwnAddresses;
use turnstone_specs::Reach;
use turnstone_telemetry::SecretRef;
use url::Url;

/// The reason why a name is refused for a tool.
const BAD_NAME: &str =
    "a tool's name has 1 to 253 characters of a-z, A-Z, 0-9, `_`, `.`, `-` and begins with a letter or digit";
/// The reason why a manifest may name no address.
const NOT_ALLOWED: &str = "its manifest names an address, and [tool_policy] allows none";

/// Tools by name, and MCP servers by name.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    servers: BTreeMap<String, Arc<McpServer>>,
    declared: Option<Arc<Declared>>,
    remote: Option<Arc<RemoteBook>>,
    rules: Arc<ToolRuleBook>,
    own: OwnAddresses,
    programs: Programs,
}

impl Toolbox {
    /// Returns the built-in tools and those of the configuration's `[tools.<name>]` sections.
    ///
    /// # Errors
    /// A sentence that names the tool and the key that is wrong.
    pub fn from_config(
        configs: &BTreeMap<String, ToolConfig>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        Self::avoiding(OwnAddresses::default()).with_tools(configs, clock)
    }

    /// Returns an empty toolbox whose tools never call these addresses, on which this server listens.
    #[must_use]
    pub fn avoiding(own: OwnAddresses) -> Self {
        Self { own, ..Self::default() }
    }

    /// Has the programs of MCP servers started so. It comes before the servers and the policy.
    #[must_use]
    pub fn with_programs(self, programs: Programs) -> Self {
        Self { programs, ..self }
    }

    /// Adds the built-in tools and those of the configuration's `[tools.<name>]` sections.
    ///
    /// # Errors
    /// A sentence that names the tool and the key that is wrong.
    pub fn with_tools(
        self,
        configs: &BTreeMap<String, ToolConfig>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let open = outbound::open_client()?;
        let guarded = outbound::guarded_client()?;
        let mut toolbox = self;
        for name in question::TOOLS {
            toolbox.insert(Arc::new(Uncalled::ask_user(name)))?;
        }
        for name in SAVE_ARTIFACT {
            toolbox.insert(Arc::new(SaveArtifactTool::new(name)))?;
        }
        toolbox.insert(Arc::new(ClockTool::new(clock)))?;
        toolbox.insert(Arc::new(HttpGetTool::new(guarded.clone()).avoiding(toolbox.own.clone())))?;
        for (name, config) in configs {
            let usual = if config.allow_private { &open } else { &guarded };
            // A URL that is none is reported with the other problems of the section.
            let client = match UrlTemplate::parse(&config.url) {
                Ok(url) => outbound::client_avoiding(&toolbox.own, url.base(), config.allow_private, usual)
                    .map_err(|problem| format!("url: {problem}")),
                Err(_) => Ok(usual.clone()),
            };
            client
                .and_then(|client| HttpTool::new(name, config.clone(), client))
                .and_then(|tool| toolbox.insert(Arc::new(tool)))
                .map_err(|problem| format!("[tools.{name}] {problem}"))?;
        }
        Ok(toolbox)
    }

    /// Adds the MCP servers of the sections `[mcp.<name>]`. No server is started or connected before a turn
    /// needs it.
    ///
    /// # Errors
    /// A sentence that names the server and the key that is wrong.
    pub fn with_mcp(
        mut self,
        configs: &BTreeMap<String, McpConfig>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, String> {
        if configs.is_empty() {
            return Ok(self);
        }
        let open = outbound::open_client()?;
        let guarded = outbound::guarded_client()?;
        for (name, config) in configs {
            let wrong = |problem: String| format!("[mcp.{name}] {problem}");
            if !is_server_name(name) {
                return Err(wrong(
                    "a server's name has 1 to 64 characters of a-z, A-Z, 0-9, `_`, `-` and begins with a letter or digit"
                        .to_owned(),
                ));
            }
            if let Some(other) =
                self.servers.keys().find(|other| capability_name(other) == capability_name(name))
            {
                return Err(wrong(format!(
                    "the name becomes `{}` in capabilities, and so does that of [mcp.{other}]; rename one of them",
                    capability_name(name)
                )));
            }
            let usual = if config.allow_private { &open } else { &guarded };
            let client = match config.url.as_deref().and_then(|url| Url::parse(url).ok()) {
                Some(url) => outbound::client_avoiding(&self.own, &url, config.allow_private, usual)
                    .map_err(|problem| wrong(format!("url: {problem}")))?,
                None => usual.clone(),
            };
            let server =
                McpServer::new(name, config.clone(), client, self.programs.clone(), Arc::clone(clock));
            let server = server.map_err(wrong)?;
            self.servers.insert(name.clone(), server);
        }
        Ok(self)
    }

    /// Adds the addresses and secrets that manifests may use by themselves; without it, none.
    ///
    /// # Errors
    /// A sentence with the reason why they cannot be used.
    pub fn with_policy(mut self, policy: ToolPolicy, clock: &Arc<dyn Clock>) -> Result<Self, String> {
        policy.allowed_commands.check()?;
        self.declared = Some(Arc::new(Declared::new(
            policy,
            self.own.clone(),
            self.programs.clone(),
            Arc::clone(clock),
        )?));
        Ok(self)
    }

    /// Returns the programs and addresses that documents may use.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.declared.as_ref().map_or_else(Reach::default, |declared| declared.reach())
    }

    /// Adds the agents of other servers; without it, none.
    ///
    /// # Errors
    /// A sentence with the error in the configuration.
    pub fn with_remote(mut self, config: &RemoteConfig, clock: &Arc<dyn Clock>) -> Result<Self, String> {
        if let Some(name) = config.agents.keys().find(|name| !is_tool_name(name)) {
            return Err(format!("[remote.agents.{name}] {BAD_NAME}"));
        }
        if let Some(name) = config.agents.keys().find(|name| self.tools.contains_key(*name)) {
            return Err(format!("[remote.agents.{name}] the name is that of a tool; choose another"));
        }
        if !config.hosts.is_empty() || !config.agents.is_empty() {
            self.remote = Some(Arc::new(RemoteBook::new(config.clone(), Arc::clone(clock))?));
        }
        Ok(self)
    }

    /// Adds the rules for the calls of these tools; without it, none. `reviewers` are the names that may review, `None`
    /// for all. It comes after the tools, because rules name them.
    ///
    /// # Errors
    /// A sentence that names the section that is wrong.
    pub fn with_rules(mut self, rules: ToolRuleBook, reviewers: Option<&[String]>) -> Result<Self, String> {
        let has_tool = |name: &str| self.tools.contains_key(name) || self.is_remote(name);
        rules.check(has_tool, |server| self.servers.contains_key(server), reviewers)?;
        self.rules = Arc::new(rules);
        Ok(self)
    }

    /// Returns the rules for the calls of tools.
    #[must_use]
    pub fn rules(&self) -> &ToolRuleBook {
        &self.rules
    }

    /// Returns true if this worker may call agents of other servers.
    #[must_use]
    pub fn reaches_out(&self) -> bool {
        self.remote.is_some() || self.declared.is_some()
    }

    /// Returns a permit for one more turn to wait for other servers without a slot. The permit is returned
    /// when it is dropped.
    #[must_use]
    pub fn room_outside(&self) -> Option<OwnedSemaphorePermit> {
        self.remote.as_ref()?.room_outside()
    }

    /// Cancels a remote agent's work for a call.
    ///
    /// # Errors
    /// The reason why the agent was not notified.
    #[boxed]
    pub async fn cancel(
        &self,
        place: &str,
        call: &CallId,
        handle: Option<&Value>,
    ) -> Result<RemoteCancellation, ToolError> {
        match (&self.remote, &self.declared) {
            (Some(book), None) => book.cancel(place, call, handle).await,
            // The agents of documents have handles of A2A, and no name here.
            (Some(book), _) if book.names(place) || handle.is_none_or(|handle| handle["rpc"].is_null()) => {
                book.cancel(place, call, handle).await
            }
            (_, Some(declared)) => declared.cancel(place, call, handle).await,
            (None, None) => {
                Err(ToolError::Refused(format!("this worker has no remote agents; {place} is one")))
            }
        }
    }

    /// Returns true if a name is an agent of `[remote.agents]`.
    #[must_use]
    pub fn is_remote(&self, name: &str) -> bool {
        self.remote.as_ref().is_some_and(|book| book.names(name))
    }

    /// Returns the agent of this name among `[remote.agents]`.
    ///
    /// # Errors
    /// A sentence with the reason why it cannot be called now.
    #[boxed]
    pub async fn named_agent(&self, name: &str) -> Result<Arc<RemoteAgent>, String> {
        match &self.remote {
            Some(book) => book.named(name).await,
            None => Err(format!("no remote agent has the name `{name}`; add [remote.agents.{name}]")),
        }
    }

    /// Returns the agent at an address on another server.
    ///
    /// # Errors
    /// A sentence with the reason why it cannot be called now.
    #[boxed]
    pub async fn remote_agent(&self, url: &str) -> Result<Arc<RemoteAgent>, String> {
        match &self.remote {
            Some(book) => book.agent(url).await,
            None => Err("agents on other servers are not asked by this worker; name their hosts in [remote]"
                .to_owned()),
        }
    }

    /// Returns the reference of a secret that a credential for a tool names. A credential for this tool alone may send it
    /// to the tool's own URL, one for every tool only where the secret is bound to.
    ///
    /// # Errors
    /// A sentence with the line to add to the configuration.
    pub fn secret(&self, name: &str, tool: &dyn Tool, credential: &Credential) -> Result<SecretRef, String> {
        let secrets = self.declared.as_ref().map(|declared| declared.policy());
        let Some(secret) = secrets.and_then(|policy| policy.secrets.get(name)) else {
            return Err(format!("this worker has no secret {name} among `secrets` of [tool_policy]"));
        };
        let of_registry = credential.tool != ANY_TOOL && self.tools.contains_key(&tool.spec().name);
        if of_registry || tool.destination().is_some_and(|url| secret.is_bound_to(url)) {
            return Ok(secret.reference().clone());
        }
        Err(format!("the secret {name} is not bound to the address of `{}`; {BIND}", tool.spec().name))
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// A sentence when its name is badly formed or taken.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) -> Result<(), String> {
        let name = tool.spec().name.clone();
        if !is_tool_name(&name) {
            return Err(BAD_NAME.to_owned());
        }
        if self.tools.contains_key(&name) {
            return Err(format!(
                "the name `{name}` is taken, for example by a built-in tool; choose another"
            ));
        }
        self.tools.insert(name, tool);
        Ok(())
    }

    /// Returns the tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
    }

    /// Returns the MCP server of this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&Arc<McpServer>> {
        self.servers.get(name)
    }

    /// Returns the MCP servers, by name.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<McpServer>> {
        self.servers.values()
    }

    /// Returns the MCP server and its tool for a name such as `github.search_issues`. The server's name may
    /// be in the form of capability names ([`capability_name`]). Its catalogue resolves the tool's name.
    #[must_use]
    pub fn of_server<'a>(&self, name: &'a str) -> Option<(&Arc<McpServer>, &'a str)> {
        let (named, tool) = name.split_once('.')?;
        let by_capability = || self.servers.values().find(|server| capability_name(server.name()) == named);
        Some((self.servers.get(named).or_else(by_capability)?, tool))
    }

    /// Returns the tools, models and servers that documents name by their addresses.
    ///
    /// # Errors
    /// A sentence with the reason why documents may name none.
    pub fn declared(&self) -> Result<&Arc<Declared>, String> {
        self.declared.as_ref().ok_or_else(|| NOT_ALLOWED.to_owned())
    }

    /// Ends the connections to MCP servers, and their processes.
    #[boxed]
    pub async fn close(&self) {
        let declared = self.declared.iter().flat_map(|declared| declared.servers());
        let servers: Vec<_> = self.servers.values().cloned().chain(declared).collect();
        futures::future::join_all(servers.iter().map(|server| server.close())).await;
    }

    /// Returns the descriptions of the tools, by name.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        let remote = self.remote.iter().flat_map(|book| book.specs());
        self.tools.values().map(|tool| tool.spec().clone()).chain(remote).collect()
    }

    /// Returns the names of the tools that take no credentials.
    #[must_use]
    pub fn keyless(&self) -> Vec<String> {
        let keyless = self.tools.values().filter(|tool| !tool.takes_credentials());
        keyless.map(|tool| tool.spec().name.clone()).collect()
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::SystemClock;

    fn toolbox(json: &str) -> Result<Toolbox, String> {
        Toolbox::from_config(&serde_json::from_str(json).unwrap(), Arc::new(SystemClock))
    }

    #[test]
    fn builtins_are_always_there() {
        let toolbox =
            toolbox(r#"{"web_search": {"description": "d", "url": "https://a.example/s"}}"#).unwrap();
        let names: Vec<String> = toolbox.specs().into_iter().map(|spec| spec.name).collect();
        let built_in = ["ask-user", "ask_user", "clock", "http_get", "save-artifact", "save_artifact"];
        assert_eq!(names, [&built_in[..], &["web_search"]].concat());
        assert!(toolbox.get("web_search").is_some() && toolbox.get("rm").is_none());
    }

    /// OAS-01: a name is taken once.
    #[test]
    fn problems_name_the_tool_and_the_key() {
        for (json, words) in [
            (r#"{"clock": {"description": "d", "url": "https://a.example/s"}}"#, ["[tools.clock]", "taken"]),
            (r#"{"-x": {"description": "d", "url": "https://a.example/s"}}"#, ["[tools.-x]", "begins with"]),
            (r#"{"a b": {"description": "d", "url": "https://a.example/s"}}"#, ["[tools.a b]", "characters"]),
            (r#"{"x": {"description": "d", "url": "nowhere"}}"#, ["[tools.x]", "url:"]),
            (r#"{"x": {"description": "d", "url": "http://127.0.0.1/"}}"#, ["[tools.x]", "allow_private"]),
            (r#"{"x": {"description": "d", "url": "http://localhost:1/"}}"#, ["[tools.x]", "allow_private"]),
            (
                r#"{"x": {"description": "d", "url": "https://u:p@a.example/", "allow_private": true}}"#,
                ["[tools.x]", "password"],
            ),
            (
                r#"{"x": {"description": "d", "url": "https://a.example/", "input_schema": "{"}}"#,
                ["[tools.x]", "input_schema"],
            ),
            (
                r#"{"x": {"description": "d", "url": "https://a.example/", "input_schema": {"type": "strin"}}}"#,
                ["[tools.x]", "input_schema"],
            ),
            (r#"{"x": {"description": "d", "url": "https://a.example/{id}"}}"#, ["[tools.x]", "{id}"]),
            (
                r#"{"x": {"description": "d", "url": "https://a.example/", "timeout_ms": 0}}"#,
                ["[tools.x]", "timeout_ms"],
            ),
            (
                r#"{"x": {"description": "d", "url": "https://a.example/", "headers": {"Host": "b"}}}"#,
                ["[tools.x]", "headers.Host"],
            ),
        ] {
            let problem = toolbox(json).unwrap_err();
            assert!(words.iter().all(|word| problem.contains(word)), "{json}: {problem}");
        }
    }

    #[test]
    fn names_are_bounded() {
        assert!(is_tool_name("a") && is_tool_name("Search-Flights.v2_x") && is_tool_name(&"a".repeat(253)));
        for bad in ["", "_a", ".a", "a/b", "ä", &"a".repeat(254)] {
            assert!(!is_tool_name(bad), "{bad}");
        }
    }
}
