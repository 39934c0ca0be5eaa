//! The names of spans, their attributes, and metrics: a documented API. Every span in the product is named here and
//! nowhere else; `docs/EVENTS.md` is generated from [`ALL`].
//!
//! They are used as constants: `tracing::info_span!(names::TURN, { names::JOB_ID } = %job)`.
//!
//! Names follow the semantic conventions of OSSA 0.2.9 where these have one; ours begin with `turnstone.`.

/// The kind of thing that a name names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A span.
    Span,
    /// An attribute of spans.
    Attribute,
    /// A metric by OTLP; `GET /metrics` has it with `_` for `.`, its unit, and `_total` when it only grows.
    Instrument,
    /// A series of `GET /metrics` alone, with its labels.
    Metric,
}

/// A name with its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// The kind.
    pub kind: Kind,
    /// The name.
    pub name: &'static str,
    /// The meaning, in one line.
    pub meaning: &'static str,
}

macro_rules! names {
    ($($kind:ident $constant:ident = $name:literal, $meaning:literal;)+) => {
        $(#[doc = $meaning] pub const $constant: &str = $name;)+

        /// All names, for the documentation.
        pub const ALL: &[Name] = &[$(Name { kind: Kind::$kind, name: $name, meaning: $meaning }),+];
    };
}

names! {
    Span INVOKE = "ossa.agent.invoke", "One claim of an agent job by a worker, until it settles, parks or is given back.";
    Span TURN = "ossa.agent.turn", "One turn of an agent, from its first phase in this worker to its last.";
    Span PHASE = "turnstone.phase", "One phase of a turn, without the wait for its checkpoint.";
    Span MODEL_CALL = "gen_ai.chat", "One call to a model; a fallback is a second span.";
    Span TOOL_CALL = "ossa.tool.call", "One call to a tool.";
    Span HTTP_REQUEST = "http.request", "The request of a call to a tool over HTTP.";
    Span HTTP_ANSWER = "http.server.request", "One request to the api, below the span of a sent `traceparent`; sent under its method and the template of its path, such as `GET /engagements/{id}`. Probes and scrapes have none.";
    Span HANDOFF = "ossa.delegation.handoff", "A call of another agent, which has a trace of its own with a link to this.";
    Span STATE_LOAD = "ossa.state.load", "The agent's state is read.";
    Span STATE_SAVE = "ossa.state.save", "Changes of the agent's state are committed; beside the turn, not in it.";
    Attribute AGENT_ID = "ossa.agent.id", "The agent's name.";
    Attribute AGENT_NAME = "ossa.agent.name", "The agent's name.";
    Attribute AGENT_VERSION = "ossa.agent.version", "The version of its document; `0.0.0` when it has none.";
    Attribute INSTANCE_ID = "ossa.instance.id", "The worker, in the form that the manifest asks for.";
    Attribute SESSION_ID = "ossa.session.id", "The session that the caller named, else the engagement.";
    Attribute INTERACTION_ID = "ossa.interaction.id", "The turn's own id.";
    Attribute TURN_NUMBER = "ossa.turn.number", "The turn, 1-based within the engagement.";
    Attribute JOB_ID = "turnstone.job.id", "The job.";
    Attribute PHASE_NAME = "turnstone.phase.name", "The phase: init, norm, resol, infer, exec, persist or emit.";
    Attribute WORKFLOW_ID = "ossa.workflow.id", "The workflow that the caller's baggage names.";
    Attribute REASONING_STRATEGY = "ossa.reasoning.strategy", "The strategy: react. These four are there when the manifest has `spec.reasoning`.";
    Attribute REASONING_STEP = "ossa.reasoning.step", "The step, 1-based since the input: one more than the turns with tool calls before it.";
    Attribute REASONING_MAX_STEPS = "ossa.reasoning.max_steps", "The most steps.";
    Attribute REASONING_DEPTH = "ossa.reasoning.depth", "How many agents delegated to this one.";
    Attribute PARENT_AGENT_ID = "ossa.parent.agent.id", "The agent that delegated to this one.";
    Attribute PARENT_INTERACTION_ID = "ossa.parent.interaction.id", "The turn of that agent.";
    Attribute DELEGATION_TARGET = "ossa.delegation.target", "The called agent.";
    Attribute DELEGATION_TYPE = "ossa.delegation.type", "handoff, parallel or supervisor.";
    Attribute LINK_TYPE = "ossa.link.type", "Of a link: submission (to the span that enqueued the job), delegation (to the caller's span) or resumption (to the span that began the turn).";
    Attribute LINK_SOURCE = "ossa.link.source_agent", "Of a link: the agent that delegated.";
    Attribute LINK_TARGET = "ossa.link.target_agent", "Of a link: the agent that was called.";
    Attribute STATE_MODE = "ossa.state.mode", "stateless, session or long_running.";
    Attribute STATE_STORAGE = "ossa.state.storage_type", "The kind of storage that the manifest names.";
    Attribute STATE_TTL = "ossa.state.ttl_seconds", "How long state is kept.";
    Attribute ERROR_TYPE = "error.type", "The code of the failure.";
    Attribute OPERATION = "gen_ai.operation.name", "invoke_agent, chat or execute_tool.";
    Attribute SYSTEM = "gen_ai.system", "Always `ossa`, as OSSA asks.";
    Attribute PROVIDER = "gen_ai.provider.name", "The provider, as the configuration names it.";
    Attribute GEN_AI_AGENT = "gen_ai.agent.name", "The agent's name.";
    Attribute CONVERSATION = "gen_ai.conversation.id", "The engagement.";
    Attribute REQUEST_MODEL = "gen_ai.request.model", "The called model.";
    Attribute REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens", "The most tokens the answer may have.";
    Attribute REQUEST_TEMPERATURE = "gen_ai.request.temperature", "The temperature, if one is set.";
    Attribute REQUEST_TOP_P = "gen_ai.request.top_p", "The nucleus, if one is set.";
    Attribute FINISH_REASON = "gen_ai.response.finish_reason", "Why the model stopped: stop, length, tool_use or content_filter (OSSA).";
    Attribute FINISH_REASONS = "gen_ai.response.finish_reasons", "The same as a list (OpenTelemetry).";
    Attribute RESPONSE_ID = "gen_ai.response.id", "The provider's id of the answer, when it has one.";
    Attribute RESPONSE_MODEL = "gen_ai.response.model", "The model that answered, by the provider's own name.";
    Attribute INPUT_TOKENS = "gen_ai.usage.input_tokens", "Prompt tokens the provider counted.";
    Attribute OUTPUT_TOKENS = "gen_ai.usage.output_tokens", "Completion tokens the provider counted.";
    Attribute TOTAL_TOKENS = "gen_ai.usage.total_tokens", "Both together.";
    Attribute CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens", "Prompt tokens that came from the provider's cache.";
    Attribute REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens", "Completion tokens of the model's reasoning.";
    Attribute TOKEN_TYPE = "gen_ai.token.type", "Of the metric: input or output.";
    Attribute INPUT_MESSAGES = "gen_ai.input.messages", "The messages to the model, as JSON; only with content capture.";
    Attribute OUTPUT_MESSAGES = "gen_ai.output.messages", "The answers of the model, as JSON; only with content capture.";
    Attribute SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions", "The system prompt; only with content capture.";
    Attribute GEN_AI_TOOL = "gen_ai.tool.name", "The tool.";
    Attribute GEN_AI_TOOL_TYPE = "gen_ai.tool.type", "Always `function`.";
    Attribute GEN_AI_CALL_ID = "gen_ai.tool.call.id", "The call's id.";
    Attribute TOOL_ARGUMENTS = "gen_ai.tool.call.arguments", "The arguments as JSON; only with content capture.";
    Attribute TOOL_RESULT = "gen_ai.tool.call.result", "The outcome as JSON; only with content capture.";
    Attribute CAPABILITY_NAME = "ossa.capability.name", "The capability of the agent that the call uses.";
    Attribute CAPABILITY_VERSION = "ossa.capability.version", "The version that the manifest gives the capability.";
    Attribute TOOL_TYPE = "ossa.tool.type", "function, http or mcp.";
    Attribute TOOL_SOURCE = "ossa.tool.source", "manifest when the agent's document declares it, else registry.";
    Attribute HTTP_METHOD = "http.request.method", "The method.";
    Attribute HTTP_ROUTE = "http.route", "The template of the path; absent for an unknown path.";
    Attribute HTTP_STATUS = "http.response.status_code", "The status of the response.";
    Attribute SERVER_ADDRESS = "server.address", "The host, without path and query.";
    Attribute TOOL_NAME = "ossa.tool.name", "The tool.";
    Attribute CALL_ID = "turnstone.tool.call_id", "The call's id, which is also its idempotency key.";
    Instrument INVOCATIONS = "ossa.agent.invocations", "Claims of agent jobs that a worker began to run.";
    Instrument TURNS = "ossa.agent.turns", "Turns that were completed.";
    Instrument ERRORS = "ossa.agent.errors", "Attempts that failed, by the code of the error (error.type).";
    Instrument TOKENS_INPUT = "ossa.tokens.input", "Prompt tokens that were booked.";
    Instrument TOKENS_OUTPUT = "ossa.tokens.output", "Completion tokens that were booked.";
    Instrument TOKENS_ABOVE = "turnstone.tokens.above_reservation", "Tokens that answers used above the reservations of their calls (gen_ai.provider.name).";
    Instrument TOOL_CALLS = "ossa.tool.calls", "Requests to tools; each try counts (ossa.tool.name).";
    Instrument TOOL_ERRORS = "ossa.tool.errors", "Those that failed.";
    Instrument LATENCY = "ossa.agent.latency", "How long a turn took in the worker that completed it, in milliseconds.";
    Instrument CALL_DURATION = "gen_ai.client.operation.duration", "How long a call to a model took, in seconds.";
    Instrument CALL_TOKENS = "gen_ai.client.token.usage", "Tokens of a call to a model (gen_ai.token.type).";
    Metric HTTP_REQUESTS = "turnstone_http_requests_total", "Requests that were answered, by method, route and status.";
    Metric HTTP_REQUEST_DURATION = "turnstone_http_request_duration_seconds", "How long requests took, by method and route.";
    Metric JOBS = "turnstone_jobs", "Jobs that are kept, by state.";
    Metric QUEUE_JOBS = "turnstone_queue_jobs", "Jobs that have not ended, by queue and state.";
    Metric QUEUE_OLDEST = "turnstone_queue_oldest_seconds", "The longest wait of an available job, by queue; 0 when none waits.";
    Metric JOBS_ENDED = "turnstone_jobs_ended_total", "Jobs that ever ended, by queue and state (completed, discarded, cancelled); those of the last minute may be missing.";
    Metric DAMAGED_ROWS = "turnstone_damaged_rows_total", "Times that this process read a row that is damaged.";
    Metric REVIEWS_OPEN = "turnstone_reviews_open", "Reviews that wait for an answer.";
    Metric DATABASE_TRANSACTION = "turnstone_database_oldest_transaction_seconds", "The age of the oldest transaction of the PostgreSQL server, by `database` and `pid`; absent unless one is open for more than a minute.";
    Metric BUDGET_USED = "turnstone_budget_used_ratio", "How much of a shared budget is used or set aside, 1 is all of it and more an overshoot of answers, by budget and unit (tokens, money); of a daily one today's.";
    Metric WORKERS = "turnstone_workers", "Registered workers, by whether they sent a recent heartbeat (alive).";
    Metric STORE_SECONDS = "turnstone_store_ping_seconds", "How long the store took to answer when it was asked last.";
    Metric UPTIME_SECONDS = "turnstone_uptime_seconds", "How long this process has run.";
}

/// Returns the meaning of a name; empty for an unknown one.
#[must_use]
pub fn meaning(name: &str) -> &'static str {
    ALL.iter().find(|known| known.name == name).map_or("", |known| known.meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_made_from_the_constants() {
        let subscriber = tracing_subscriber::registry();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!(TURN, { JOB_ID } = "j", { TURN_NUMBER } = 1);
            let metadata = span.metadata().unwrap();
            assert_eq!(metadata.name(), "ossa.agent.turn");
            let fields: Vec<&str> = metadata.fields().iter().map(|field| field.name()).collect();
            assert_eq!(fields, ["turnstone.job.id", "ossa.turn.number"]);
        });
    }

    #[test]
    fn names_are_unique_and_dotted_lower_case() {
        for (at, name) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.name != name.name), "{} stands twice", name.name);
            let dotted = name.kind != Kind::Metric;
            assert_eq!(name.name.contains('.'), dotted, "{}", name.name);
            assert!(!name.name.contains(char::is_uppercase), "{}", name.name);
            assert!(name.meaning.ends_with('.'), "{}", name.name);
        }
    }
}
