//! The content of a claim. No phase changes it; the driver looks up the agents that a document names, and a flow chooses
//! the agent of its next turn.

use super::slot::TurnSlot;
use super::trace::Trace;
use crate::deps::Deps;
use crate::model::ToolOffer;
use crate::writes::UnderWay;
use std::collections::BTreeMap;
use std::sync::Arc;
use turnstone_domain::agent::FanOut;
use turnstone_domain::agent::delegation::{Delegate, Target};
use turnstone_domain::budget::AppliedBudget;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::retry::{Decision, RetryPolicy};
use turnstone_domain::session_state::inherited_session;
use turnstone_domain::{AgentDefinition, IdSource, Identified, JobError, JobId, RawJson, RawObject};

/// The constant part of the claim.
pub struct JobFacts {
    /// The job.
    pub id: JobId,
    /// The number of earlier failed attempts.
    pub failures: i64,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// The token budget that the job states.
    pub token_budget: Option<i64>,
    /// OJS `args`: the input.
    pub args: RawJson,
    /// The results of the jobs before it in its workflow, as JSON texts: the result of the job directly before it is
    /// first.
    pub parent_results: Option<Vec<String>>,
    /// OJS `meta`: trace context and baggage.
    pub meta: RawObject,
}

/// An agent that may receive calls.
pub struct KnownDelegate {
    /// The terms of the delegation.
    pub terms: Delegate,
    /// The definition of the delegate.
    pub agent: Arc<AgentDefinition>,
    /// The agents that replace it when it fails, in their order.
    pub fallback: Vec<Arc<AgentDefinition>>,
    /// Its description as a tool, for the model.
    pub offer: ToolOffer,
}

/// The agents that review calls of this one, by their names in its document; `None` for one that is not
/// registered.
pub type Reviewers = BTreeMap<String, Option<Arc<AgentDefinition>>>;

/// The content of a claim.
pub struct Claimed {
    /// The parts that all turns of this worker share.
    pub deps: Arc<Deps>,
    /// The constant part of the claim.
    pub job: JobFacts,
    /// The engagement.
    pub engagement: Engagement,
    /// The agent as it was when the engagement began; later versions of its document do not change it. After a handoff it
    /// is the agent that took over, as it is now.
    pub agent: Arc<AgentDefinition>,
    /// True if the agent is one of the agents of a flow's node.
    pub is_of_crew: bool,
    /// True if the turn runs a node of a flow: then no model receives the outcome of its call.
    pub is_node: bool,
    /// The budgets of tenants, agents, models and the fleet that its calls may be charged to as well.
    pub budgets: Vec<AppliedBudget>,
    /// The number of agents above this one.
    pub depth: i64,
    /// The jobs of its tree: those that the tree had when it was claimed, and those that it has begun since.
    pub tree_jobs: i64,
    /// The bounds for its delegations.
    pub fan_out: FanOut,
    /// The delegates of the agent, once they are looked up.
    pub delegates: Option<Arc<BTreeMap<String, KnownDelegate>>>,
    /// The agents that review its calls, once they are looked up.
    pub reviewers: Reviewers,
    /// Its slot in this worker.
    pub slot: TurnSlot,
    /// Its spans for OpenTelemetry.
    pub trace: Trace,
    /// The W3C `traceparent` of the span in which an earlier claim began the current turn.
    pub began_in: Option<String>,
}

impl Claimed {
    /// Counts a write of the turn for as long as the returned value lives.
    #[must_use]
    pub fn writes(&self) -> UnderWay {
        self.slot.first_write().unwrap_or_else(|| self.deps.writes.begin())
    }

    /// Returns the id of a thing of a turn of this job (see [`IdSource`]).
    #[must_use]
    pub fn id_in(&self, turn: i64, of: Identified<'_>) -> String {
        self.deps.ids.derived(&IdSource { job: &self.job.id, turn, of })
    }

