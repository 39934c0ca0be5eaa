//! The definition of an agent, whatever its format: the one model behind OpenAgentSpec documents, OSSA manifests and
//! the `ext_agent_*` fields of a job.

mod approvals;
pub mod credential;
mod delegate;
pub mod delegation;
pub mod errors;
mod fan_out;
mod flow;
mod format;
pub mod guardrails;
pub mod identity;
mod imported;
mod limits;
mod live;
mod operations;
pub mod prompt;
pub mod reasoning;
pub mod remote;
pub mod safety;
pub mod session;
mod spending;
pub mod tool_rules;
mod tools;

pub use approvals::{Actions, Approvals};
pub use fan_out::{FanOut, FanOutRules, OwnFanOut};
pub use flow::FlowDocument;
pub use format::AgentFormat;
pub use guardrails::{Guardrail, Guardrails};
pub use identity::{Identity, TraceFormat};
pub use imported::Admission;
pub use limits::{Limits, MAX_DELEGATION_DEPTH};
pub use operations::Operation;
pub use prompt::{Example, Prompts};
pub use reasoning::Reasoning;
pub use safety::Safety;
pub use session::{Isolation, StateMode, StateOptions};
pub use spending::Spending;
pub use tool_rules::{AddedRestriction, ToolCaller, ToolRuleBook};
pub use tools::{Endpoint, Reached, ToolAuth, ToolOrigin, Toolset, capability_name};

use crate::error::{FailureKind, JobError};
use delegation::{Delegate, Target};
use errors::{CapabilityErrors, ErrorPolicy, TurnChain};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An agent, ready to run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct AgentDefinition {
    /// Unique within the server; for an ad-hoc agent the job's type.
    pub name: String,
    /// The format that it was read from.
    pub format: AgentFormat,
    /// Third person.
    pub description: String,
    /// The owner: OpenAgentSpec's `owner`; empty for other agents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The system prompt: OpenAgentSpec's `intent`, OSSA's `role`. Empty for an ad-hoc agent.
    pub instructions: String,
    /// The model and its parameters.
    pub model: ModelChoice,
    /// The capabilities that it may call, in document order.
    pub capabilities: Vec<Capability>,
    /// MCP servers all of whose tools it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolsets: Vec<Toolset>,
    /// `auto`, `required` or `none`: the rule for calling tools.
    pub tool_choice: ToolChoice,
    /// Values that are shown beside the text: key and CEL expression over the Engagement object (OAS-47).
    pub exposes: Vec<(String, String)>,
    /// The checks of inputs before a model receives them, and of answers before the user does (OAS-37).
    #[serde(default, skip_serializing_if = "Guardrails::is_default")]
    pub guardrails: Guardrails,
    /// The N-th repetition of a block of calls is refused (OAS-53).
    pub short_circuit: Option<u32>,
    /// Turn and token limits.
    pub limits: Limits,
    /// The part of the conversation that the model sees.
    pub memory: Memory,
    /// True if it remembers earlier engagements with the same user (OAS-51).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retain_memory: bool,
    /// The demanded form of the final answer.
    pub output: OutputContract,
    /// The form of ids, and the parts of the caller's context that are inherited.
    #[serde(default)]
    pub identity: Identity,
    /// The prompt parts beside the conversation.
    #[serde(default)]
    pub prompts: Prompts,
    /// The filters.
    #[serde(default)]
    pub safety: Safety,
    /// The rules for its state.
    #[serde(default)]
    pub state: StateOptions,
    /// The reaction to errors.
    #[serde(default)]
    pub errors: ErrorPolicy,
    /// The rules for its sequence of turns.
    #[serde(default)]
    pub chain: TurnChain,
    /// Spending limits beyond the tokens of one engagement.
    #[serde(default, skip_serializing_if = "Spending::is_default")]
    pub spending: Spending,
    /// The contacts that approve some of its calls.
    #[serde(default, skip_serializing_if = "Approvals::is_default")]
    pub approvals: Approvals,
    /// The calls that it may make.
    #[serde(default, skip_serializing_if = "Actions::is_default")]
    pub actions: Actions,
    /// The bounds of its reasoning, when its manifest describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The operations that it offers beside free text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// The version of its document, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The flow that it is. Its nodes are run one turn each, and everything above that concerns a model is
    /// theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowDocument>,
    /// True if it came with an imported engagement: no operator of this server has registered it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// The reason why it may run although it was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<Admission>,
}

