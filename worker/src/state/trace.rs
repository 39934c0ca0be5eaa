//! The spans and metrics of a claim (OSSA semantic conventions, RS-32, RS-43).
//!
//! A claim is the root of its own spans, which continue the submitter's trace when the job's `meta` names
//! one. A delegated job links to the span that delegated it. A claim that resumes another worker's turn links
//! to that worker's span (RS-A9).

use super::claimed::Claimed;
use super::outbox::Outbox;
use super::tools::Callable;
use crate::model::{ModelAnswer, ModelRequest};
use crate::tool::Transport;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;
use turnstone_domain::agent::delegation::Delegate;
use turnstone_domain::agent::{Capability, TraceFormat, reasoning};
use turnstone_domain::message::{Message, RequestedCall};
use turnstone_domain::principal::SUBMITTED_BY;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::trace_context::{self, is_traceparent};
use turnstone_domain::{JobError, RawObject};
use turnstone_telemetry::metrics::Counted;
use turnstone_telemetry::propagation::{self, Carried, Format};
use turnstone_telemetry::span::{self, Common, Said};
use turnstone_telemetry::{exports_spans, names};

/// The key of the delegating span in a delegated job's `meta`.
pub const PARENT_TRACEPARENT: &str = "ossa.parent.traceparent";

/// The member of the baggage that names the session.
const SESSION: &str = "ossa.session.id";

/// The spans of a claim.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The claim.
    pub invoke: Span,
    /// The attributes of all its spans.
    common: Common,
    /// The labels of its metrics.
    pub counted: Counted,
}

impl Trace {
    /// Returns the spans of a claim before it is read.
    pub fn none() -> Self {
        Self { invoke: Span::none(), common: Common::default(), counted: Counted::of("", "", "") }
    }
}

/// Begins the span of a claim; `began_in` is the span in which another claim began the unfinished turn.
pub fn invoke(claimed: &mut Claimed) -> Span {
    let (agent, meta) = (&claimed.agent, &claimed.job.meta);
    let version = agent.version.as_deref().unwrap_or("0.0.0");
    let model = agent.model.models.first().map(|model| model.model.clone());
    let model = model.or_else(|| claimed.deps.providers.default_model().map(|model| model.model));
    let counted = Counted::of(&agent.name, version, &model.unwrap_or_default());
    counted.invoked();
    let invoke = tracing::info_span!(
        names::INVOKE,
        { names::AGENT_ID } = agent.name,
        { names::SESSION_ID } = %claimed.engagement.id,
        { names::JOB_ID } = %claimed.job.id,
    );
    let session = claimed.session_id();
    let common = Common::default();
    common.say(names::AGENT_ID, agent.name.as_str());
    common.say(names::AGENT_NAME, agent.name.as_str());
    common.say(names::AGENT_VERSION, version);
    common.say(names::INSTANCE_ID, claimed.instance_id());
    common.say(names::SESSION_ID, session);
    common.say(names::CONVERSATION, claimed.engagement.id.as_str());
    common.say(names::JOB_ID, claimed.job.id.shown());
    let sent = sent(claimed);
    propagation::continue_from(&invoke, &sent, &common, formats(claimed));
    let (source, agent) = (text(meta, names::PARENT_AGENT_ID), agent.name.as_str());
    if let Some(from) = submitted(claimed, &sent) {
        propagation::link(&invoke, &from, &[(names::LINK_TYPE, "submission")]);
    }
    if let Some(from) = text(meta, PARENT_TRACEPARENT) {
        let source = source.as_deref().unwrap_or_default();
        let said =
            [(names::LINK_TYPE, "delegation"), (names::LINK_SOURCE, source), (names::LINK_TARGET, agent)];
        propagation::link(&invoke, &from, &said);
    }
    if let Some(from) = claimed.began_in.take() {
        propagation::link(&invoke, &from, &[(names::LINK_TYPE, "resumption")]);
    }
    span::say(&invoke, names::OPERATION, "invoke_agent");
    span::say(&invoke, names::GEN_AI_AGENT, agent);
    span::say(&invoke, names::PARENT_AGENT_ID, source);
    span::say(&invoke, names::PARENT_INTERACTION_ID, text(meta, names::PARENT_INTERACTION_ID));
    span::say(&invoke, names::WORKFLOW_ID, workflow(&sent));
    claimed.trace = Trace { invoke: invoke.clone(), common, counted };
    invoke
}

fn text(meta: &RawObject, name: &str) -> Option<String> {
    meta.get(name).and_then(|value| value.parse::<String>().ok())
}

/// Returns the formats that the agent's manifest chooses; `None` for those of this process.
fn formats(claimed: &Claimed) -> Option<&'static [Format]> {
    match claimed.agent.identity.trace_format {
        TraceFormat::W3c => None,
        TraceFormat::B3 => Some(propagation::B3),
        TraceFormat::Jaeger => Some(propagation::JAEGER),
    }
}

/// Returns the submitter's context as a W3C `traceparent`, from the headers that [`sent`] returns.
pub fn submitted(claimed: &Claimed, sent: &Carried) -> Option<String> {
    match formats(claimed) {
        None => sent.get("traceparent").cloned(),
        Some(formats) => propagation::as_traceparent(sent, formats),
    }
}