    /// Returns the delegate of this name, if there is one.
    #[must_use]
    pub fn delegate(&self, name: &str) -> Option<&KnownDelegate> {
        self.delegates.as_ref()?.get(name)
    }

    /// Returns true if the output of a capability is known to come from a tool, not from an agent.
    #[must_use]
    pub fn is_tool(&self, name: &str) -> bool {
        let toolbox = &self.deps.toolbox;
        self.agent.capability(name).is_some_and(|capability| {
            capability.target == Target::Named
                && (capability.origin.is_some()
                    || toolbox.get(name).is_some()
                    || toolbox.of_server(name).is_some())
        })
    }

    /// Returns true if the reviewer of this name is an agent; a group of the configuration takes precedence.
    #[must_use]
    pub fn is_reviewed_by_agent(&self, name: &str) -> bool {
        self.reviewers.contains_key(name) && !self.deps.reviews.groups.contains_key(name)
    }

    /// Returns the tenant of the job (OJS multi-tenancy), or `meta.tenant` of an older client; empty without one.
    #[must_use]
    pub fn tenant(&self) -> String {
        tenant_of(&self.job.meta)
    }

    /// Returns the session: the one that the caller names, else the engagement in the form that the manifest demands
    /// (RS-03).
    #[must_use]
    pub fn session_id(&self) -> String {
        let identity = &self.agent.identity;
        inherited_session(identity, &self.job.meta)
            .unwrap_or_else(|| identity.session_id.of(self.engagement.id.as_str()))
    }

    /// Returns the id of this worker in the form that the manifest demands. It stays the same as long as the
    /// process lives.
    #[must_use]
    pub fn instance_id(&self) -> String {
        self.agent.identity.instance_id.of(&self.deps.options.worker_id)
    }

    /// Returns true if the model may ask for tools after this many turns in a row that did. After `max_tool_turns` it is
    /// offered none and has to answer (OSSA §4).
    #[must_use]
    pub fn may_call(&self, tool_turns: u32) -> bool {
        self.agent.limits.max_tool_turns.is_none_or(|most| tool_turns < most)
    }

    /// Returns the refusal to call another agent beyond the depth that the agent's document permits.
    #[must_use]
    pub fn too_deep(&self, name: &str) -> Option<String> {
        let (depth, most) = (self.depth + 1, i64::from(self.agent.limits.max_delegation_depth));
        (depth > most).then(|| {
            format!("`{name}` was not asked: it would be {depth} deep, and this agent may delegate to a depth of {most}")
        })
    }

    /// Returns the refusal to begin so many jobs more than the tree of the engagement may have. `subject` is what begins
    /// them.
    #[must_use]
    pub fn too_many_jobs(&self, subject: &str, jobs: usize) -> Option<String> {
        let most = self.fan_out.max_jobs_per_tree;
        let more = i64::try_from(jobs).unwrap_or(i64::MAX);
        (self.tree_jobs.saturating_add(more) > i64::from(most)).then(|| {
            format!(
                "{subject}: the engagement and its delegates have {} jobs, {jobs} more would be needed, and at most {most} \
                 are allowed (max_jobs_per_tree of [agents])",
                self.tree_jobs
            )
        })
    }

    /// Returns true if the agent remembers its user across engagements.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.agent.retain_memory && self.depth == 0 && self.engagement.user.is_known()
    }

    /// Returns true when the job's retry policy allows no further attempt after this error and these outages.
    #[must_use]
    pub fn is_final(&self, outages: u32, error: &JobError) -> bool {
        let number = self.job.retry.number(self.job.failures, outages, error);
        matches!(self.job.retry.decide(number, error, 0.0), Decision::Exhausted)
    }
}

/// Returns the tenant of the job with this `meta`, as [`Claimed::tenant`].
pub fn tenant_of(meta: &RawObject) -> String {
    let named = |member: &str| meta.get(member).and_then(|value| value.parse::<String>().ok());
    named("tenant_id").or_else(|| named("tenant")).unwrap_or_default()
}