/// The model and its parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ModelChoice {
    /// The preferred model and, in order, its fallbacks. Empty means the server's default model.
    pub models: Vec<ModelRef>,
    /// The provider of the server's default model, when a job names a provider and no model is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// The most tokens one answer may have.
    pub max_tokens: Option<i64>,
    /// True if the document says that the provider gets no bound. The budget reserves `max_tokens` all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unbounded: bool,
    /// 0.0 to 1.0: the share of likely tokens that are chosen from.
    #[serde(default)]
    pub top_p: Option<f64>,
    /// −2.0 to 2.0: how much a token that was used often is avoided.
    #[serde(default)]
    pub frequency_penalty: Option<f64>,
    /// −2.0 to 2.0: how much a token that was used at all is avoided.
    #[serde(default)]
    pub presence_penalty: Option<f64>,
}

/// A model at a provider.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ModelRef {
    /// The provider's name in the configuration; `None` is the default provider.
    pub provider: Option<String>,
    /// The provider's name for the model.
    pub model: String,
}

/// One thing an agent may call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Capability {
    /// The tool's name: the key in the Engagement object and in the journal.
    pub name: String,
    /// Overrides the registry's description for the model.
    pub description: Option<String>,
    /// Overrides the registry's JSON Schema of the arguments for the model.
    pub input_schema: Option<Value>,
    /// The JSON Schema that an output must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// True if the output is kept in the Engagement object (OAS-24).
    pub collect_results: bool,
    /// True if the calling user's identity is used (OAS-25).
    pub user_identity: bool,
    /// Credentials to use instead (OAS-27).
    pub static_identity: Option<String>,
    /// Checked before the call (OAS-28).
    pub input_restriction: Restriction,
    /// Checked before the result is used (OAS-29).
    pub output_restriction: Restriction,
    /// The longest a call may take, in milliseconds; `None` leaves it to the tool.
    pub timeout_ms: Option<u64>,
    /// True if its calls may run beside others of the same turn (OSSA §1.5). `None` allows this for tools that change
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// The reaction to its errors.
    #[serde(default)]
    pub errors: CapabilityErrors,
    /// The address that a manifest gives; `None` looks the name up in the server's registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// A tool or an agent.
    #[serde(default)]
    pub target: Target,
    /// The version that a manifest gives it, for telemetry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Capability {
    /// Returns a capability with every default of OpenAgentSpec.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            input_schema: None,
            output_schema: None,
            collect_results: true,
            user_identity: true,
            static_identity: None,
            input_restriction: Restriction::default(),
            output_restriction: Restriction::default(),
            timeout_ms: None,
            parallel: None,
            errors: CapabilityErrors::default(),
            origin: None,
            target: Target::Named,
            version: None,
        }
    }
}

impl Capability {
    /// Returns the terms of the delegation when this is an agent. `is_tool` is true if a tool has the name.
    #[must_use]
    pub fn delegate(&self, is_tool: bool) -> Option<Delegate> {
        match &self.target {
            Target::Agent(delegate) => Some(delegate.clone()),
            Target::Named if is_tool => None,
            Target::Remote { .. } => None,
            Target::Named => Some(Delegate::named(self.name.clone())),
        }
    }

    /// Returns true if a condition or a reviewer guards its calls or their results.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.input_restriction.restricts() || self.output_restriction.restricts()
    }
}