/// Returns the submitter's trace context, as far as the agent adopts it; a malformed field counts as absent
/// (RS-05).
pub fn sent(claimed: &Claimed) -> Carried {
    let identity = &claimed.agent.identity;
    let is_of = |name: &str| match identity.trace_format {
        TraceFormat::W3c => true,
        TraceFormat::B3 => name.contains("b3"),
        TraceFormat::Jaeger => name == "uber-trace-id",
    };
    let fields = propagation::FIELDS.into_iter().filter_map(|name| {
        let value = text(&claimed.job.meta, name)?;
        let taken = match name {
            "baggage" => identity.baggage && trace_context::baggage(&value).is_some(),
            _ if !(identity.trace_context && is_of(name)) => false,
            "traceparent" => is_traceparent(&value),
            _ => true,
        };
        taken.then(|| (name.to_owned(), value))
    });
    let mut sent: Carried = fields.collect();
    if !sent.contains_key("traceparent") {
        sent.remove("tracestate");
    }
    sent
}

fn workflow(sent: &Carried) -> Option<String> {
    trace_context::baggage(sent.get("baggage")?)?.remove(names::WORKFLOW_ID)
}

/// Begins the span of a turn.
pub fn turn(outbox: &Outbox) -> Span {
    let claimed = &outbox.claimed;
    let common = &claimed.trace.common;
    common.say(names::TURN_NUMBER, outbox.position.turn);
    // Absent until INIT has given the turn its id.
    common.say(names::INTERACTION_ID, outbox.has_begun().then(|| outbox.interaction_id.clone()));
    if let Some(bounds) = claimed.agent.reasoning {
        common.say(names::REASONING_STRATEGY, reasoning::STRATEGY);
        common.say(names::REASONING_STEP, i64::from(outbox.position.tool_turns) + 1);
        common.say(names::REASONING_MAX_STEPS, i64::from(bounds.max_steps));
        common.say(names::REASONING_DEPTH, claimed.depth);
    }
    tracing::info_span!(
        parent: &claimed.trace.invoke,
        names::TURN,
        { names::AGENT_ID } = claimed.agent.name,
        { names::INSTANCE_ID } = claimed.deps.options.worker_id,
        { names::SESSION_ID } = %claimed.engagement.id,
        { names::TURN_NUMBER } = outbox.position.turn,
        { names::JOB_ID } = %claimed.job.id,
    )
}

/// Sets the id of the turn that INIT has begun, on the current span and all that follow in the turn.
pub fn identified(outbox: &Outbox) {
    outbox.claimed.trace.common.say(names::INTERACTION_ID, outbox.interaction_id.as_str());
    span::say(&Span::current(), names::INTERACTION_ID, outbox.interaction_id.as_str());
}

/// Records that the claim ended with an error.
pub fn failed(claimed: &Claimed, error: &JobError) {
    claimed.trace.counted.failed(error.kind.observed_code());
    span::fail(&claimed.trace.invoke, error.kind.observed_code(), &error.message);
}

/// Begins the span of a call to a model.
pub fn chat(claimed: &Claimed, provider: &str, request: &ModelRequest) -> Span {
    let span = tracing::info_span!(
        names::MODEL_CALL,
        otel.kind = "client",
        { names::REQUEST_MODEL } = request.model,
        { names::REQUEST_MAX_TOKENS } = request.max_tokens,
        { names::RESPONSE_MODEL } = tracing::field::Empty,
        { names::INPUT_TOKENS } = tracing::field::Empty,
        { names::OUTPUT_TOKENS } = tracing::field::Empty,
    );
    span::say(&span, names::OPERATION, "chat");
    span::say(&span, names::SYSTEM, "ossa");
    span::say(&span, names::PROVIDER, provider);
    span::say(&span, names::REQUEST_TEMPERATURE, request.temperature);
    span::say(&span, names::REQUEST_TOP_P, request.top_p);
    span::say_content(&span, names::SYSTEM_INSTRUCTIONS, || request.system.clone());
    span::say_content(&span, names::INPUT_MESSAGES, || {
        let messages: Vec<&Message> = request.messages.iter().map(Arc::as_ref).collect();
        claimed.screened(json!(messages)).to_string()
    });
    span
}

/// Records a model's answer.
pub fn answered(claimed: &Claimed, span: &Span, answer: &ModelAnswer) {
    span.record(names::RESPONSE_MODEL, &answer.model);
    if let Some(id) = &answer.response_id {
        span::say(span, names::RESPONSE_ID, id.as_str());
    }
    if exports_spans() {
        let reason = json!(answer.finish_reason).as_str().unwrap_or_default().to_owned();
        span::say(span, names::FINISH_REASON, reason.as_str());
        span::say(span, names::FINISH_REASONS, Said::Texts(vec![reason]));
    }
    if let Some(usage) = answer.usage {
        span.record(names::INPUT_TOKENS, usage.input);
        span.record(names::OUTPUT_TOKENS, usage.output);
        span::say(span, names::TOTAL_TOKENS, usage.total());
        span::say(span, names::CACHED_TOKENS, usage.cached_input);
        span::say(span, names::REASONING_TOKENS, usage.reasoning);
    }
    span::say_content(span, names::OUTPUT_MESSAGES, || {
        let said = json!([{"role": "assistant", "content": answer.content, "tool_calls": answer.tool_calls}]);
        claimed.screened(said).to_string()
    });
}

