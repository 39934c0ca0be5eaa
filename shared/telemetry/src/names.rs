//! The names of spans, their attributes, and metrics: a documented API. Every span in the product is named here and nowhere
//! else; `docs/EVENTS.md` is generated from [`ALL`].
//!
//! They are used as constants: `tracing::info_span!(names::TURN, { names::JOB_ID } = %job)`.
//!
//! Names follow the semantic conventions of OSSA 0.2.9 where they have one; ours begin with `turnstone.`.

/// What a name names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A span.
    Span,
    /// An attribute of spans.
    Attribute,
    /// A series of `GET /metrics`, with its labels.
    Metric,
}

/// A name with what it means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// What it names.
    pub kind: Kind,
    /// The name.
    pub name: &'static str,
    /// What it means, in one line.
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
    Span TURN = "ossa.agent.turn", "One turn of an agent, from its first phase in this worker to its last.";
    Span PHASE = "turnstone.phase", "One phase of a turn, without the wait for its checkpoint.";
    Span MODEL_CALL = "gen_ai.chat", "One call to a model; a fallback is a second span.";
    Span TOOL_CALL = "ossa.tool.call", "One call to a tool.";
    Attribute AGENT_ID = "ossa.agent.id", "The agent's name.";
    Attribute INSTANCE_ID = "ossa.instance.id", "The worker.";
    Attribute SESSION_ID = "ossa.session.id", "The engagement.";
    Attribute TURN_NUMBER = "ossa.turn.number", "The turn, 1-based within the engagement.";
    Attribute JOB_ID = "turnstone.job.id", "The job.";
    Attribute PHASE_NAME = "turnstone.phase.name", "The phase: init, norm, resol, infer, exec, persist or emit.";
    Attribute REQUEST_MODEL = "gen_ai.request.model", "The model that is asked.";
    Attribute REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens", "The most tokens the answer may have.";
    Attribute RESPONSE_MODEL = "gen_ai.response.model", "The model that answered, by the provider's own word.";
    Attribute INPUT_TOKENS = "gen_ai.usage.input_tokens", "Prompt tokens the provider counted.";
    Attribute OUTPUT_TOKENS = "gen_ai.usage.output_tokens", "Completion tokens the provider counted.";
    Attribute TOOL_NAME = "ossa.tool.name", "The tool.";
    Attribute CALL_ID = "turnstone.tool.call_id", "The call's id, which is also its idempotency key.";
    Metric HTTP_REQUESTS = "turnstone_http_requests_total", "Requests that were answered, by method, route and status.";
    Metric HTTP_REQUEST_DURATION = "turnstone_http_request_duration_seconds", "How long requests took, by method and route.";
    Metric JOBS = "turnstone_jobs", "Jobs that are kept, by state.";
    Metric QUEUE_JOBS = "turnstone_queue_jobs", "Jobs that have not ended, by queue and state.";
    Metric WORKERS = "turnstone_workers", "Workers that are known, by whether they were heard of lately (alive).";
    Metric STORE_SECONDS = "turnstone_store_ping_seconds", "How long the store took to answer when it was asked last.";
    Metric UPTIME_SECONDS = "turnstone_uptime_seconds", "How long this process has run.";
}

/// What a name means; empty for a name that is none.
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