/// Conditions on a call or on its result; the assertion comes first, then the review, and both must pass.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Restriction {
    /// The reviewer, a user or an agent, who must approve.
    pub require_review: Option<String>,
    /// CEL over the Engagement object; anything but `true` refuses.
    pub assertion: Option<String>,
    /// The time to answer, in milliseconds; after it the review counts as rejected. `None` uses the configured
    /// deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
    /// The restrictions that the configuration adds for the tool. They are not part of the document.
    #[serde(skip)]
    pub added: Vec<AddedRestriction>,
}

impl Restriction {
    /// Returns true if it restricts anything.
    #[must_use]
    pub fn restricts(&self) -> bool {
        self.assertion.is_some() || self.require_review.is_some() || !self.added.is_empty()
    }

    /// Returns true if a reviewer has to approve.
    #[must_use]
    pub fn is_reviewed(&self) -> bool {
        self.require_review.is_some() || self.added.iter().any(|one| one.restriction.require_review.is_some())
    }
}

/// The rule for calling tools: the model may, must or must not (agent extension §2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// A final answer without any tool call is not accepted.
    Required,
    /// No tool is offered, and none is run.
    None,
}

/// The part of the conversation that the model sees: the newest messages, and always the input of the job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Messages in the window (OSSA §4).
    pub window_size: u32,
    /// Upper bound of the window in tokens; `None` is unlimited.
    pub max_history_tokens: Option<i64>,
    /// The treatment of messages that do not fit.
    #[serde(default)]
    pub strategy: Forgetting,
}

impl Default for Memory {
    fn default() -> Self {
        Self { window_size: 60, max_history_tokens: None, strategy: Forgetting::default() }
    }
}

/// The treatment of messages that do not fit into the window (OSSA §4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgetting {
    /// The oldest are left out.
    #[default]
    Sliding,
    /// The oldest are shortened first, and left out when that is not enough.
    Truncate,
    /// The oldest are replaced by a summary, which a model writes.
    Summarize,
    /// Whole turns are left out, the least important first: tool calls before answers, answers before the user's
    /// messages.
    ImportanceWeighted,
}

/// The demanded form of the final answer (agent extension §2.4).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OutputContract {
    /// JSON Schema of the answer; implies [`OutputFormat::Json`].
    pub schema: Option<Value>,
    /// Text by default.
    pub format: OutputFormat,
}

/// `ext_agent_output_format`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// Plain text.
    #[default]
    Text,
    /// One JSON value and nothing else.
    Json,
    /// Markdown.
    Markdown,
}

/// A job's settings for its agent: the `ext_agent_*` fields that a client may set, already checked one by one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AgentFields {
    /// `ext_agent_model`.
    pub model: Option<String>,
    /// `ext_agent_fallback_models`.
    pub fallback_models: Option<Vec<String>>,
    /// `ext_agent_provider`.
    pub provider: Option<String>,
    /// `ext_agent_temperature`.
    pub temperature: Option<f64>,
    /// `ext_agent_max_tokens`.
    pub max_tokens: Option<i64>,
    /// `ext_agent_token_budget`.
    pub token_budget: Option<i64>,
    /// `ext_agent_cost_budget`, in millionths of the currency.
    pub cost_budget: Option<i64>,
    /// `ext_agent_tools`.
    pub tools: Option<Vec<ToolDeclaration>>,
    /// `ext_agent_tool_choice`.
    pub tool_choice: Option<ToolChoice>,
    /// `ext_agent_max_delegation_depth`.
    pub max_delegation_depth: Option<u32>,
    /// `ext_agent_output_schema`.
    pub output_schema: Option<Value>,
    /// `ext_agent_output_format`.
    pub output_format: Option<OutputFormat>,
}

/// A tool as a job declares it (agent extension §4).
#[derive(Clone, PartialEq, Debug)]
pub struct ToolDeclaration {
    /// The tool's name.
    pub name: String,
    /// For the model.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub parameters: Option<Value>,
}