/// Begins the span of one try of a call to a tool.
pub fn call(claimed: &Claimed, requested: &RequestedCall, Callable { tool, capability }: &Callable) -> Span {
    let span = tracing::info_span!(
        names::TOOL_CALL,
        { names::TOOL_NAME } = requested.name,
        { names::CALL_ID } = %requested.call_id,
    );
    let transport = match tool.transport() {
        Transport::Function => "function",
        Transport::Http => "http",
        Transport::Mcp => "mcp",
    };
    span::say(&span, names::OPERATION, "execute_tool");
    span::say(&span, names::GEN_AI_TOOL, requested.name.as_str());
    span::say(&span, names::GEN_AI_TOOL_TYPE, "function");
    span::say(&span, names::GEN_AI_CALL_ID, requested.call_id.as_str());
    span::say(&span, names::CAPABILITY_NAME, capability.name.as_str());
    if let Some(version) = &capability.version {
        span::say(&span, names::CAPABILITY_VERSION, version.as_str());
    }
    span::say(&span, names::TOOL_TYPE, transport);
    span::say(&span, names::TOOL_SOURCE, if capability.origin.is_some() { "manifest" } else { "registry" });
    span::say_content(&span, names::TOOL_ARGUMENTS, || {
        claimed.screened(requested.arguments.clone()).to_string()
    });
    span
}

/// Records and counts the outcome of one try of a tool call. The span ends before the output is reviewed, so
/// it omits outputs that may be refused or kept from views.
pub fn returned(claimed: &Claimed, span: &Span, tool: &str, capability: &Capability, outcome: &ToolOutcome) {
    let error = outcome.as_error().map(|error| claimed.screen_error(error));
    let code = error.as_ref().map(|error| error.kind.observed_code());
    claimed.trace.counted.called(tool, code);
    let is_shown = capability.collect_results && !capability.output_restriction.restricts();
    match (outcome, error, code) {
        (ToolOutcome::Success { output }, ..) if is_shown => {
            span::say_content(span, names::TOOL_RESULT, || claimed.screened(output.clone()).to_string());
        }
        (_, Some(error), Some(code)) => span::fail(span, code, &error.message),
        _ => {}
    }
}

/// Begins the span in which another agent is called.
pub fn handoff(target: &str, mode: &str) -> Span {
    let span = tracing::info_span!(names::HANDOFF);
    span::say(&span, names::DELEGATION_TARGET, target);
    span::say(&span, names::DELEGATION_TYPE, mode);
    span
}

/// Describes the agent's state on a span in which it is read or committed.
pub fn with_state(claimed: &Claimed, span: Span) -> Span {
    let options = &claimed.agent.state;
    let mode = json!(options.mode);
    span::say(&span, names::STATE_MODE, mode.as_str());
    span::say(&span, names::STATE_STORAGE, options.storage.as_deref());
    span::say(&span, names::STATE_TTL, options.ttl_seconds);
    span
}

/// Counts a complete turn.
pub fn turned(claimed: &Claimed, took: Duration) {
    claimed.trace.counted.turned(took);
}

/// Returns the job's `meta` for a delegate: its agent, its parent, and its tenant and user.
pub fn child_meta(outbox: &Outbox, terms: Option<&Delegate>, agent: &str, span: &Span) -> RawObject {
    let claimed = &outbox.claimed;
    let mut meta = RawObject::new();
    meta.insert("agent", agent);
    for kept in ["tenant", "tenant_id", "user", SUBMITTED_BY] {
        if let Some(value) = claimed.job.meta.get(kept) {
            meta.insert(kept, value.clone());
        }
    }
    meta.insert(names::PARENT_INTERACTION_ID, outbox.interaction_id.as_str());
    let shares_session = terms.is_none_or(Delegate::shares_session);
    if shares_session {
        let session = claimed.session_id();
        meta.insert("session_id", session.as_str());
        meta.insert("ossa.parent.session.id", session);
    }
    meta.insert(names::PARENT_AGENT_ID, claimed.agent.name.as_str());
    if let Some(traceparent) = propagation::traceparent(span) {
        meta.insert(PARENT_TRACEPARENT, traceparent);
    }
    if let Some(baggage) = claimed.job.meta.get("baggage").filter(|_| claimed.agent.identity.baggage) {
        let sent = baggage.parse::<String>().ok().filter(|_| !shares_session);
        match sent.map(|sent| trace_context::without(&sent, SESSION)) {
            None => meta.insert("baggage", baggage.clone()),
            Some(rest) if !rest.is_empty() => meta.insert("baggage", rest),
            Some(_) => {}
        }
    }
    meta
}