impl AgentDefinition {
    /// Returns the agent that a job's fields alone define.
    #[must_use]
    pub fn ad_hoc(job_type: &str, fields: AgentFields) -> Self {
        let mut agent = Self { name: job_type.to_owned(), ..Self::default() };
        let tools = fields.tools.as_deref().unwrap_or_default();
        agent.capabilities = tools.iter().map(declared).collect();
        agent.apply(fields);
        agent
    }

    /// Returns this agent for one job: the job selects the model and the form of the answer, and narrows everything
    /// else.
    ///
    /// # Errors
    /// [`FailureKind::ToolNotFound`] when the job names a tool that the agent does not have.
    pub fn narrowed_by(mut self, fields: AgentFields) -> Result<Self, JobError> {
        if let Some(tools) = &fields.tools {
            let mut kept = Vec::with_capacity(tools.len());
            for tool in tools {
                let own = self.capabilities.iter().find(|own| own.name == tool.name).cloned();
                let own = own.or_else(|| {
                    let set = self.toolsets.iter().find(|set| set.covers(&tool.name))?;
                    Some(set.capability(tool.name.clone()))
                });
                let Some(own) = own else {
                    let message = format!(
                        "ext_agent_tools names `{}`, which agent `{}` does not have; a job may only narrow the tools of a registered agent",
                        tool.name, self.name
                    );
                    return Err(
                        JobError::new(FailureKind::ToolNotFound, message).with("tool", tool.name.as_str())
                    );
                };
                kept.push(own);
            }
            self.capabilities = kept;
            self.toolsets.clear();
        }
        self.apply(fields);
        Ok(self)
    }

    fn apply(&mut self, fields: AgentFields) {
        let models =
            [fields.model.clone().into_iter().collect(), fields.fallback_models.clone().unwrap_or_default()]
                .concat();
        if fields.model.is_some() {
            let provider = fields.provider.clone();
            self.model.models =
                models.into_iter().map(|model| ModelRef { provider: provider.clone(), model }).collect();
        } else {
            if fields.fallback_models.is_some() {
                self.model.models.truncate(1);
                self.model.models.extend(models.into_iter().map(|model| ModelRef { provider: None, model }));
            }
            if fields.provider.is_some() {
                self.model.provider.clone_from(&fields.provider);
                for model in &mut self.model.models {
                    model.provider.clone_from(&fields.provider);
                }
            }
        }
        self.model.temperature = fields.temperature.or(self.model.temperature);
        self.model.max_tokens = narrower(self.model.max_tokens, fields.max_tokens);
        self.limits.token_budget = narrower(self.limits.token_budget, fields.token_budget);
        self.spending.cost_budget = narrower(self.spending.cost_budget, fields.cost_budget);
        if let Some(depth) = fields.max_delegation_depth {
            self.limits.max_delegation_depth = self.limits.max_delegation_depth.min(depth);
        }
        self.tool_choice = match (self.tool_choice, fields.tool_choice) {
            (ToolChoice::None, _) | (_, Some(ToolChoice::None)) => ToolChoice::None,
            (ToolChoice::Required, _) => ToolChoice::Required,
            (own, requested) => requested.unwrap_or(own),
        };
        self.output.schema = fields.output_schema.or(self.output.schema.take());
        self.output.format = match fields.output_format {
            Some(format) => format,
            None if self.output.schema.is_some() => OutputFormat::Json,
            None => self.output.format,
        };
    }

    /// Returns the names of its capabilities.
    #[must_use]
    pub fn capability_names(&self) -> Vec<&str> {
        self.capabilities.iter().map(|capability| capability.name.as_str()).collect()
    }

    /// Returns the capability of this name.
    #[must_use]
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|capability| capability.name == name)
    }

    /// Returns true if an expression of this agent reads the Engagement object, which then has to be built.
    #[must_use]
    pub fn reads_engagement(&self) -> bool {
        !self.exposes.is_empty()
            || !self.approvals.is_default()
            || self.capabilities.iter().any(Capability::is_restricted)
            || self.toolsets.iter().any(|set| set.like.is_restricted())
    }
}

fn declared(tool: &ToolDeclaration) -> Capability {
    Capability {
        description: tool.description.clone(),
        input_schema: tool.parameters.clone(),
        ..Capability::named(tool.name.clone())
    }
}

fn narrower(own: Option<i64>, requested: Option<i64>) -> Option<i64> {
    match (own, requested) {
        (Some(own), Some(requested)) => Some(own.min(requested)),
        (own, requested) => own.or(requested),
    }
}

/// A tool in the server's registry: agents refer to it, and models receive its description.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Unique within the server.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// True if a second call with the same key has no second effect.
    pub idempotent: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered() -> AgentDefinition {
        AgentDefinition {
            name: "helper".into(),
            capabilities: vec![Capability::named("search"), Capability::named("mail")],
            limits: Limits { token_budget: Some(1000), ..Limits::default() },
            ..AgentDefinition::default()
        }
    }

    fn tool(name: &str) -> ToolDeclaration {
        ToolDeclaration { name: name.into(), description: None, parameters: None }
    }

    #[test]
    fn a_job_narrows_and_never_widens() {
        let fields = AgentFields {
            token_budget: Some(5000),
            tools: Some(vec![tool("mail")]),
            ..AgentFields::default()
        };
        let agent = registered().narrowed_by(fields).unwrap();
        assert_eq!(agent.limits.token_budget, Some(1000));
        assert_eq!(agent.capabilities.len(), 1);
        let fields = AgentFields { token_budget: Some(500), ..AgentFields::default() };
        assert_eq!(registered().narrowed_by(fields).unwrap().limits.token_budget, Some(500));
        let fields = AgentFields { tools: Some(vec![tool("rm")]), ..AgentFields::default() };
        assert_eq!(registered().narrowed_by(fields).unwrap_err().kind, FailureKind::ToolNotFound);
    }

    #[test]
    fn a_job_may_pick_one_tool_of_a_server_that_its_agent_has() {
        let toolset = Toolset {
            server: "github".into(),
            like: Capability { timeout_ms: Some(5), ..Capability::named("github.*") },
        };
        let agent = AgentDefinition { toolsets: vec![toolset], ..registered() };
        let fields = AgentFields { tools: Some(vec![tool("github.search")]), ..AgentFields::default() };
        let agent_narrowed = agent.clone().narrowed_by(fields).unwrap();
        assert!(agent_narrowed.toolsets.is_empty());
        let [search] = agent_narrowed.capabilities.as_slice() else { panic!("{agent_narrowed:?}") };
        assert_eq!((search.name.as_str(), search.timeout_ms), ("github.search", Some(5)));
        for other in ["github", "github.", "githubs.search", "gitlab.search"] {
            let fields = AgentFields { tools: Some(vec![tool(other)]), ..AgentFields::default() };
            assert!(agent.clone().narrowed_by(fields).is_err(), "{other}");
        }
    }

    #[test]
    fn an_output_schema_implies_json() {
        let fields = AgentFields { output_schema: Some(serde_json::json!({})), ..AgentFields::default() };
        assert_eq!(AgentDefinition::ad_hoc("a.b", fields).output.format, OutputFormat::Json);
    }

    #[test]
    fn fallbacks_follow_the_model_of_the_job() {
        let fields = AgentFields {
            model: Some("m".into()),
            fallback_models: Some(vec!["n".into()]),
            provider: Some("p".into()),
            ..AgentFields::default()
        };
        let models = AgentDefinition::ad_hoc("a", fields).model.models;
        assert_eq!(models.iter().map(|m| m.model.as_str()).collect::<Vec<_>>(), ["m", "n"]);
        assert!(models.iter().all(|m| m.provider.as_deref() == Some("p")));
    }
}
